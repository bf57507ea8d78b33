//! A tool's answer as MCP carries it, kept under a size every client can take. What an answer says is
//! deliberately absent.

use std::io;

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json};
use tabmux_tools::Content;

use crate::ToolAnswer;

/// The largest result. Python's old-era HTTP client fails on one event over 1 MiB; the rest is the envelope's.
const LARGEST_RESULT: usize = 1024 * 1024 - 8 * 1024;

/// Room for the sentence that says what is missing.
const NOTE_ROOM: usize = 512;

pub(crate) fn to_result(answer: ToolAnswer) -> CallToolResult {
    let mut meta = Map::new();
    let mut facts = answer.result;
    let mut result = match answer.outcome {
        Ok(reply) => {
            facts.extend(reply.result);
            let mut result = CallToolResult::success(reply.content.into_iter().map(block).collect());
            result.structured_content = reply.structured;
            result
        }
        Err(fault) => {
            meta.insert("tabmux/error".into(), json!({ "code": fault.code.name(), "message": fault.message, "hint": fault.hint }));
            CallToolResult::error(vec![ContentBlock::text(fault.to_string())])
        }
    };
    if !facts.is_empty() {
        meta.insert("tabmux/result".into(), Value::Object(facts));
    }
    if !meta.is_empty() {
        result.meta = Some(MetaObject(meta));
    }
    fit(result)
}

fn block(content: Content) -> ContentBlock {
    match content {
        Content::Text(text) => ContentBlock::text(text),
        Content::Image { base64, mime } => ContentBlock::image(base64, mime),
    }
}

/// Makes an over-large result fit, least loss first, and says in the text what is missing.
fn fit(mut result: CallToolResult) -> CallToolResult {
    let whole = serialized_len(&result);
    if whole <= LARGEST_RESULT {
        return result;
    }
    let mut missing = Vec::new();
    if result.structured_content.take().is_some() {
        missing.push("structuredContent".to_owned());
    }
    let excess = |result: &CallToolResult| (serialized_len(result) + NOTE_ROOM).saturating_sub(LARGEST_RESULT);
    let text_bytes: usize = result.content.iter().filter_map(|block| block.as_text()).map(|text| written_len(&text.text)).sum();
    if excess(&result) > text_bytes {
        let before = result.content.len();
        result.content.retain(|block| !matches!(block, ContentBlock::Image(_)));
        missing.push(format!("{} image(s)", before - result.content.len()));
    }
    let over = excess(&result);
    let cut = cut_texts(&mut result.content, over);
    if cut > 0 {
        missing.push(format!("{cut} bytes of text"));
    }
    if excess(&result) > 0 {
        result.meta = None;
        missing.push("_meta".to_owned());
    }
    let note = format!(
        "[cut: the reply was {whole} bytes, over the limit of {LARGEST_RESULT}; missing: {}. Ask for less at a time, or for a file.]",
        missing.join(", ")
    );
    result.content.push(ContentBlock::text(note));
    result
}

/// Cuts what takes `excess` bytes in JSON off the ends of the longest texts, and says how many bytes of text it cut.
fn cut_texts(blocks: &mut [ContentBlock], mut excess: usize) -> usize {
    let mut cut = 0;
    while excess > 0 {
        let texts = blocks.iter_mut().filter_map(|block| if let ContentBlock::Text(text) = block { Some(&mut text.text) } else { None });
        let Some(longest) = texts.max_by_key(|text| text.len()).filter(|text| !text.is_empty()) else { break };
        let mut keep = longest.len();
        for (at, letter) in longest.char_indices().rev() {
            keep = at;
            excess = excess.saturating_sub(written_letter_len(letter));
            if excess == 0 {
                break;
            }
        }
        cut += longest.len() - keep;
        longest.truncate(keep);
    }
    cut
}

/// How many bytes a text takes in JSON, without its quotes.
fn written_len(text: &str) -> usize {
    text.chars().map(written_letter_len).sum()
}

fn written_letter_len(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

fn serialized_len(result: &CallToolResult) -> usize {
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, result).expect("a result is plain data and the counter takes every byte");
    counter.0
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tabmux_core::{Code, Fault};
    use tabmux_tools::Reply;

    fn answer(content: Vec<Content>, structured: Option<Value>) -> ToolAnswer {
        let reply = Reply { content, result: Map::from_iter([("tabId".to_owned(), json!("t1"))]), structured };
        ToolAnswer { outcome: Ok(reply), result: Map::from_iter([("sessionId".to_owned(), json!("web"))]) }
    }

    fn texts(result: &CallToolResult) -> Vec<&str> {
        result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.as_str()).collect()
    }

    #[test]
    fn a_reply_carries_text_and_the_data_for_programs() {
        let result = serde_json::to_value(to_result(answer(vec![Content::Text("Done.".into())], None))).unwrap();
        assert_eq!(result["content"], json!([{ "type": "text", "text": "Done." }]));
        assert_eq!(result["_meta"]["tabmux/result"], json!({ "sessionId": "web", "tabId": "t1" }));
        assert_eq!((&result["isError"], result.get("structuredContent")), (&json!(false), None));
    }

    #[test]
    fn a_fault_is_an_error_with_its_code_in_text_and_data() {
        let fault = Fault::new(Code::SessionNotFound, "No session: web.", "Call list_sessions.");
        let result = serde_json::to_value(to_result(ToolAnswer { outcome: Err(fault), result: Map::new() })).unwrap();
        assert_eq!(result["isError"], json!(true));
        assert_eq!(result["content"][0]["text"], "[session_not_found] No session: web. Call list_sessions.");
        let expected = json!({ "code": "session_not_found", "message": "No session: web.", "hint": "Call list_sessions." });
        assert_eq!(result["_meta"]["tabmux/error"], expected);
    }

    #[test]
    fn an_over_large_text_is_cut_and_says_so() {
        for letter in ["x", "é", "\"", "\n", "\u{1}"] {
            let result = to_result(answer(vec![Content::Text("short".into()), Content::Text(letter.repeat(3 * 1024 * 1024))], None));
            let bytes = serialized_len(&result);
            assert!(bytes <= LARGEST_RESULT && bytes > LARGEST_RESULT - 2 * NOTE_ROOM, "{letter:?}: {bytes}");
            let texts = texts(&result);
            assert_eq!(texts[0], "short");
            assert!(texts[1].starts_with(letter));
            assert!(texts[2].starts_with("[cut: the reply was ") && texts[2].contains("bytes of text"), "{}", texts[2]);
        }
    }

    #[test]
    fn structured_data_goes_before_text_and_images_go_last() {
        let big = "x".repeat(700_000);
        let kept = to_result(answer(vec![Content::Text(big.clone())], Some(json!({ "all": big }))));
        assert_eq!((texts(&kept)[0].len(), &kept.structured_content), (700_000, &None));
        let image = Content::Image { base64: "A".repeat(2_000_000), mime: "image/png" };
        let result = to_result(answer(vec![Content::Text("Here.".into()), image], None));
        assert!(serialized_len(&result) <= LARGEST_RESULT && result.content.iter().all(|block| block.as_text().is_some()));
        assert!(texts(&result)[0] == "Here." && texts(&result)[1].contains("1 image(s)"), "{:?}", texts(&result));
    }
}
