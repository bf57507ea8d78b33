//! What a request says about who sent it: the client program's name and the agent within the client. Identity
//! and rights are deliberately absent: nothing here is proof of anything.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{Implementation, ProtocolVersion};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};
use tabmux_wire::hello::WAITED_META;

/// Where clients name the agent within them (C8): Codex `threadId`, OpenCode `sessionID`, VS Code
/// `vscode.conversationId`. Each also counts behind a vendor's prefix, `com.example/threadId`.
const AGENT_KEYS: [&str; 3] = ["threadId", "sessionID", "vscode.conversationId"];

/// Longer values are not names; they are left out rather than cut, so that two agents never become one.
const LONGEST_NAME: usize = 256;

/// The agent within the client, if the request's `_meta` names one.
pub(crate) fn agent(meta: &Map<String, Value>) -> Option<String> {
    AGENT_KEYS.iter().find_map(|key| {
        let prefixed = || meta.iter().find(|(name, _)| name.rsplit_once('/').is_some_and(|(_, last)| last == *key));
        let value = meta.get(*key).or_else(|| prefixed().map(|(_, value)| value))?;
        let name = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        (!name.is_empty() && name.len() <= LONGEST_NAME).then_some(name)
    })
}

/// How long its client has waited for this call at a daemon that is gone; a shim says so.
pub(crate) fn waited(meta: &Map<String, Value>) -> Duration {
    meta.get(WAITED_META).and_then(Value::as_u64).map_or(Duration::ZERO, Duration::from_millis)
}

/// What the client program calls itself: in this request's `_meta`, or at `initialize`. rmcp fills in its own
/// name where a client said nothing, which is no answer.
pub(crate) fn client_name(context: &RequestContext<RoleServer>) -> Option<String> {
    let at_initialize = || context.peer.peer_info().map(|info| info.client_info.clone()).filter(|info| *info != Implementation::default());
    let name = context.meta.client_info().or_else(at_initialize)?.name;
    (!name.is_empty() && name.len() <= LONGEST_NAME).then_some(name)
}

/// Whether the request speaks 2026-07-28 or later, where results carry caching hints.
pub(crate) fn is_new_era(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn agent_of(meta: &Value) -> Option<String> {
        agent(meta.as_object().unwrap())
    }

    #[test]
    fn how_long_a_call_was_waited_for_is_a_number_or_nothing() {
        let waited = |meta: Value| waited(meta.as_object().unwrap());
        assert_eq!(waited(json!({ "tabmux/waitedMs": 1500 })), Duration::from_millis(1500));
        for odd in [json!({}), json!({ "tabmux/waitedMs": -1 }), json!({ "tabmux/waitedMs": "1" })] {
            assert_eq!(waited(odd), Duration::ZERO);
        }
    }

    #[test]
    fn an_agent_is_found_under_the_keys_clients_use() {
        assert_eq!(agent_of(&json!({ "threadId": "a" })).as_deref(), Some("a"));
        assert_eq!(agent_of(&json!({ "sessionID": "b" })).as_deref(), Some("b"));
        assert_eq!(agent_of(&json!({ "vscode.conversationId": "c" })).as_deref(), Some("c"));
        assert_eq!(agent_of(&json!({ "com.example/threadId": 7 })).as_deref(), Some("7"));
    }

    #[test]
    fn other_keys_and_unfit_values_name_nobody() {
        for meta in [
            json!({}),
            json!({ "threadid": "a" }),
            json!({ "threadId": {} }),
            json!({ "threadId": "" }),
            json!({ "threadId": "x".repeat(257) }),
        ] {
            assert_eq!(agent_of(&meta), None, "{meta}");
        }
    }
}
