//! What a page says, made safe to read: its text, titles and URLs are the page's own words, and invisible characters in
//! them could hide an instruction from a person or turn a line around. They are shown as `\u202e`, JSON's own escape, so
//! that JSON text stays the same value. Length is bounded in `reply.rs`, but for URLs, which stand inside sentences.

use std::fmt::Write as _;

/// The longest URL or title that is shown whole.
const MAX_INLINE_BYTES: usize = 2000;

/// Text of several lines: newlines and tabs stay.
pub fn text(source: &str) -> String {
    escaped(source, |c| c != '\n' && c != '\t')
}

/// Text that stands within a line, such as a URL or a title: nothing breaks the line, and a long one is cut.
pub fn line(source: &str) -> String {
    short(source, MAX_INLINE_BYTES)
}

/// The same, cut after fewer bytes: for one line of a list.
pub(crate) fn short(source: &str, most_bytes: usize) -> String {
    if source.len() <= most_bytes {
        return escaped(source, |_| true);
    }
    let end = source.floor_char_boundary(most_bytes);
    format!("{}… [{} bytes]", escaped(&source[..end], |_| true), source.len())
}

fn escaped(source: &str, also_control: impl Fn(char) -> bool) -> String {
    let hidden = |c: char| is_invisible(c) || (c.is_control() && also_control(c));
    if !source.contains(hidden) {
        return source.to_owned();
    }
    let mut shown = String::with_capacity(source.len() + 16);
    for c in source.chars() {
        if hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(shown, "\\u{unit:04x}").expect("writing to a string cannot fail");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Bidirectional controls, line separators, joiners that draw nothing, and the tag characters that smuggle text to models.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(line("a\u{202e}b\u{7}c\nd\u{e0041}"), "a\\u202eb\\u0007c\\u000ad\\udb40\\udc41");
        assert_eq!(text("a\n\tb\u{1b}[31m\u{2066}"), "a\n\tb\\u001b[31m\\u2066");
        assert_eq!(text("Grüße, 世界 👩‍💻"), "Grüße, 世界 👩‍💻");
    }

    #[test]
    fn json_text_keeps_its_value() {
        let value = serde_json::json!({ "a": "x\u{202e}y\u{85}\u{e0041}" });
        let shown = text(&value.to_string());
        assert!(shown.contains("\\u202e") && shown.contains("\\u0085"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_long_url_is_cut_and_says_how_long_it_was() {
        let url = format!("data:,{}", "é".repeat(5000));
        let shown = line(&url);
        assert!(shown.len() < 2100 && shown.ends_with("… [10006 bytes]"), "{shown}");
    }
}
