//! What was copied in a context. Chromium has one clipboard for all contexts, in a headed browser the person's own, so pages
//! never reach it: a script that runs before theirs (`clipboard.js`) sends what they copy here and asks here for what they
//! paste. Only text is kept. A site may read back what it copied itself; what another site copied it may read only when
//! `clipboard-read` was granted; keys may paste always, because the one who presses them decides.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::json;
use tabmux_driver::Permission;

use crate::protocol::page::AddScriptToEvaluateOnNewDocument;
use crate::protocol::runtime::AddBinding;

/// More than this is cut: it passes through the daemon's memory.
const MAX_COPIED_BYTES: usize = 1024 * 1024;

/// The second goes along with the first: a script more would be a message more for each page and frame.
const SCRIPT: &str = concat!(include_str!("clipboard.js"), include_str!("print.js"));

#[derive(Debug)]
pub(crate) struct Clipboard {
    /// What the script and this side call each other. A page does not get to know it, and it is the same for the next daemon.
    name: String,
    copied: Mutex<Option<Copied>>,
}

#[derive(Clone, Debug)]
struct Copied {
    text: String,
    origin: String,
}

/// What the script says.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Word {
    Copy {
        text: String,
        origin: String,
    },
    /// A script of the page reads.
    Read {
        id: u64,
        origin: String,
    },
    /// A key was pressed.
    Paste {
        id: u64,
    },
}

impl Clipboard {
    pub(super) fn new(handle: &str) -> Self {
        let name =
            handle.chars().filter(char::is_ascii_alphanumeric).fold("c".to_owned(), |name, letter| name + letter.encode_utf8(&mut [0; 4]));
        Self { name, copied: Mutex::default() }
    }

    fn copied(&self) -> MutexGuard<'_, Option<Copied>> {
        self.copied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What a page or a frame is given to have it; the second needs the first.
    pub(crate) fn hands(&self) -> (AddBinding, AddScriptToEvaluateOnNewDocument) {
        let binding = AddBinding { name: self.name.clone(), ..AddBinding::default() };
        let script = AddScriptToEvaluateOnNewDocument {
            source: SCRIPT.replace("$NAME", &self.name),
            run_immediately: Some(true),
            ..AddScriptToEvaluateOnNewDocument::default()
        };
        (binding, script)
    }

    /// Takes in what the script says; gives the script that answers it, where it asked.
    pub(crate) fn heard(&self, payload: &str, permission: Option<Permission>) -> Option<String> {
        let (id, text) = match crate::lenient::read(payload.as_bytes()).ok()? {
            Word::Copy { mut text, origin } => {
                text.truncate(text.floor_char_boundary(MAX_COPIED_BYTES));
                *self.copied() = Some(Copied { text, origin });
                return None;
            }
            Word::Read { id, origin } => (id, self.read(&origin, permission)),
            Word::Paste { id } => (id, Some(self.copied().as_ref().map(|copied| copied.text.clone()).unwrap_or_default())),
        };
        let detail = json!({ "id": id, "text": text });
        Some(format!("document.dispatchEvent(new CustomEvent({}, {{ detail: {detail} }}))", json!(self.name)))
    }

    /// None where it may not.
    fn read(&self, origin: &str, permission: Option<Permission>) -> Option<String> {
        let copied = self.copied().clone();
        let own = copied.as_ref().is_some_and(|copied| copied.origin == origin && origin != "null");
        let allowed = match permission {
            Some(Permission::Grant) => true,
            Some(Permission::Deny) => false,
            Some(Permission::Prompt) | None => own,
        };
        allowed.then(|| copied.map(|copied| copied.text).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(clipboard: &Clipboard, origin: &str, permission: Option<Permission>) -> String {
        clipboard.heard(&json!({ "op": "read", "id": 1, "origin": origin }).to_string(), permission).unwrap()
    }

    #[test]
    fn a_site_reads_what_it_copied_and_others_only_with_permission() {
        let clipboard = Clipboard::new("AB-12");
        assert_eq!(clipboard.name(), "cAB12");
        let (own, other) = ("https://a.test", "https://b.test");
        assert!(read(&clipboard, own, None).contains("\"text\":null"));
        assert_eq!(clipboard.heard(&json!({ "op": "copy", "text": "kept", "origin": own }).to_string(), None), None);
        assert!(read(&clipboard, own, None).contains("kept"));
        assert!(!read(&clipboard, other, None).contains("kept"));
        assert!(read(&clipboard, other, Some(Permission::Grant)).contains("kept"));
        assert!(!read(&clipboard, own, Some(Permission::Deny)).contains("kept"));
        assert!(clipboard.heard("{\"op\":\"paste\",\"id\":2}", None).unwrap().contains("kept"), "keys paste always");
        assert_eq!(clipboard.heard("nonsense", None), None);
    }

    #[test]
    fn a_text_that_ends_in_half_a_character_is_copied() {
        let clipboard = Clipboard::new("x");
        clipboard.heard(r#"{"op":"copy","text":"day \ud83d","origin":"https://a.test"}"#, None);
        assert_eq!(clipboard.copied().as_ref().unwrap().text, "day \u{fffd}");
    }

    #[test]
    fn what_is_too_long_is_cut() {
        let clipboard = Clipboard::new("x");
        let text = "ä".repeat(MAX_COPIED_BYTES);
        clipboard.heard(&json!({ "op": "copy", "text": text, "origin": "https://a.test" }).to_string(), None);
        assert!(clipboard.copied().as_ref().unwrap().text.len() <= MAX_COPIED_BYTES);
    }
}
