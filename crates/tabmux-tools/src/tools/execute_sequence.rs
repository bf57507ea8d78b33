//! Several steps in one call, in one session, in several one after the other, or in several at once.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{NameOrObject, Object, of_desk, own_schema};
use crate::sequence::{OnError, branches, compared, failure, report_data, run, success};
use crate::{Arguments, Common, Desk, DeskTool, Effect, Group, Level, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "execute_sequence",
    group: Group::Many,
    level: Level::Core,
    description: "Run several tools in order in one call.",
    effect: Effect::Write,
    own_schema: own_schema::<Sequence>,
    run: Run::Desk(&Execute),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Sequence {
    /// [{action: tool, …its arguments, sessionId?, save?: name, expect?: {equals|contains|matches}}]. Later: ${name}. Action assert: url, title, text
    #[serde(default)]
    #[schemars(with = "Vec<Object>")]
    actions: Vec<Arguments>,
    /// Default stop
    on_error: Option<OnError>,
    /// Sessions to do it in at once and compare: names or {sessionId, actions}
    #[serde(alias = "fan_out")]
    #[schemars(with = "Option<Vec<NameOrObject>>")]
    fan_out: Option<Vec<Value>>,
}

struct Execute;

#[async_trait]
impl DeskTool for Execute {
    async fn run(&self, desk: &dyn Desk, common: &Common, args: Arguments) -> ToolResult {
        let args: Sequence = of_desk(common, &args)?;
        let branches = branches(common.session.as_deref(), &args.actions, args.fan_out.as_deref())?;
        let on_error = args.on_error.unwrap_or_default();
        let endings = futures::future::join_all(branches.iter().map(|branch| run(desk, branch, on_error))).await;
        let comparison = compared(&endings);
        desk.tell("sequences", endings.iter().map(report_data).collect());
        if let Some(comparison) = &comparison {
            desk.tell("comparison", comparison.data.clone());
        }
        let text = comparison.as_ref().map(|comparison| comparison.text.as_str());
        match failure(&endings, on_error, text) {
            Some(fault) => Err(fault),
            None => Ok(success(endings, text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn the_schema_allows_names_and_objects_for_fan_out() {
        let listing = crate::listing(&super::TOOL);
        let items = &listing["inputSchema"]["properties"]["fanOut"]["items"];
        assert_eq!(items, &json!({ "anyOf": [{ "type": "string" }, { "type": "object" }] }), "{listing}");
    }
}
