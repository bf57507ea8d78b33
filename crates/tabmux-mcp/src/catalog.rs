//! The tool list as MCP shows it: built once, in the table's order, the same for everybody (C11). What a tool
//! does is deliberately absent.

use std::sync::Arc;

use rmcp::model::{ErrorData, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use tabmux_tools::Level;

/// One line of the tool table, as an agent sees it.
#[derive(Clone, Debug)]
pub struct ToolListing {
    pub name: String,
    pub description: String,
    /// The whole JSON Schema of the arguments, an object.
    pub schema: Value,
    /// Whether a call only reads.
    pub read_only: bool,
    /// Which lists show it.
    pub level: Level,
}

/// The whole list, shared by every connection.
#[derive(Clone, Debug)]
pub struct Catalog {
    tools: Arc<[(Level, Tool)]>,
}

impl Catalog {
    pub fn new(listings: Vec<ToolListing>) -> Self {
        Self { tools: listings.into_iter().map(|listing| (listing.level, tool(listing))).collect() }
    }

    /// The tools an endpoint of this level lists, in the table's order.
    pub(crate) fn shown(&self, level: Level) -> Vec<Tool> {
        self.tools.iter().filter(|(own, _)| *own <= level).map(|(_, tool)| tool.clone()).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().map(|(_, tool)| tool).find(|tool| tool.name == name)
    }

    /// The answer to a tool nobody has: it names the tool and the one that was probably meant.
    pub(crate) fn unknown(&self, name: &str) -> ErrorData {
        let asked: String = name.chars().take(LONGEST_ECHO).collect();
        let nearest = tabmux_tools::nearest(&asked, self.tools.iter().map(|(_, tool)| tool.name.as_ref()));
        let guess = nearest.map(|nearest| format!(" The nearest name is {nearest};")).unwrap_or_default();
        let message = format!("Unknown tool: {asked}.{guess} tools/list names all of them.");
        ErrorData::invalid_params(message, Some(json!({ "tool": asked, "nearest": nearest })))
    }
}

/// How much of a stranger's text an error repeats.
pub(crate) const LONGEST_ECHO: usize = 64;

fn tool(listing: ToolListing) -> Tool {
    let schema = match listing.schema {
        Value::Object(schema) => schema,
        _ => Map::from_iter([("type".to_owned(), json!("object"))]),
    };
    let tool = Tool::new(listing.name, listing.description, schema);
    // That a tool writes is what is assumed of one that says nothing, and every word of the list costs.
    if listing.read_only { tool.with_annotations(ToolAnnotations::new().read_only(true)) } else { tool }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let listing = |(name, level): (&str, Level)| ToolListing {
            name: name.into(),
            description: format!("About {name}."),
            schema: json!({ "type": "object", "properties": {} }),
            read_only: true,
            level,
        };
        Catalog::new([("navigate", Level::Slim), ("pdf", Level::Full), ("list_pages", Level::Core)].map(listing).into())
    }

    #[test]
    fn the_list_keeps_the_tables_order_and_a_level_only_hides() {
        let catalog = catalog();
        let names = |level| catalog.shown(level).iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(Level::Full), ["navigate", "pdf", "list_pages"]);
        assert_eq!(names(Level::Core), ["navigate", "list_pages"]);
        assert_eq!(names(Level::Slim), ["navigate"]);
        assert!(catalog.get("pdf").is_some());
    }

    #[test]
    fn an_unknown_tool_is_told_the_nearest_name() {
        let error = catalog().unknown("navigat");
        assert!(error.message.contains("navigat.") && error.message.contains("nearest name is navigate"), "{}", error.message);
        assert!(catalog().unknown(&"x".repeat(5000)).message.len() < 300);
    }
}
