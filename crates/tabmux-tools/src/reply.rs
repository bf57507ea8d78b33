//! What a successful call gives back. Every text is bounded here, once, because clients refuse or drop large
//! replies (1 MiB for one of them) and models pay for each word.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tabmux_core::{Fault, TabId};
use tabmux_driver::{DriverError, Page};

use crate::visible;

/// The most text one reply carries; the note that says what was cut comes on top.
pub const MAX_TEXT_BYTES: usize = 200_000;

/// The most a page's own words may add to a fault.
const MAX_FAULT_BYTES: usize = 4000;

#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub content: Vec<Content>,
    /// For programs: becomes part of `_meta["tabmux/result"]`.
    pub result: Map<String, Value>,
    /// Only where it holds the whole answer (lists), because some clients show it instead of the text.
    pub structured: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    Image { base64: String, mime: &'static str },
}

impl Reply {
    /// A reply of one text, which must be safe to read already (`visible`).
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(capped(text.into()))], ..Self::default() }
    }

    /// Adds a picture after the text.
    #[must_use]
    pub fn image(mut self, base64: String, mime: &'static str) -> Self {
        self.content.push(Content::Image { base64, mime });
        self
    }

    /// Adds something for programs.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.result.insert(key.to_owned(), value.into());
        self
    }

    /// Adds which tab the reply is about and where it is now (S2.26).
    #[must_use]
    pub fn about(self, tab: TabId, page: &Arc<dyn Page>) -> Self {
        let reply = self.with("tabId", tab.to_string()).with("url", visible::line(&page.url())).with("title", visible::line(&page.title()));
        match page.unreachable() {
            Some(why) => reply.with("unreachable", visible::line(&why)),
            None => reply,
        }
    }

    #[must_use]
    pub fn structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// Puts what is read and seen into an object, for surfaces that answer with one: `text`, and `images` where there are any.
    pub fn put_content(&mut self, data: &mut Map<String, Value>) {
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for part in std::mem::take(&mut self.content) {
            match part {
                Content::Text(text) => texts.push(text),
                Content::Image { base64, mime } => images.push(json!({ "mimeType": mime, "data": base64 })),
            }
        }
        data.insert("text".into(), texts.join("\n").into());
        if !images.is_empty() {
            data.insert("images".into(), images.into());
        }
    }

    /// Takes the members of `structured` out, for surfaces that answer with one object.
    pub fn take_members(&mut self) -> Map<String, Value> {
        match self.structured.take() {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        }
    }
}

/// Where a page is: `https://a.test/ — "Title"`, as far as there is a title.
pub fn place(page: &dyn Page) -> String {
    placed(&page.url(), &page.title(), page.unreachable().as_deref())
}

/// That a page was just sent where it is, and what its server had against it.
pub(crate) fn arrived(how: &str, tab: TabId, page: &Arc<dyn Page>) -> Reply {
    match page.status().filter(|status| *status >= 400) {
        None => Reply::text(format!("{how} {}.", place(&**page))).about(tab, page),
        Some(status) => Reply::text(format!("{how} {} (HTTP {status}).", place(&**page))).about(tab, page).with("httpStatus", status),
    }
}

/// Only what the page says of itself is in quotes: none can say that it could not be reached.
pub(crate) fn placed(url: &str, title: &str, unreachable: Option<&str>) -> String {
    let url = visible::line(url);
    match unreachable {
        Some(why) => format!("{url} — could not be reached: {}", visible::line(why)),
        None if title.is_empty() => url,
        None => format!("{url} — {}", visible::quoted(title)),
    }
}

/// A driver's fault, in which the page may have a say: a thrown text, a dialog's text.
pub(crate) fn failed(error: DriverError) -> Fault {
    let fault = Fault::from(error);
    Fault { message: shortened(visible::flat(&fault.message)), ..fault }
}

fn shortened(mut message: String) -> String {
    let whole = message.len();
    if whole > MAX_FAULT_BYTES {
        message.truncate(message.floor_char_boundary(MAX_FAULT_BYTES));
        message.push_str(&format!("… [{whole} bytes]."));
    }
    message
}

/// `1 tab`, `2 tabs`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `312 B`, `1.2 kB`, `3.4 MB`.
pub(crate) fn sized(bytes: u64) -> String {
    let scaled = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", scaled(1_000)),
        _ => format!("{} MB", scaled(1_000_000)),
    }
}

fn capped(mut text: String) -> String {
    let whole = text.len();
    if whole > MAX_TEXT_BYTES {
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        text.truncate(end);
        text.push_str(&format!("…\n[Cut by tabmux: the first {end} of {whole} bytes. Ask for less to see the rest.]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_of_structured_data_are_taken_once_and_only_of_an_object() {
        let mut reply = Reply::text("1 tab").structured(serde_json::json!({ "pages": [1] }));
        assert_eq!(Value::Object(reply.take_members()), serde_json::json!({ "pages": [1] }));
        assert!(reply.take_members().is_empty() && reply.structured(1.into()).take_members().is_empty());
    }

    #[test]
    fn what_a_page_throws_is_bounded_and_visible_in_the_fault() {
        let fault = failed(DriverError::ScriptFailed(format!("a\u{202e}{}", "é".repeat(10_000))));
        assert!(fault.message.starts_with("The script failed: a\\u202eé"), "{fault}");
        assert!(fault.message.len() < MAX_FAULT_BYTES + 40 && fault.message.ends_with("… [20027 bytes]."), "{fault}");
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!([0, 999, 1_000, 1_290, 999_999, 3_450_000].map(sized), ["0 B", "999 B", "1.0 kB", "1.2 kB", "999.9 kB", "3.4 MB"]);
    }

    #[test]
    fn a_reply_is_cut_between_characters_and_says_so() {
        let Content::Text(text) = &Reply::text("é".repeat(150_000)).content[0] else { panic!("a text") };
        assert!(text.ends_with("é…\n[Cut by tabmux: the first 200000 of 300000 bytes. Ask for less to see the rest.]"));
        assert!(text.len() < MAX_TEXT_BYTES + 100);
        let whole = "x".repeat(MAX_TEXT_BYTES);
        assert_eq!(Reply::text(whole.clone()).content, [Content::Text(whole)]);
    }
}
