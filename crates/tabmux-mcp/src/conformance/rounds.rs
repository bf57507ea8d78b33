//! Fixtures that need answers from the client in several rounds, as 2026-07-28 has them: the result asks
//! (`input_required`), the client sends the call again with its answers and the state it was given.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputRequiredResult, InputResponses,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use super::fixture;

/// Seals the state a client carries for us: a keyed hash, the key made anew by each process.
static SEAL: LazyLock<RandomState> = LazyLock::new(RandomState::new);

pub(super) fn call_tool(request: &CallToolRequestParams, context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let state = request.request_state.as_deref().map(|sealed| opened(&request.name, sealed)).transpose()?;
    let answers = request.input_responses.as_ref();
    match request.name.as_ref() {
        "test_input_required_result_multi_round" => return Ok(multi_round(&request.name, state, answers)),
        "test_input_required_result_capabilities" => {
            let declared =
                context.client_capabilities().and_then(|capabilities| serde_json::to_value(capabilities).ok()).unwrap_or_default();
            let wanted = questions(&["user_name", "capital_question", "client_roots"]).into_iter().filter(|(_, question)| {
                let method = question["method"].as_str().unwrap_or_default();
                declared.get(method.split('/').next().unwrap_or_default()).is_some()
            });
            return Ok(ask(&wanted.collect(), None).into());
        }
        _ => {}
    }
    let (keys, needs_state): (&[&str], bool) = match request.name.as_ref() {
        "test_input_required_result_sampling" => (&["capital_question"], false),
        "test_input_required_result_list_roots" => (&["client_roots"], false),
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => (&["confirm"], true),
        "test_input_required_result_multiple_inputs" => (&["user_name", "greeting", "client_roots"], true),
        _ => (&["user_name"], false),
    };
    if !answered(answers, keys) {
        return Ok(ask(&questions(keys), needs_state.then(|| sealed(&request.name, "1"))).into());
    }
    if needs_state && state.is_none() {
        return Err(ErrorData::invalid_params("The requestState is missing.", None));
    }
    let heard = keys.iter().map(|key| spoken(answers, key)).collect::<Vec<_>>().join(", ");
    let text = match request.name.as_ref() {
        "test_input_required_result_request_state" => "state-ok".to_owned(),
        "test_input_required_result_elicitation" => format!("Hello, {heard}!"),
        _ => format!("Heard: {heard}"),
    };
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

fn multi_round(tool: &str, state: Option<&str>, answers: Option<&InputResponses>) -> CallToolResponse {
    match state {
        Some("1") if answered(answers, &["step1"]) => ask(&questions(&["step2"]), Some(sealed(tool, "2"))).into(),
        Some("2") if answered(answers, &["step2"]) => CallToolResult::success(vec![ContentBlock::text("All rounds are done.")]).into(),
        Some("2") => ask(&questions(&["step2"]), Some(sealed(tool, "2"))).into(),
        _ => ask(&questions(&["step1"]), Some(sealed(tool, "1"))).into(),
    }
}

pub(super) fn get_prompt(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let answers = request.input_responses.as_ref();
    if !answered(answers, &["user_context"]) {
        return Ok(ask(&questions(&["user_context"]), None).into());
    }
    let text = format!("The context is {}.", spoken(answers, "user_context"));
    Ok(GetPromptResult::new(fixture(json!([{ "role": "user", "content": { "type": "text", "text": text } }]))).into())
}

fn questions(keys: &[&str]) -> Map<String, Value> {
    keys.iter().map(|key| ((*key).to_owned(), question(key))).collect()
}

fn question(key: &str) -> Value {
    let form = |message: &str, field: &str, kind: &str| {
        let schema = json!({ "type": "object", "properties": { field: { "type": kind } }, "required": [field] });
        json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": schema } })
    };
    let prompt = |text: &str, most: u32| {
        let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
        json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": most } })
    };
    match key {
        "capital_question" => prompt("What is the capital of France?", 100),
        "greeting" => prompt("Generate a greeting", 50),
        "client_roots" => json!({ "method": "roots/list", "params": {} }),
        "confirm" => form("Please confirm", "ok", "boolean"),
        "step1" => form("Step 1: What is your name?", "name", "string"),
        "step2" => form("Step 2: What is your favorite color?", "color", "string"),
        "user_context" => form("What context should the prompt use?", "context", "string"),
        _ => form("What is your name?", "name", "string"),
    }
}

fn ask(questions: &Map<String, Value>, state: Option<String>) -> InputRequiredResult {
    let mut result = json!({ "resultType": "input_required", "inputRequests": questions });
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    fixture(result)
}

fn answered(answers: Option<&InputResponses>, keys: &[&str]) -> bool {
    keys.iter().all(|key| answers.and_then(|answers| answers.get(*key)).is_some_and(Value::is_object))
}

/// The words in an answer, whichever kind it is.
fn spoken(answers: Option<&InputResponses>, key: &str) -> String {
    let Some(answer) = answers.and_then(|answers| answers.get(key)) else { return String::new() };
    let text = answer["content"]["text"].as_str().or_else(|| answer["content"]["name"].as_str());
    text.map_or_else(|| answer.get("roots").or_else(|| answer.get("content")).map(Value::to_string).unwrap_or_default(), str::to_owned)
}

fn sealed(tool: &str, state: &str) -> String {
    format!("{state}.{:016x}", SEAL.hash_one((tool, state)))
}

fn opened<'a>(tool: &str, text: &'a str) -> Result<&'a str, ErrorData> {
    let state = text.split_once('.').map(|(state, _)| state).filter(|state| sealed(tool, state) == text);
    state.ok_or_else(|| ErrorData::invalid_params("The requestState is not one that this server gave out.", None))
}
