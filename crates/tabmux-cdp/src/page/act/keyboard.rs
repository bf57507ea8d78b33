//! Keys, as messages.

use tabmux_driver::{Chord, Key, Modifiers, Result};

use super::CdpPage;
use super::pointer::bits;
use crate::protocol::input::{DispatchKeyEvent, InsertText};

/// How many keys of a text are under way at once: a page that goes away takes few of them with it.
const AT_ONCE: usize = 100;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    Key(Key),
    /// Characters that no key writes.
    Insert(String),
}

impl Stroke {
    pub(super) fn downs(&self) -> usize {
        usize::from(matches!(self, Self::Key(_)))
    }
}

impl CdpPage {
    pub(super) async fn press_keys(&self, events: &[DispatchKeyEvent]) -> Result<()> {
        self.send_all(events).await
    }

    pub(super) async fn insert(&self, text: &str) -> Result<()> {
        self.send_all(&[InsertText { text: text.to_owned() }]).await
    }

    pub(super) async fn type_keys(&self, strokes: &[Stroke]) -> Result<()> {
        // What one kind of message ends, the next kind follows.
        for run in strokes.chunk_by(|one, next| one.downs() == next.downs()) {
            for part in run.chunks(AT_ONCE) {
                let mut keys = Vec::new();
                for stroke in part {
                    match stroke {
                        Stroke::Key(key) => keys.extend(pair(key, Modifiers { shift: key.shifted, ..Modifiers::default() })),
                        Stroke::Insert(text) => self.insert(text).await?,
                    }
                }
                if !keys.is_empty() {
                    self.press_keys(&keys).await?;
                }
            }
        }
        Ok(())
    }
}

/// The keys of a text; what the keyboard lacks is inserted.
pub(super) fn strokes(text: &str) -> Vec<Stroke> {
    let mut strokes = Vec::new();
    for letter in text.replace("\r\n", "\n").chars() {
        match (Key::writing(letter), strokes.last_mut()) {
            (Some(key), _) => strokes.push(Stroke::Key(key)),
            (None, Some(Stroke::Insert(text))) => text.push(letter),
            (None, _) => strokes.push(Stroke::Insert(letter.to_string())),
        }
    }
    strokes
}

/// A key with its modifiers, each pressed and released.
pub(super) fn chord(chord: &Chord) -> Vec<DispatchKeyEvent> {
    let Modifiers { alt, control, meta, shift } = chord.modifiers;
    let held = [(control, "Control"), (shift, "Shift"), (alt, "Alt"), (meta, "Meta")];
    let held: Vec<Key> = held
        .into_iter()
        .filter(|(held, name)| *held && *name != chord.key.key)
        .filter_map(|(_, name)| Chord::parse(name).ok().map(|chord| chord.key))
        .collect();
    let mut now = Modifiers::default();
    let mut events = Vec::new();
    for key in &held {
        hold(&mut now, key, Held::Down);
        events.push(event("rawKeyDown", key, now));
    }
    events.extend(pair(&chord.key, chord.modifiers));
    for key in held.iter().rev() {
        hold(&mut now, key, Held::Up);
        events.push(event("keyUp", key, now));
    }
    events
}

/// How often the page hears of a key going down.
pub(super) fn downs(events: &[DispatchKeyEvent]) -> usize {
    events.iter().filter(|event| event.kind != "keyUp").count()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Down,
    Up,
}

fn hold(modifiers: &mut Modifiers, key: &Key, held: Held) {
    let down = held == Held::Down;
    match key.key.as_str() {
        "Alt" => modifiers.alt = down,
        "Control" => modifiers.control = down,
        "Meta" => modifiers.meta = down,
        _ => modifiers.shift = down,
    }
}

fn pair(key: &Key, modifiers: Modifiers) -> [DispatchKeyEvent; 2] {
    let text = key.text.clone().filter(|_| !modifiers.command());
    let down = event(if text.is_some() { "keyDown" } else { "rawKeyDown" }, key, modifiers);
    let down = DispatchKeyEvent { unmodified_text: text.clone(), text, ..down };
    [down, event("keyUp", key, modifiers)]
}

fn event(kind: &str, key: &Key, modifiers: Modifiers) -> DispatchKeyEvent {
    DispatchKeyEvent {
        kind: kind.to_owned(),
        modifiers: Some(bits(modifiers)),
        key: Some(key.key.clone()),
        code: Some(key.code.to_owned()),
        windows_virtual_key_code: Some(i64::from(key.number)),
        native_virtual_key_code: Some(i64::from(key.number)),
        ..DispatchKeyEvent::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(source: &str) -> Vec<(String, String, i64, Option<String>)> {
        let events = chord(&Chord::parse(source).unwrap());
        events
            .into_iter()
            .map(|event| (event.kind, event.key.unwrap_or_default(), event.modifiers.unwrap_or_default(), event.text))
            .collect()
    }

    #[test]
    fn modifiers_go_down_before_the_key_and_up_after_it() {
        let row = |kind: &str, key: &str, bits, text: Option<&str>| (kind.to_owned(), key.to_owned(), bits, text.map(str::to_owned));
        assert_eq!(
            told("Control+A"),
            [
                row("rawKeyDown", "Control", 2, None),
                row("rawKeyDown", "a", 2, None),
                row("keyUp", "a", 2, None),
                row("keyUp", "Control", 0, None)
            ]
        );
        assert_eq!(told("Enter"), [row("keyDown", "Enter", 0, Some("\r")), row("keyUp", "Enter", 0, None)]);
        assert_eq!(told("Shift"), [row("rawKeyDown", "Shift", 0, None), row("keyUp", "Shift", 0, None)]);
    }

    #[test]
    fn a_text_is_keys_and_what_no_key_writes() {
        let kinds: Vec<_> = strokes("aé世\r\nb")
            .iter()
            .map(|stroke| match stroke {
                Stroke::Key(key) => key.key.clone(),
                Stroke::Insert(text) => format!("+{text}"),
            })
            .collect();
        assert_eq!(kinds, ["a", "+é世", "Enter", "b"]);
    }
}
