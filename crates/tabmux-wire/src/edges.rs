//! The id of a JSON-RPC message of which only the first and the last bytes are there, because it was too long or
//! could not be parsed: it is answered under its own id. Everything else about MCP is deliberately absent.

use serde_json::Value;

/// An id is echoed in every answer, so it may not be long.
pub const LONGEST_ID: usize = 1024;

/// Whether this is an id that a request may have: a text that is not too long, or an integer.
pub fn is_id(id: &Value) -> bool {
    match id {
        Value::Number(number) => number.is_i64(),
        Value::String(text) => text.len() <= LONGEST_ID,
        _ => false,
    }
}

/// Looks for the id of a message that cannot be read whole, in its head and in its tail.
pub fn find_id(head: &[u8], tail: &[u8]) -> Option<Value> {
    id_in_head(head).or_else(|| id_in_tail(tail))
}

/// Walks the outermost object from its start, up to its own `"id"`.
fn id_in_head(head: &[u8]) -> Option<Value> {
    let (mut depth, mut at) = (0_u32, 0);
    while at < head.len() {
        match head[at] {
            b'"' => {
                let end = string_end(head, at)?;
                let is_key = depth == 1 && &head[at..end] == b"\"id\"";
                if let Some((id, _)) = is_key.then(|| value_after_colon(&head[end..])).flatten() {
                    return is_id(&id).then_some(id);
                }
                at = end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Finds the last `"id"` after which exactly the outermost object ends. A quote inside a string is escaped,
/// so a bare `"id":` is always a key.
fn id_in_tail(tail: &[u8]) -> Option<Value> {
    let keys = (0..tail.len()).rev().filter(|at| tail[*at..].starts_with(b"\"id\"") && (*at == 0 || tail[at - 1] != b'\\'));
    let mut ids = keys.filter_map(|at| {
        let after_key = &tail[at + 4..];
        let (id, used) = value_after_colon(after_key)?;
        (is_id(&id) && ends_the_object(&after_key[used..])).then_some(id)
    });
    ids.next()
}

/// Whether the rest closes one object, the outermost, and nothing comes after it.
fn ends_the_object(rest: &[u8]) -> bool {
    let (mut depth, mut at) = (1_u32, 0);
    while at < rest.len() {
        match rest[at] {
            b'"' => match string_end(rest, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => return false,
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return rest[at + 1..].iter().all(u8::is_ascii_whitespace),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    false
}

/// The index after the string that starts at `start`.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// The whole value behind `:`, and the bytes it took with the colon.
fn value_after_colon(text: &[u8]) -> Option<(Value, usize)> {
    let colon = text.iter().position(|byte| !byte.is_ascii_whitespace()).filter(|at| text[*at] == b':')?;
    let rest = &text[colon + 1..];
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let used = values.byte_offset();
    // At the very end of what was kept, a number may have lost digits.
    (used < rest.len()).then_some((value, colon + 1 + used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_id_of_an_over_long_message_is_found_at_either_end_and_never_guessed() {
        for (head, tail, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"text":"aaaa"#, "aaa", json!(7)),
            (r#"{"params":{"id":5,"text":"aaaa"#, r#"aaa"},"id":"b","method":"x"}"#, json!("b")),
            (r#"{"params":{"id":5,"text":"aaaa"#, r#"aaa","id":6}}"#, json!(null)),
            (r#"{"params":"aaaa"#, r#"aaa\"id\":6}"#, json!(null)),
            (r#"{"params":"aaaa"#, r#"aaa"},"id":8} "#, json!(8)),
            (r#"{"method":"x","id":12"#, "aaa", json!(null)),
            (r#"["id",{"id":3}"#, "aaa", json!(null)),
            (r#"{"method":"a\"b","params":{"id":1},"id" : "q\"r","#, "", json!("q\"r")),
            (r#"{"params":{"x":"aa"#, r#"aaaa"},"id":-3,"method":"m"} "#, json!(-3)),
        ] {
            assert_eq!(find_id(head.as_bytes(), tail.as_bytes()).unwrap_or(Value::Null), id, "{head} … {tail}");
        }
    }
}
