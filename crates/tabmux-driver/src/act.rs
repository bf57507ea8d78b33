//! What can be done to a page as a person would do it: with a pointer, fingers and keys. A driver carries it out through the
//! browser's real input, so that the page sees trusted events, and comes back only when the page confirmed that it
//! arrived where it was meant to. How a page looks afterwards is somebody else's question (`sight.rs`).

use std::time::Duration;

use crate::keys::Chord;
use crate::{DriverError, Result, Selector};

/// How long an element is waited for that is not there, or not ready, when the caller says nothing else.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The longest text that is typed key by key.
pub const MAX_TYPED: usize = 10_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub verb: Verb,
    /// How long the element may take to be there and ready.
    pub patience: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    Click(Click),
    /// With a finger.
    Tap {
        selector: Selector,
        bring: Bring,
    },
    /// Makes the element have this value, whatever kind of field it is.
    SetValue {
        selector: Selector,
        value: String,
    },
    /// Chooses from a list, native or not.
    Select {
        selector: Selector,
        options: Vec<String>,
    },
    /// Presses the keys of a text, where the focus is or in this element.
    Type {
        selector: Option<Selector>,
        text: String,
    },
    Press {
        selector: Option<Selector>,
        chord: Chord,
    },
    Hover {
        selector: Selector,
    },
    Drag {
        from: Selector,
        to: Selector,
    },
    Scroll {
        selector: Option<Selector>,
        by: Option<(f64, f64)>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Click {
    pub selector: Selector,
    pub bring: Bring,
    pub button: Button,
    /// 2 is a double click.
    pub count: u8,
    pub modifiers: Modifiers,
}

/// Whether an element that is elsewhere on the page is scrolled to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bring {
    #[default]
    IntoView,
    Nowhere,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Button {
    #[default]
    Left,
    Middle,
    Right,
}

/// Keys that are held meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    pub alt: bool,
    pub control: bool,
    pub meta: bool,
    pub shift: bool,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acted {
    /// The element it was done to, `e12 button "Save"`: safe to read, on one line.
    pub target: String,
    /// How many elements matched; the first that can be seen was taken.
    pub matched: usize,
    /// What came of it beyond that, as a whole sentence: the value a field has now, how far a list was scrolled.
    pub outcome: Option<String>,
}

impl Modifiers {
    /// `Control`, `Shift`, … as people write them.
    pub fn hold(&mut self, name: &str) -> Result<()> {
        match name.to_ascii_lowercase().as_str() {
            "alt" | "option" => self.alt = true,
            "control" | "ctrl" => self.control = true,
            "meta" | "command" | "cmd" | "super" => self.meta = true,
            "shift" => self.shift = true,
            // The key that shortcuts go with; browsers run on Linux here.
            "controlormeta" => self.control = true,
            _ => return Err(DriverError::BadKey(name.to_owned())),
        }
        Ok(())
    }

    /// Whether letters typed now would be commands.
    pub fn command(self) -> bool {
        self.alt || self.control || self.meta
    }
}

impl Action {
    /// With the usual patience.
    pub fn new(verb: Verb) -> Self {
        Self { verb, patience: PATIENCE }
    }
}
