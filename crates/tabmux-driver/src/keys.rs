//! Keys by the names people and pages give them (`Enter`, `Control+A`, `ä`), on a plain US keyboard: what a page is told of a
//! key when it is pressed. Which messages that becomes is the driver's business.

use crate::act::Modifiers;
use crate::{DriverError, Result};

/// One key with the modifiers held meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chord {
    pub modifiers: Modifiers,
    pub key: Key,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// `KeyboardEvent.key`.
    pub key: String,
    /// `KeyboardEvent.code`; empty for a character that no key of this keyboard has.
    pub code: &'static str,
    /// `KeyboardEvent.keyCode`, which old pages read.
    pub number: u16,
    /// What it writes.
    pub text: Option<String>,
    /// Whether Shift is held to get it.
    pub shifted: bool,
}

/// Keys that write nothing, or what they write: name, code, number, text.
const NAMED: &[(&str, &str, u16, Option<&str>)] = &[
    ("Enter", "Enter", 13, Some("\r")),
    ("Tab", "Tab", 9, None),
    ("Backspace", "Backspace", 8, None),
    ("Delete", "Delete", 46, None),
    ("Escape", "Escape", 27, None),
    ("ArrowUp", "ArrowUp", 38, None),
    ("ArrowDown", "ArrowDown", 40, None),
    ("ArrowLeft", "ArrowLeft", 37, None),
    ("ArrowRight", "ArrowRight", 39, None),
    ("Home", "Home", 36, None),
    ("End", "End", 35, None),
    ("PageUp", "PageUp", 33, None),
    ("PageDown", "PageDown", 34, None),
    ("Insert", "Insert", 45, None),
    ("F1", "F1", 112, None),
    ("F2", "F2", 113, None),
    ("F3", "F3", 114, None),
    ("F4", "F4", 115, None),
    ("F5", "F5", 116, None),
    ("F6", "F6", 117, None),
    ("F7", "F7", 118, None),
    ("F8", "F8", 119, None),
    ("F9", "F9", 120, None),
    ("F10", "F10", 121, None),
    ("F11", "F11", 122, None),
    ("F12", "F12", 123, None),
    ("Shift", "ShiftLeft", 16, None),
    ("Control", "ControlLeft", 17, None),
    ("Alt", "AltLeft", 18, None),
    ("Meta", "MetaLeft", 91, None),
    ("CapsLock", "CapsLock", 20, None),
    ("ContextMenu", "ContextMenu", 93, None),
];

/// Other names for the same keys.
const ALIASES: &[(&str, &str)] = &[
    ("return", "Enter"),
    ("esc", "Escape"),
    ("del", "Delete"),
    ("ins", "Insert"),
    ("up", "ArrowUp"),
    ("down", "ArrowDown"),
    ("left", "ArrowLeft"),
    ("right", "ArrowRight"),
    ("ctrl", "Control"),
    ("cmd", "Meta"),
    ("command", "Meta"),
    ("option", "Alt"),
    ("numpadenter", "Enter"),
    ("pgup", "PageUp"),
    ("pgdn", "PageDown"),
];

/// The two characters on a key, its code and number.
const SIGNS: &[(char, char, &str, u16)] = &[
    ('`', '~', "Backquote", 192),
    ('-', '_', "Minus", 189),
    ('=', '+', "Equal", 187),
    ('[', '{', "BracketLeft", 219),
    (']', '}', "BracketRight", 221),
    ('\\', '|', "Backslash", 220),
    (';', ':', "Semicolon", 186),
    ('\'', '"', "Quote", 222),
    (',', '<', "Comma", 188),
    ('.', '>', "Period", 190),
    ('/', '?', "Slash", 191),
    (' ', ' ', "Space", 32),
];

const SHIFTED_DIGITS: &[u8] = b")!@#$%^&*(";

const DIGITS: [&str; 10] = ["Digit0", "Digit1", "Digit2", "Digit3", "Digit4", "Digit5", "Digit6", "Digit7", "Digit8", "Digit9"];

const LETTERS: [&str; 26] = [
    "KeyA", "KeyB", "KeyC", "KeyD", "KeyE", "KeyF", "KeyG", "KeyH", "KeyI", "KeyJ", "KeyK", "KeyL", "KeyM", "KeyN", "KeyO", "KeyP", "KeyQ",
    "KeyR", "KeyS", "KeyT", "KeyU", "KeyV", "KeyW", "KeyX", "KeyY", "KeyZ",
];

impl Chord {
    /// `Enter`, `a`, `Control+Shift+A`, `Control++`.
    pub fn parse(source: &str) -> Result<Self> {
        let text = if source == " " { source } else { source.trim() };
        let (held, name) = match text.strip_suffix("++") {
            Some(held) => (held, "+"),
            None if text == "+" => ("", "+"),
            None => text.rsplit_once('+').unwrap_or(("", text)),
        };
        let mut modifiers = Modifiers::default();
        for name in held.split('+').filter(|name| !name.is_empty()) {
            modifiers.hold(name.trim()).map_err(|_| DriverError::BadKey(source.to_owned()))?;
        }
        let name = if name == " " { name } else { name.trim_start() };
        let mut key = Key::named(name).ok_or_else(|| DriverError::BadKey(source.to_owned()))?;
        // `Control+A` means the key, as shortcuts are written, and not a capital letter.
        if modifiers.command() && !modifiers.shift && key.shifted && key.code.starts_with("Key") {
            key = Key::named(&key.key.to_ascii_lowercase()).unwrap_or(key);
        }
        modifiers.shift |= key.shifted;
        if modifiers.shift && !key.shifted && key.key.len() == 1 {
            key = Key::on_shifted(&key).unwrap_or(key);
        }
        Ok(Self { modifiers, key })
    }
}

impl Key {
    fn named(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("space") {
            return Self::writing(' ');
        }
        let mut letters = name.chars();
        if let (Some(letter), None) = (letters.next(), letters.next()) {
            return Some(Self::writing(letter).unwrap_or_else(|| Self::foreign(letter)));
        }
        let meant = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map_or(name, |(_, meant)| meant);
        let (key, code, number, text) = NAMED.iter().find(|(known, ..)| known.eq_ignore_ascii_case(meant))?;
        Some(Self { key: (*key).to_owned(), code, number: *number, text: text.map(str::to_owned), shifted: false })
    }

    /// The key that writes a character, where the keyboard has one. Line breaks and tabs have theirs.
    pub fn writing(letter: char) -> Option<Self> {
        if letter == '\n' || letter == '\r' {
            return Self::named("Enter");
        }
        if letter == '\t' {
            return Self::named("Tab");
        }
        let (code, number, shifted) = place(letter)?;
        Some(Self { key: letter.to_string(), code, number, text: Some(letter.to_string()), shifted })
    }

    fn foreign(letter: char) -> Self {
        Self { key: letter.to_string(), code: "", number: 0, text: Some(letter.to_string()), shifted: false }
    }

    /// The same key with Shift held.
    fn on_shifted(key: &Self) -> Option<Self> {
        let letter = key.key.chars().next()?;
        let upper = match letter {
            'a'..='z' => letter.to_ascii_uppercase(),
            '0'..='9' => char::from(*SHIFTED_DIGITS.get(usize::from(letter as u8 - b'0'))?),
            _ => SIGNS.iter().find(|(plain, ..)| *plain == letter)?.1,
        };
        Self::writing(upper)
    }
}

fn place(letter: char) -> Option<(&'static str, u16, bool)> {
    if letter.is_ascii_alphabetic() {
        let upper = letter.to_ascii_uppercase() as u8;
        return Some((LETTERS.get(usize::from(upper - b'A'))?, u16::from(upper), letter.is_ascii_uppercase()));
    }
    if letter.is_ascii_digit() {
        return Some((DIGITS.get(usize::from(letter as u8 - b'0'))?, letter as u16, false));
    }
    if let Some(digit) = SHIFTED_DIGITS.iter().position(|sign| char::from(*sign) == letter) {
        return Some((DIGITS.get(digit)?, 48 + u16::try_from(digit).ok()?, true));
    }
    let (plain, _, code, number) = SIGNS.iter().find(|(plain, shifted, ..)| *plain == letter || *shifted == letter)?;
    Some((code, *number, *plain != letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(source: &str) -> (String, &'static str, u16, Option<String>, Modifiers) {
        let Chord { modifiers, key } = Chord::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        (key.key, key.code, key.number, key.text, modifiers)
    }

    #[test]
    fn a_key_is_told_as_a_us_keyboard_would() {
        let (none, shift) = (Modifiers::default(), Modifiers { shift: true, ..Modifiers::default() });
        let control = Modifiers { control: true, ..Modifiers::default() };
        let text = |text: &str| Some(text.to_owned());
        for (source, expected) in [
            ("Enter", ("Enter".to_owned(), "Enter", 13, text("\r"), none)),
            ("esc", ("Escape".to_owned(), "Escape", 27, None, none)),
            ("a", ("a".to_owned(), "KeyA", 65, text("a"), none)),
            ("A", ("A".to_owned(), "KeyA", 65, text("A"), shift)),
            ("Shift+a", ("A".to_owned(), "KeyA", 65, text("A"), shift)),
            ("Shift+1", ("!".to_owned(), "Digit1", 49, text("!"), shift)),
            ("Control+A", ("a".to_owned(), "KeyA", 65, text("a"), control)),
            ("ctrl+a", ("a".to_owned(), "KeyA", 65, text("a"), control)),
            ("Control++", ("+".to_owned(), "Equal", 187, text("+"), Modifiers { control: true, ..shift })),
            ("+", ("+".to_owned(), "Equal", 187, text("+"), shift)),
            ("Space", (" ".to_owned(), "Space", 32, text(" "), none)),
            (" ", (" ".to_owned(), "Space", 32, text(" "), none)),
            ("NumpadEnter", ("Enter".to_owned(), "Enter", 13, text("\r"), none)),
            ("ä", ("ä".to_owned(), "", 0, text("ä"), none)),
            ("Shift+Tab", ("Tab".to_owned(), "Tab", 9, None, shift)),
        ] {
            assert_eq!(told(source), expected, "{source}");
        }
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        for source in ["", "Hyper+a", "Entr", "ab"] {
            assert_eq!(Chord::parse(source).unwrap_err(), DriverError::BadKey(source.to_owned()));
        }
    }

    #[test]
    fn every_printable_ascii_character_has_a_key() {
        for letter in ' '..='~' {
            let key = Key::writing(letter).unwrap_or_else(|| panic!("{letter:?}"));
            assert_eq!(key.text, Some(letter.to_string()));
        }
        assert_eq!(Key::writing('世'), None);
        assert_eq!(Key::writing('\n').unwrap().key, "Enter");
    }
}
