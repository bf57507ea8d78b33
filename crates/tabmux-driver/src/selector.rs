//! How an element is named: by the ref a snapshot gave it, as CSS or XPath, or by what a person calls it. Read here once for
//! every tool and every driver; finding the element is the page script's work (`script/locate.js`).

use std::fmt;

use serde_json::{Value, json};

use crate::{DriverError, Result};

/// The longest selector: longer ones are a mistake.
const MAX_BYTES: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    source: String,
    by: By,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// `e12` or `@e12`.
    Ref(u32),
    Css(String),
    /// `my-card >> button`: CSS step by step, each within what the one before means, its shadow tree included. `frame=1.0 >> button` begins in the
    /// page's second frame's first one, whatever site it is of.
    Chain {
        frame: Option<Vec<usize>>,
        steps: Vec<String>,
    },
    /// `//a`, `(//a)[2]` or `xpath=…`.
    XPath(String),
    /// `~name`: what an element is called by those who cannot see it.
    AccessibilityId(String),
    /// `text=Save`, `text="Save"`.
    Text(Words),
    /// `role=button`, `role=button[name="Save"]`.
    Role {
        role: String,
        name: Option<Words>,
    },
}

/// Words of the page. White space counts as one blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Words {
    /// In quotes: these and no others.
    Exactly(String),
    /// A part of them, in letters of either case.
    Part(String),
}

impl Selector {
    pub fn parse(source: &str) -> Result<Self> {
        let text = source.trim();
        if text.is_empty() {
            return Err(wrong(source, "it is empty"));
        }
        if text.len() > MAX_BYTES {
            return Err(wrong(&text[..text.floor_char_boundary(60)], "it is too long"));
        }
        let by = match reference(text) {
            Some(number) => By::Ref(number),
            None => named(text)?,
        };
        Ok(Self { source: text.to_owned(), by })
    }

    pub fn by(&self) -> &By {
        &self.by
    }

    /// The number of a ref, when it is one.
    pub fn reference(&self) -> Option<u32> {
        match self.by {
            By::Ref(number) => Some(number),
            _ => None,
        }
    }

    /// As the page script takes it.
    pub fn for_script(&self) -> Value {
        let words = |words: &Words| match words {
            Words::Exactly(text) => json!({ "text": text, "exact": true }),
            Words::Part(text) => json!({ "text": text, "exact": false }),
        };
        match &self.by {
            By::Ref(number) => json!({ "by": "ref", "ref": number }),
            By::Css(css) => json!({ "by": "css", "css": css }),
            By::Chain { frame, steps } => json!({ "by": "chain", "frame": frame, "steps": steps }),
            By::XPath(path) => json!({ "by": "xpath", "path": path }),
            By::AccessibilityId(id) => json!({ "by": "id", "id": id }),
            By::Text(text) => json!({ "by": "text", "words": words(text) }),
            By::Role { role, name } => json!({ "by": "role", "role": role, "words": name.as_ref().map(words) }),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

fn reference(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('@').unwrap_or(text).strip_prefix('e')?;
    (digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

fn named(text: &str) -> Result<By> {
    let some = |rest: &str, by: fn(String) -> By| match rest.trim() {
        "" => Err(wrong(text, "nothing follows")),
        rest => Ok(by(rest.to_owned())),
    };
    if let Some(path) = text.strip_prefix("xpath=") {
        return some(path, By::XPath);
    }
    if text.starts_with("//") || text.starts_with("(//") || text.starts_with("./") {
        return Ok(By::XPath(text.to_owned()));
    }
    if let Some(id) = text.strip_prefix('~') {
        return some(id, By::AccessibilityId);
    }
    if let Some(wanted) = text.strip_prefix("text=") {
        return Ok(By::Text(words(text, wanted)?));
    }
    if let Some(role) = text.strip_prefix("role=") {
        return by_role(text, role.trim());
    }
    let steps = steps(text);
    if steps.len() > 1 {
        return by_chain(text, &steps);
    }
    match text.strip_prefix("css=") {
        Some(css) => some(css, By::Css),
        None => Ok(By::Css(text.to_owned())),
    }
}

/// What stands between `>>`; in quotes it is part of a text.
fn steps(text: &str) -> Vec<&str> {
    let (mut steps, mut begin, mut quote, mut escaped) = (Vec::new(), 0, None, false);
    for (at, sign) in text.char_indices() {
        match (quote, sign) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), sign) if open == sign => quote = None,
            (None, '"' | '\'') => quote = Some(sign),
            (None, '>') if at >= begin && text[at..].starts_with(">>") => {
                steps.push(text[begin..at].trim());
                begin = at + 2;
            }
            _ => {}
        }
    }
    steps.push(text[begin..].trim());
    steps
}

fn by_chain(source: &str, steps: &[&str]) -> Result<By> {
    let frame = steps[0].strip_prefix("frame=").map(|path| path.split('.').map(str::parse).collect());
    let frame = match frame {
        None => None,
        Some(Ok(path)) => Some(path),
        Some(Err(_)) => return Err(wrong(source, "after frame= stands which frame of which frame it is, as 0 or 1.0")),
    };
    let rest = &steps[usize::from(frame.is_some())..];
    if rest.iter().any(|step| step.is_empty() || ["text=", "role=", "xpath=", "//", "~"].iter().any(|other| step.starts_with(other))) {
        return Err(wrong(source, "on each side of >> stands CSS"));
    }
    let css = |step: &&str| step.strip_prefix("css=").unwrap_or(step).to_owned();
    Ok(By::Chain { frame, steps: rest.iter().map(css).collect() })
}

fn by_role(source: &str, text: &str) -> Result<By> {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').unwrap_or(text.len());
    let (role, rest) = text.split_at(end);
    if role.is_empty() {
        return Err(wrong(source, "after role= stands a role, for example role=button"));
    }
    let role = role.to_ascii_lowercase();
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(By::Role { role, name: None });
    }
    let name = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).and_then(|inner| inner.trim().strip_prefix("name="));
    match name {
        Some(name) => Ok(By::Role { role, name: Some(words(source, name)?) }),
        None => Err(wrong(source, "after the role only [name=\"…\"] may stand")),
    }
}

fn words(source: &str, text: &str) -> Result<Words> {
    let text = text.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote).map(|rest| (quote, rest)));
    let words = match quoted {
        None => Words::Part(plain(text)),
        Some(('"', _)) => match serde_json::from_str::<String>(text) {
            Ok(inner) => Words::Exactly(plain(&inner)),
            Err(_) => return Err(wrong(source, "the quoted text does not end as it begins")),
        },
        Some((quote, rest)) => match rest.strip_suffix(quote) {
            Some(inner) => Words::Exactly(plain(inner)),
            None => return Err(wrong(source, "the quoted text does not end as it begins")),
        },
    };
    match &words {
        Words::Exactly(text) | Words::Part(text) if text.is_empty() => Err(wrong(source, "the text is empty")),
        _ => Ok(words),
    }
}

/// With every run of white space as one blank, as the page script reads the page.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn wrong(selector: &str, why: &str) -> DriverError {
    DriverError::BadSelector { selector: selector.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(source: &str) -> By {
        Selector::parse(source).unwrap_or_else(|error| panic!("{source}: {error}")).by
    }

    /// S0.27
    #[test]
    fn every_kind_of_selector_is_read() {
        let part = |text: &str| Words::Part(text.into());
        let exactly = |text: &str| Words::Exactly(text.into());
        let role = |role: &str, name| By::Role { role: role.into(), name };
        let chain = |frame, steps: &[&str]| By::Chain { frame, steps: steps.iter().map(ToString::to_string).collect() };
        let cases = [
            ("e12", By::Ref(12)),
            (" @e7 ", By::Ref(7)),
            ("e12x", By::Css("e12x".into())),
            ("em", By::Css("em".into())),
            ("e", By::Css("e".into())),
            ("#id > a[href^='/']", By::Css("#id > a[href^='/']".into())),
            ("css=e5", By::Css("e5".into())),
            ("my-card >> css=button", chain(None, &["my-card", "button"])),
            ("frame=1.0 >> a-b>>button[title=\"a >> \\\"b\"]", chain(Some(vec![1, 0]), &["a-b", "button[title=\"a >> \\\"b\"]"])),
            ("a[aria-label=\"More >>\"]", By::Css("a[aria-label=\"More >>\"]".into())),
            ("//a[@id='x']", By::XPath("//a[@id='x']".into())),
            ("(//a)[2]", By::XPath("(//a)[2]".into())),
            ("xpath=/html/body", By::XPath("/html/body".into())),
            ("~Add to cart", By::AccessibilityId("Add to cart".into())),
            ("text=Sign \n in", By::Text(part("Sign in"))),
            ("text=\"Sign  in\"", By::Text(exactly("Sign in"))),
            ("text='it is'", By::Text(exactly("it is"))),
            (r#"text="a \"b\"""#, By::Text(exactly("a \"b\""))),
            ("role=button", role("button", None)),
            ("role=Button[name=\"Save\"]", role("button", Some(exactly("Save")))),
            ("role=link [ name=more ]", role("link", Some(part("more")))),
        ];
        for (source, expected) in cases {
            assert_eq!(by(source), expected, "{source}");
        }
    }

    #[test]
    fn what_is_no_selector_says_why() {
        for (source, why) in [
            ("", "it is empty"),
            ("~", "nothing follows"),
            ("xpath= ", "nothing follows"),
            ("text=", "the text is empty"),
            ("text=\"Save", "does not end as it begins"),
            ("role=", "stands a role"),
            ("role=button[checked]", "only [name="),
            ("role=button[name=]", "the text is empty"),
            ("frame=x >> a", "after frame= stands"),
            ("nav >> text=Save", "stands CSS"),
            ("nav >> ", "stands CSS"),
        ] {
            let error = Selector::parse(source).expect_err(source);
            assert!(error.to_string().contains(why), "{source}: {error}");
        }
        assert!(Selector::parse(&"x".repeat(5000)).is_err());
    }

    #[test]
    fn a_selector_shows_as_it_was_written_and_goes_to_the_script_as_it_was_meant() {
        let selector = Selector::parse(" role=button[name=Save] ").unwrap();
        assert_eq!(selector.to_string(), "role=button[name=Save]");
        assert_eq!(selector.for_script(), json!({ "by": "role", "role": "button", "words": { "text": "Save", "exact": false } }));
        assert_eq!(Selector::parse("e3").unwrap().for_script(), json!({ "by": "ref", "ref": 3 }));
        assert_eq!(Selector::parse("e3").unwrap().reference(), Some(3));
    }
}
