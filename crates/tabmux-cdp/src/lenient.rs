//! Reads JSON that a page had a say in. JavaScript cuts texts between the two halves of a character, and Chromium writes such a
//! half as it is (`\ud83d`), which no Rust string can hold. It is read as U+FFFD, so that one of them does not cost the whole answer.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

pub(crate) fn read<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(json).or_else(|error| match without_halves(json) {
        Cow::Owned(mended) => serde_json::from_slice(&mended),
        Cow::Borrowed(_) => Err(error),
    })
}

/// Every `\uXXXX` that is half a character and stands alone becomes `\uFFFD`.
fn without_halves(json: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Cow::Borrowed(json);
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &json[at..]) {
        at += found;
        at += match (escaped_unit(json, at), escaped_unit(json, at + ESCAPE)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 2 * ESCAPE,
            (Some(0xD800..=0xDFFF), _) => {
                mended.to_mut()[at + 2..at + ESCAPE].copy_from_slice(b"FFFD");
                ESCAPE
            }
            (Some(_), _) => ESCAPE,
            // `\\`, `\"` and the like.
            (None, _) => 2,
        };
        at = at.min(json.len());
    }
    mended
}

/// How long `\uXXXX` is.
const ESCAPE: usize = 6;

fn escaped_unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix(br"\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_is_read_as_one_that_stands_for_it() {
        let cases = [
            (r#""day \ud83d""#, "day \u{fffd}"),
            (r#""\uDE00!""#, "\u{fffd}!"),
            (r#""\ud83d\ud83d\ude00\ude00""#, "\u{fffd}\u{1f600}\u{fffd}"),
            // A backslash and plain letters, not half a character.
            (r#""\\ud83d \ud83d""#, "\\ud83d \u{fffd}"),
            (r#""\ud83d\"\ud83dx\n""#, "\u{fffd}\"\u{fffd}x\n"),
        ];
        for (json, text) in cases {
            assert_eq!(read::<String>(json.as_bytes()).ok().as_deref(), Some(text), "{json}");
        }
    }

    #[test]
    fn what_is_no_json_stays_unread() {
        for json in [r#""\ud83"#, r#""\ud83d"#, r#"{"a":\ud83d}"#, "\\", r#""\u+123 \ud83d"#] {
            assert!(read::<serde_json::Value>(json.as_bytes()).is_err(), "{json}");
        }
    }
}
