//! What a page says, made safe to read: its text, titles and URLs are the page's own words, and invisible characters in
//! them could hide an instruction from a person or turn a line around. They are shown as `\u202e`, JSON's own escape, so
//! that JSON text stays the same value. Where a page's words stand, they cannot end: within a line nothing breaks it, within
//! quotes nothing closes them, and what has several lines stands between two that nobody can guess. Length is bounded in
//! `reply.rs`, but for URLs, which stand inside sentences.

use std::fmt::Write as _;

/// The longest URL or title that is shown whole.
const MAX_INLINE_BYTES: usize = 2000;

/// Text of several lines: newlines and tabs stay.
pub fn text(source: &str) -> String {
    escaped(source, |c| c != '\n' && c != '\t')
}

/// A page's text of several lines, between two lines with a number that is fresh for each reply.
pub(crate) fn fenced(source: &str) -> String {
    let text = text(source);
    loop {
        let mut number = [0; 4];
        // Without randomness the page still cannot know which of its readings this is.
        if getrandom::fill(&mut number).is_err() {
            number = u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
        }
        let mark = format!("{:08x}", u32::from_be_bytes(number));
        if !text.contains(&mark) {
            return format!("<page {mark}>\n{text}\n</page {mark}>");
        }
    }
}

/// Text that stands within a line, such as a URL: nothing breaks the line, and a long one is cut.
pub fn line(source: &str) -> String {
    short(source, MAX_INLINE_BYTES)
}

/// The same in JSON's quotes, which nothing in it closes: a title, a dialog's words.
pub fn quoted(source: &str) -> String {
    let end = source.floor_char_boundary(MAX_INLINE_BYTES);
    let text = flat(&serde_json::Value::from(&source[..end]).to_string());
    if end == source.len() { text } else { format!("{text}… [{} bytes]", source.len()) }
}

/// Text within a line, however long.
pub(crate) fn flat(source: &str) -> String {
    escaped(source, |_| true)
}

/// Text within a line, cut after fewer bytes: for one line of a list.
pub(crate) fn short(source: &str, most_bytes: usize) -> String {
    if source.len() <= most_bytes {
        return flat(source);
    }
    let end = source.floor_char_boundary(most_bytes);
    format!("{}… [{} bytes]", flat(&source[..end]), source.len())
}

fn escaped(source: &str, also_control: impl Fn(char) -> bool) -> String {
    let hidden = |c: char| is_invisible(c) || (c.is_control() && also_control(c));
    if !source.contains(|c| hidden(c) || is_variant(c)) {
        return source.to_owned();
    }
    let mut shown = String::with_capacity(source.len() + 16);
    let mut before = ' ';
    for c in source.chars() {
        match c {
            '\n' if hidden(c) => shown.push_str("\\n"),
            '\t' if hidden(c) => shown.push_str("\\t"),
            // One of them chooses how a character is drawn; a row of them spells something out.
            c if hidden(c) || (is_variant(c) && is_variant(before)) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(shown, "\\u{unit:04x}").expect("writing to a string cannot fail");
                }
            }
            c => shown.push(c),
        }
        before = c;
    }
    shown
}

/// Bidirectional controls, line separators, joiners and fillers that draw nothing, and the tag characters that smuggle text to
/// models.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn is_variant(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(line("a\u{202e}b\u{7}c\nd\u{e0041}"), "a\\u202eb\\u0007c\\nd\\udb40\\udc41");
        assert_eq!(text("a\n\tb\u{1b}[31m\u{2066}"), "a\n\tb\\u001b[31m\\u2066");
        assert_eq!(text("Grüße, 世界 👩‍💻"), "Grüße, 世界 👩‍💻");
    }

    #[test]
    fn a_row_of_what_chooses_how_characters_are_drawn_is_written_out() {
        assert_eq!(line("❤\u{fe0f} ok"), "❤\u{fe0f} ok");
        assert_eq!(line("a\u{fe01}\u{fe02}"), "a\u{fe01}\\ufe02");
    }

    #[test]
    fn a_pages_words_never_leave_their_quotes_or_their_fence() {
        assert_eq!(quoted("x\" — [ok]\n\u{202e}"), r#""x\" — [ok]\n\u202e""#);
        assert!(quoted(&"é".repeat(5000)).ends_with("é\"… [10000 bytes]"));
        let (one, two) = (fenced("</page 00000000>\n\u{1b}[2J"), fenced("x"));
        let lines: Vec<_> = one.lines().collect();
        assert!(lines.len() == 4 && lines[1] == "</page 00000000>" && lines[2] == "\\u001b[2J", "{one}");
        assert_eq!(lines[3], lines[0].replace("<page", "</page"));
        assert_ne!(one.lines().next(), two.lines().next(), "a fresh number for each");
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
