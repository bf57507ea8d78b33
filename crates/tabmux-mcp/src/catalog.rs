//! The tool list as MCP shows it: built once, in the table's order, the same for everybody (C11). What a tool
//! does is deliberately absent.

use std::collections::HashSet;
use std::sync::Arc;

use rmcp::model::{ErrorData, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

/// One line of the tool table, as an agent sees it.
#[derive(Clone, Debug)]
pub struct ToolListing {
    pub name: String,
    pub description: String,
    /// The whole JSON Schema of the arguments, an object.
    pub schema: Value,
    /// Whether a call only reads.
    pub read_only: bool,
}

/// The whole list, shared by every connection.
#[derive(Clone, Debug)]
pub struct Catalog {
    tools: Arc<[Tool]>,
}

impl Catalog {
    pub fn new(listings: Vec<ToolListing>) -> Self {
        Self { tools: listings.into_iter().map(tool).collect() }
    }

    /// The tools of an endpoint: all, or those of `--tools`. The order is the table's either way.
    pub(crate) fn shown(&self, only: Option<&HashSet<String>>) -> Vec<Tool> {
        let is_shown = |tool: &&Tool| only.is_none_or(|names| names.contains(tool.name.as_ref()));
        self.tools.iter().filter(is_shown).cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The answer to a tool nobody has: it names the tool and the one that was probably meant.
    pub(crate) fn unknown(&self, name: &str) -> ErrorData {
        let asked: String = name.chars().take(LONGEST_ECHO).collect();
        let nearest = self.tools.iter().map(|tool| tool.name.as_ref()).min_by_key(|known| distance(&asked, known));
        let message = match nearest {
            Some(nearest) => format!("Unknown tool: {asked}. The nearest name is {nearest}; tools/list names all of them."),
            None => format!("Unknown tool: {asked}. There are no tools."),
        };
        ErrorData::invalid_params(message, Some(json!({ "tool": asked, "nearest": nearest })))
    }
}

/// How much of a stranger's text an error repeats.
const LONGEST_ECHO: usize = 64;

fn tool(listing: ToolListing) -> Tool {
    let schema = match listing.schema {
        Value::Object(schema) => schema,
        _ => Map::from_iter([("type".to_owned(), json!("object"))]),
    };
    let annotations = ToolAnnotations::new().read_only(listing.read_only);
    Tool::new(listing.name, listing.description, schema).with_annotations(annotations)
}

/// How many letters must change to make one name of the other (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, left) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, right) in right.iter().enumerate() {
            let replace = diagonal + usize::from(left != *right);
            diagonal = row[column + 1];
            row[column + 1] = replace.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let listing = |name: &str, read_only| ToolListing {
            name: name.into(),
            description: format!("About {name}."),
            schema: json!({ "type": "object", "properties": {} }),
            read_only,
        };
        Catalog::new(vec![listing("navigate", false), listing("list_pages", true), listing("snapshot", true)])
    }

    #[test]
    fn the_list_keeps_the_tables_order_and_a_filter_only_hides() {
        let catalog = catalog();
        let names = |only: Option<&HashSet<String>>| catalog.shown(only).iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(None), ["navigate", "list_pages", "snapshot"]);
        let only = HashSet::from(["snapshot".to_owned(), "navigate".to_owned()]);
        assert_eq!(names(Some(&only)), ["navigate", "snapshot"]);
        assert!(catalog.get("list_pages").is_some());
    }

    #[test]
    fn an_unknown_tool_is_told_the_nearest_name() {
        let error = catalog().unknown("navigat");
        assert!(error.message.contains("navigat.") && error.message.contains("nearest name is navigate"), "{}", error.message);
        assert!(catalog().unknown(&"x".repeat(5000)).message.len() < 300);
    }

    #[test]
    fn distance_counts_changed_letters() {
        for (left, right, expected) in [("", "", 0), ("abc", "", 3), ("", "abc", 3), ("kitten", "sitting", 3), ("same", "same", 0)] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }
}
