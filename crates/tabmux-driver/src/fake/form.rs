//! The elements every fake page has, and what happens to them. Pure; the page shows and does what comes of it.
//!
//! | element | what it does |
//! |---|---|
//! | `#name`, textbox "Name" | keeps what is typed; Enter says `Hello NAME.` |
//! | `#agree`, checkbox "I agree" | on or off |
//! | `#go`, button "Go" | says `Clicked.` |
//! | `#next`, link "Next" | goes to `/next` |
//! | `#off`, button "Off" | is disabled |

use crate::act::{Acted, Verb};
use crate::selector::{By, Selector, Words};
use crate::{DriverError, Result};

/// Refs of one document; the next document has others.
const REFS: u32 = 10;

struct Element {
    id: &'static str,
    role: &'static str,
    name: &'static str,
}

const ELEMENTS: [Element; 5] = [
    Element { id: "name", role: "textbox", name: "Name" },
    Element { id: "agree", role: "checkbox", name: "I agree" },
    Element { id: "go", role: "button", name: "Go" },
    Element { id: "next", role: "link", name: "Next" },
    Element { id: "off", role: "button", name: "Off" },
];

#[derive(Debug, Default)]
pub(super) struct Form {
    name: String,
    agreed: bool,
    /// Which of the elements has the focus.
    focus: Option<usize>,
}

/// What the page does because of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    Say(String),
    GoTo(&'static str),
}

impl Form {
    /// `document` is the number of the document it is in.
    pub(super) fn act(&mut self, document: u64, verb: &Verb) -> Result<(Acted, Effect)> {
        let first = first_ref(document);
        match verb {
            Verb::Click(click) => self.press(first, &click.selector),
            Verb::Tap { selector, .. } => self.press(first, selector),
            Verb::SetValue { selector, value } => self.fill(first, selector, value),
            Verb::Select { selector, .. } => {
                let at = find(first, selector)?;
                Err(DriverError::NotActionable(format!("{} has no options", label(first, at))))
            }
            Verb::Type { selector, text } => {
                let at = self.focused(first, selector.as_ref())?.ok_or(DriverError::NothingFocused)?;
                if at != 0 {
                    return Ok((done(first, at, None), Effect::Nothing));
                }
                self.name.push_str(text);
                Ok((done(first, at, Some(format!("It is {:?} now.", self.name))), Effect::Nothing))
            }
            Verb::Press { selector, chord } => {
                let at = self.focused(first, selector.as_ref())?;
                let effect = match (at, chord.key.key.as_str()) {
                    (Some(0), "Enter") => Effect::Say(format!("Hello {}.", self.name)),
                    _ => Effect::Nothing,
                };
                let target = at.map_or_else(|| "the page".to_owned(), |at| label(first, at));
                Ok((Acted { target, matched: 1, outcome: None }, effect))
            }
            Verb::Hover { selector } => Ok((done(first, find(first, selector)?, None), Effect::Nothing)),
            Verb::Drag { from, to } => {
                find(first, to)?;
                Ok((done(first, find(first, from)?, None), Effect::Nothing))
            }
            Verb::Scroll { selector, .. } => {
                let at = selector.as_ref().map(|selector| find(first, selector)).transpose()?;
                let target = at.map_or_else(|| "the page".to_owned(), |at| label(first, at));
                Ok((Acted { target, matched: 1, outcome: Some("Nothing moved: all of it is shown.".into()) }, Effect::Nothing))
            }
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn shows(&self, document: u64, selector: &Selector) -> Result<bool> {
        match find(first_ref(document), selector) {
            Ok(_) => Ok(true),
            Err(DriverError::ElementNotFound { .. } | DriverError::StaleRef(_)) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn press(&mut self, first: u32, selector: &Selector) -> Result<(Acted, Effect)> {
        let at = find(first, selector)?;
        self.focus = Some(at);
        let effect = match ELEMENTS[at].id {
            "off" => return Err(DriverError::NotActionable(format!("{} is disabled", label(first, at)))),
            "agree" => {
                self.agreed = !self.agreed;
                Effect::Nothing
            }
            "go" => Effect::Say("Clicked.".into()),
            "next" => Effect::GoTo("/next"),
            _ => Effect::Nothing,
        };
        Ok((done(first, at, None), effect))
    }

    fn fill(&mut self, first: u32, selector: &Selector, value: &str) -> Result<(Acted, Effect)> {
        let at = find(first, selector)?;
        let outcome = match (ELEMENTS[at].id, value) {
            ("name", _) => {
                self.focus = Some(at);
                value.clone_into(&mut self.name);
                format!("It is {value:?} now.")
            }
            ("agree", "true" | "false") => {
                self.agreed = value == "true";
                format!("It is {} now.", if self.agreed { "on" } else { "off" })
            }
            ("agree", _) => {
                return Err(DriverError::NotActionable(format!("{} takes true or false, not {value:?}", label(first, at))));
            }
            _ => return Err(DriverError::NotActionable(format!("{} takes no value", label(first, at)))),
        };
        Ok((done(first, at, Some(outcome)), Effect::Nothing))
    }

    fn focused(&mut self, first: u32, selector: Option<&Selector>) -> Result<Option<usize>> {
        if let Some(selector) = selector {
            self.focus = Some(find(first, selector)?);
        }
        Ok(self.focus)
    }
}

fn first_ref(document: u64) -> u32 {
    u32::try_from(document).unwrap_or(u32::MAX / REFS) * REFS + 1
}

fn label(first: u32, at: usize) -> String {
    let Element { role, name, .. } = &ELEMENTS[at];
    format!("e{} {role} {name:?}", first + u32::try_from(at).unwrap_or_default())
}

fn done(first: u32, at: usize, outcome: Option<String>) -> Acted {
    Acted { target: label(first, at), matched: 1, outcome }
}

fn find(first: u32, selector: &Selector) -> Result<usize> {
    let fits = |words: &Words, name: &str| match words {
        Words::Exactly(text) => text == name,
        Words::Part(text) => name.to_lowercase().contains(&text.to_lowercase()),
    };
    let found = match selector.by() {
        By::Ref(number) => {
            let at = number.checked_sub(first).and_then(|at| usize::try_from(at).ok()).filter(|at| *at < ELEMENTS.len());
            return at.ok_or_else(|| DriverError::StaleRef(selector.to_string()));
        }
        By::Css(css) if css.contains("##") => {
            return Err(DriverError::BadSelector { selector: css.clone(), why: "it is no CSS".into() });
        }
        By::Css(css) => ELEMENTS.iter().position(|element| css.strip_prefix('#') == Some(element.id)),
        By::XPath(_) | By::Chain { .. } => None,
        By::AccessibilityId(id) => ELEMENTS.iter().position(|element| element.name == id),
        By::Text(words) => ELEMENTS.iter().position(|element| fits(words, element.name)),
        By::Role { role, name } => {
            ELEMENTS.iter().position(|element| element.role == role && name.as_ref().is_none_or(|words| fits(words, element.name)))
        }
    };
    found.ok_or_else(|| DriverError::ElementNotFound { selector: selector.to_string(), near: Vec::new() })
}
