//! Fixtures that turn to the client while they run: log messages, sampling, elicitation, as revisions before
//! 2026-07-28 have them.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomNotification, CustomRequest, ErrorData,
    ServerNotification, ServerRequest,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::PAUSE;
use crate::caller;

/// Of the new era, only a request that asked for log messages gets some.
pub(super) async fn log_three_times(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let wanted = !caller::is_new_era(context) || context.meta.0.0.contains_key("io.modelcontextprotocol/logLevel");
    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if wanted {
            let notice = CustomNotification::new("notifications/message", Some(json!({ "level": "info", "data": text })));
            context.peer.send_notification(ServerNotification::CustomNotification(notice)).await.map_err(failed)?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(said("Logged."))
}

pub(super) async fn sample(request: &CallToolRequestParams, context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": argument(request, "prompt") } });
    let answer = ask(context, "sampling/createMessage", json!({ "messages": [message], "maxTokens": 100 })).await?;
    Ok(said(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default())))
}

pub(super) async fn elicit(request: &CallToolRequestParams, context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let (message, schema) = match request.name.as_ref() {
        "test_elicitation" => (argument(request, "message"), plain_schema()),
        "test_elicitation_sep1034_defaults" => ("Please check these values".to_owned(), schema_with_defaults()),
        _ => ("Please choose".to_owned(), schema_with_enums()),
    };
    let answer = ask(context, "elicitation/create", json!({ "message": message, "requestedSchema": schema })).await?;
    let lead = if request.name == "test_elicitation" { "User response" } else { "Elicitation completed" };
    Ok(said(format!("{lead}: action={}, content={}", answer["action"].as_str().unwrap_or_default(), answer["content"])))
}

fn plain_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    })
}

fn schema_with_defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
            "verified": { "type": "boolean", "default": true },
        },
    })
}

fn schema_with_enums() -> Value {
    let titled = |word: &str| {
        let option = |(at, ordinal): (usize, &str)| json!({ "const": format!("value{}", at + 1), "title": format!("{ordinal} {word}") });
        ["First", "Second", "Third"].into_iter().enumerate().map(option).collect::<Vec<_>>()
    };
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"] },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
        },
    })
}

/// Sends the request as it is written: rmcp's own types would normalise the schema.
async fn ask(context: &RequestContext<RoleServer>, method: &str, params: Value) -> Result<Value, ErrorData> {
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    let answer = context.peer.send_request(request).await.map_err(failed)?;
    serde_json::to_value(answer).map_err(failed)
}

fn argument(request: &CallToolRequestParams, name: &str) -> String {
    request.arguments.as_ref().and_then(|arguments| arguments.get(name)).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn said(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text.into())]).into()
}

#[expect(clippy::needless_pass_by_value, reason = "map_err passes it so")]
fn failed(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
