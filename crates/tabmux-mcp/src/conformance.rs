//! What the official MCP conformance suite expects a server to offer, mounted on the same stack as the real tools
//! in a test-only mode (`Fixtures::Conformance`). Browsers, sessions and `Dispatch` are deliberately absent.

mod asks;
mod rounds;

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ProgressNotificationParam, ReadResourceResult, ServerCapabilities, Tool,
};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// An empty sound.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
const PAUSE: Duration = Duration::from_millis(50);

/// Tools without arguments; those with some are in `tools`.
const PLAIN_TOOLS: [&str; 21] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_missing_capability",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

pub(crate) fn capabilities() -> ServerCapabilities {
    fixture(json!({ "tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {} }))
}

pub(crate) fn tools() -> Vec<Tool> {
    let text = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    let header = json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    let with_arguments = [
        ("test_sampling", text("prompt")),
        ("test_elicitation", text("message")),
        ("test_parameter_header", header),
        ("json_schema_2020_12_tool", json_schema_2020_12()),
    ];
    let plain = PLAIN_TOOLS.iter().map(|name| (*name, json!({ "type": "object", "properties": {} })));
    plain.chain(with_arguments).map(|(name, schema)| Tool::new(name, "A conformance fixture.", fixture::<JsonObject>(schema))).collect()
}

pub(crate) fn has_tool(name: &str) -> bool {
    tools().iter().any(|tool| tool.name == name)
}

pub(crate) async fn call_tool(request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let name = request.name.clone();
    match name.as_ref() {
        "test_error_handling" => {
            Ok(CallToolResult::error(vec![ContentBlock::text("This tool intentionally returns an error for testing")]).into())
        }
        "test_tool_with_logging" | "test_logging_tool" => asks::log_three_times(&context).await,
        "test_tool_with_progress" => report_progress(&context).await,
        "test_missing_capability" => require_sampling(&context),
        "test_sampling" => asks::sample(&request, &context).await,
        "test_elicitation" | "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums" => {
            asks::elicit(&request, &context).await
        }
        name if name == "test_streaming_elicitation" || name.starts_with("test_input_required_result") => {
            rounds::call_tool(&request, &context)
        }
        name => Ok(CallToolResult::success(fixture(content(name))).into()),
    }
}

fn content(tool: &str) -> Value {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let resource =
        |uri: &str, mime: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime, "text": text } });
    match tool {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]),
        "test_embedded_resource" => json!([resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]),
        "test_multiple_content_types" => {
            let data = resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
            json!([text("Multiple content types test:"), image, data])
        }
        other => json!([text(&format!("{other} was called."))]),
    }
}

async fn report_progress(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    for progress in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let notice = ProgressNotificationParam::new(token, progress).with_total(100.0);
            context.peer.notify_progress(notice).await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(CallToolResult::success(vec![ContentBlock::text("Progress was reported.")]).into())
}

fn require_sampling(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let declared = context.client_capabilities().and_then(|capabilities| serde_json::to_value(capabilities).ok());
    if declared.is_some_and(|capabilities| capabilities.get("sampling").is_some()) {
        return Ok(CallToolResult::success(vec![ContentBlock::text("The client can sample.")]).into());
    }
    Err(ErrorData::missing_required_client_capability(fixture::<ClientCapabilities>(json!({ "sampling": {} }))))
}

pub(crate) fn prompts() -> ListPromptsResult {
    let argument = |name: &str| json!({ "name": name, "description": "A conformance argument.", "required": true });
    let prompt = |name: &str, arguments: Value| json!({ "name": name, "description": "A conformance fixture.", "arguments": arguments });
    ListPromptsResult::with_all_items(fixture(json!([
        prompt("test_simple_prompt", json!([])),
        prompt("test_prompt_with_arguments", json!([argument("arg1"), argument("arg2")])),
        prompt("test_prompt_with_embedded_resource", json!([argument("resourceUri")])),
        prompt("test_prompt_with_image", json!([])),
        prompt("test_input_required_result_prompt", json!([])),
    ])))
}

pub(crate) fn get_prompt(request: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    if request.name == "test_input_required_result_prompt" {
        return rounds::get_prompt(&request);
    }
    let arguments = request.arguments.unwrap_or_default();
    let argument = |name: &str| {
        let missing = || ErrorData::invalid_params(format!("The argument {name} is missing."), None);
        arguments.get(name).and_then(Value::as_str).ok_or_else(missing)
    };
    let text = |text: &str| json!({ "role": "user", "content": { "type": "text", "text": text } });
    let messages = match request.name.as_str() {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => {
            json!([text(&format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1")?, argument("arg2")?))])
        }
        "test_prompt_with_embedded_resource" => {
            let resource =
                json!({ "uri": argument("resourceUri")?, "mimeType": "text/plain", "text": "Embedded resource content for testing." });
            let embedded = json!({ "role": "user", "content": { "type": "resource", "resource": resource } });
            json!([embedded, text("Please process the embedded resource above.")])
        }
        "test_prompt_with_image" => {
            let image = json!({ "role": "user", "content": { "type": "image", "data": PNG, "mimeType": "image/png" } });
            json!([image, text("Please analyze the image above.")])
        }
        other => return Err(ErrorData::invalid_params(format!("Unknown prompt: {other}."), None)),
    };
    Ok(GetPromptResult::new(fixture(messages)).into())
}

pub(crate) fn resources() -> ListResourcesResult {
    let resource = |uri: &str, mime: &str| json!({ "uri": uri, "name": uri, "description": "A conformance fixture.", "mimeType": mime });
    ListResourcesResult::with_all_items(fixture(json!([
        resource("test://static-text", "text/plain"),
        resource("test://static-binary", "image/png"),
        resource("test://watched-resource", "text/plain"),
    ])))
}

pub(crate) fn resource_templates() -> ListResourceTemplatesResult {
    ListResourceTemplatesResult::with_all_items(fixture(json!([{
        "uriTemplate": "test://template/{id}/data", "name": "template", "description": "A conformance fixture.", "mimeType": "application/json",
    }])))
}

pub(crate) fn read_resource(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let template_id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let contents = match (uri, template_id) {
        ("test://static-text", _) => json!({ "mimeType": "text/plain", "text": "This is the content of the static text resource." }),
        ("test://static-binary", _) => json!({ "mimeType": "image/png", "blob": PNG }),
        ("test://watched-resource", _) => json!({ "mimeType": "text/plain", "text": "Watched." }),
        (_, Some(id)) => {
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "mimeType": "application/json", "text": data.to_string() })
        }
        _ => return Err(ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri })))),
    };
    let mut contents: JsonObject = fixture(contents);
    contents.insert("uri".into(), json!(uri));
    Ok(ReadResourceResult::new(fixture(json!([contents]))))
}

fn json_schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": { "$anchor": "addressDef", "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } } } },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// A fixture written as JSON, as rmcp's type.
fn fixture<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("fixtures are constants of the right shape, a test makes each")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fixture_has_the_shape_of_its_type() {
        capabilities();
        assert_eq!(tools().len(), PLAIN_TOOLS.len() + 4);
        assert!(has_tool("test_simple_text") && !has_tool("navigate"));
        for tool in PLAIN_TOOLS {
            assert!(!fixture::<Vec<ContentBlock>>(content(tool)).is_empty());
        }
        resource_templates();
        for resource in resources().resources {
            read_resource(&resource.uri).unwrap();
        }
        read_resource("test://template/7/data").unwrap();
        assert!(read_resource("test://none").is_err());
        for prompt in prompts().prompts {
            let arguments = fixture(json!({ "arg1": "a", "arg2": "b", "resourceUri": "test://static-text" }));
            get_prompt(GetPromptRequestParams::new(prompt.name).with_arguments(arguments)).unwrap();
        }
    }
}
