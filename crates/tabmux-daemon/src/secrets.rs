//! Secrets the operator registered. An agent names one (`${secret:NAME}`), the page gets its value, and whatever goes out or is
//! written down has the name in its place. Where they are kept is the operator's file; nothing here writes one.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use serde_json::Value;
use tabmux_core::{CAPABILITY, Code, Fault};
use tabmux_mcp::ToolAnswer;
use tabmux_tools::{Content, Found};

/// A shorter value would be found in texts that have nothing to do with it, and every one of them would be garbled.
pub const SHORTEST: usize = 6;

/// Every answer is searched for every secret.
pub const MOST: usize = 200;

/// What texts are cut with, everywhere.
const CUT: char = '…';

/// How many bytes of a secret say something about it.
const LEAST_HALF: usize = 3;

/// How deep in JSON within JSON a secret is looked for, and one more for none at all.
const MOST_NESTED: usize = 4;

/// So many digits after `tmx_` make a capability, or what is left of one.
const LEAST_DIGITS: usize = 8;

/// What is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// What the operator registered, and whatever reads as a capability or a token: those are secrets whoever made them.
    All,
    /// In the one answer that gives a capability out.
    Registered,
}

/// See the module's first lines.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Arc<[Secret]>);

#[derive(PartialEq, Eq)]
struct Secret {
    name: String,
    value: String,
    /// Every way it is written, the longest first.
    forms: Vec<String>,
}

impl Secrets {
    /// Reads `NAME=VALUE` lines as dotenv files have them. What is wrong is said without the value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut secrets = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) =
                line.strip_prefix("export ").unwrap_or(line).split_once('=').ok_or(format!("line {} is not NAME=VALUE", at + 1))?;
            secrets.push(Secret::new(name.trim(), unquoted(value.trim())).map_err(|why| format!("line {}: {why}", at + 1))?);
        }
        if secrets.len() > MOST {
            return Err(format!("it has {} secrets, and at most {MOST} can be looked for in every answer", secrets.len()));
        }
        // One that is part of another must not spoil it.
        secrets.sort_by_key(|secret: &Secret| std::cmp::Reverse(secret.value.len()));
        Ok(Self(secrets.into()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For a page, and nobody else.
    pub(crate) fn get(&self, name: &str) -> Result<String, Fault> {
        let known = self.0.iter().find(|secret| secret.name == name);
        known.map(|secret| secret.value.clone()).ok_or_else(|| {
            let names: Vec<_> = self.0.iter().map(|secret| secret.name.as_str()).collect();
            let known = if names.is_empty() { "none is registered".to_owned() } else { format!("there are {}", names.join(", ")) };
            let message = format!("No secret is called '{}'; {known}.", tabmux_tools::visible_line(name));
            Fault::new(Code::BadArgument, message, "The operator registers secrets in the file that the setting `secrets` names.")
        })
    }

    /// What a reference in an argument stands for.
    pub(crate) fn find(&self, _argument: &str, inside: &str) -> Found {
        inside.strip_prefix("secret:").map(|name| self.get(name).map(Value::from)).transpose()
    }

    /// The same text with names for values.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.hide_some(text, Hidden::All)
    }

    fn hide_some<'t>(&self, text: &'t str, what: Hidden) -> Cow<'t, str> {
        match what {
            Hidden::All => match without_capabilities(text) {
                Cow::Borrowed(text) => self.hide_registered(text),
                Cow::Owned(text) => Cow::Owned(self.hide_registered(&text).into_owned()),
            },
            Hidden::Registered => self.hide_registered(text),
        }
    }

    fn hide_registered<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut hidden = Cow::Borrowed(text);
        for secret in self.0.iter() {
            for form in secret.forms.iter().filter(|form| text.contains(form.as_str())) {
                hidden = hidden.replace(form, &format!("<secret {}>", secret.name)).into();
            }
        }
        if hidden.contains(CUT) { self.hide_halves(hidden) } else { hidden }
    }

    /// Where a text was cut, the beginning or the end of a secret may be left of it.
    fn hide_halves<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        let begins_in = |form: &&str| text.contains(&form[..form.ceil_char_boundary(LEAST_HALF)]);
        let ends_in = |form: &&str| text.contains(&form[form.floor_char_boundary(form.len() - LEAST_HALF)..]);
        let forms = || self.0.iter().flat_map(|secret| secret.forms.iter().map(move |form| (secret.name.as_str(), form.as_str())));
        let beginnings: Vec<_> = forms().filter(|(_, form)| begins_in(form)).collect();
        let endings: Vec<_> = forms().filter(|(_, form)| ends_in(form)).collect();
        if beginnings.is_empty() && endings.is_empty() {
            return text;
        }
        let mut shown = String::with_capacity(text.len());
        let mut pieces = text.split(CUT).peekable();
        let mut is_first = true;
        while let Some(piece) = pieces.next() {
            let mut piece = Cow::Borrowed(piece);
            if pieces.peek().is_some()
                && let Some((name, at)) = beginnings.iter().find_map(|(name, form)| Some((name, beginning_at(&piece, form)?)))
            {
                piece = format!("{}<secret {name}>", &piece[..at]).into();
            }
            if !is_first {
                shown.push(CUT);
                if let Some((name, end)) = endings.iter().find_map(|(name, form)| Some((name, ending_at(&piece, form)?))) {
                    piece = format!("<secret {name}>{}", &piece[end..]).into();
                }
            }
            shown.push_str(&piece);
            is_first = false;
        }
        shown.into()
    }

    /// The one place all answers go through.
    pub(crate) fn hide_in(&self, answer: &mut ToolAnswer, what: Hidden) {
        match &mut answer.outcome {
            Ok(reply) => {
                for content in &mut reply.content {
                    if let Content::Text(text) = content {
                        self.hide_text(text, what);
                    }
                }
                reply.result.values_mut().chain(&mut reply.structured).for_each(|value| self.hide_within(value, what));
            }
            Err(fault) => self.hide_fault(fault),
        }
        answer.result.values_mut().for_each(|value| self.hide_within(value, what));
    }

    /// What went wrong never has a capability to give out.
    pub(crate) fn hide_fault(&self, fault: &mut Fault) {
        self.hide_text(&mut fault.message, Hidden::All);
        self.hide_text(&mut fault.hint, Hidden::All);
    }

    fn hide_text(&self, text: &mut String, what: Hidden) {
        if let Cow::Owned(hidden) = self.hide_some(text, what) {
            *text = hidden;
        }
    }

    pub(crate) fn hide_value(&self, value: &mut Value) {
        self.hide_within(value, Hidden::All);
    }

    fn hide_within(&self, value: &mut Value, what: Hidden) {
        match value {
            Value::String(text) => self.hide_text(text, what),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_within(item, what)),
            Value::Object(members) => {
                members.values_mut().for_each(|value| self.hide_within(value, what));
                if members.keys().any(|name| matches!(self.hide_some(name, what), Cow::Owned(_))) {
                    let named = |(name, value): (String, Value)| (self.hide_some(&name, what).into_owned(), value);
                    *members = std::mem::take(members).into_iter().map(named).collect();
                }
            }
            _ => {}
        }
    }
}

/// The same text with a word for everything that reads as a capability.
fn without_capabilities(text: &str) -> Cow<'_, str> {
    let mut pieces = text.split(CAPABILITY);
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    let mut found = false;
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits >= LEAST_DIGITS {
            found = true;
            shown.push_str("<capability>");
            shown.push_str(&piece[digits..]);
        } else {
            shown.push_str(CAPABILITY);
            shown.push_str(piece);
        }
    }
    if found { shown.into() } else { text.into() }
}

/// Where the beginning of a secret begins that the text ends with.
fn beginning_at(text: &str, form: &str) -> Option<usize> {
    let lengths = (LEAST_HALF..form.len()).rev().filter(|length| form.is_char_boundary(*length));
    lengths.map(|length| &form[..length]).find(|half| text.ends_with(half)).map(|half| text.len() - half.len())
}

/// Where the end of a secret ends that the text begins with.
fn ending_at(text: &str, form: &str) -> Option<usize> {
    let starts = (1..=form.len().saturating_sub(LEAST_HALF)).filter(|start| form.is_char_boundary(*start));
    starts.map(|start| &form[start..]).find(|half| text.starts_with(half)).map(str::len)
}

impl Secret {
    fn new(name: &str, value: &str) -> Result<Self, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(fits) {
            return Err("the name has other signs than letters, digits, _ and -".to_owned());
        }
        if value.chars().count() < SHORTEST {
            let why = "ordinary text would be taken for it";
            return Err(format!("{name} has fewer than {SHORTEST} characters, and {why}"));
        }
        let mut forms = Vec::new();
        for form in written(value) {
            // In JSON, and in JSON in JSON, as scripts give it.
            let nested = std::iter::successors(Some(form), |form| Some(in_json(form)));
            forms.extend(nested.take(MOST_NESTED));
        }
        forms.extend(base64_forms(value.as_bytes()));
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        forms.dedup();
        Ok(Self { name: name.to_owned(), value: value.to_owned(), forms })
    }
}

/// As it is, in an address, in a form, in HTML, in the name of a file.
fn written(value: &str) -> Vec<String> {
    let with = |plain: &[u8]| percent_encoded(value, |byte| byte.is_ascii_alphanumeric() || plain.contains(&byte));
    // What `encodeURIComponent`, a form and `escape` make of it.
    let percent = with(b"-_.!~*'()");
    let mut forms = vec![value.to_owned(), percent.replace("%20", "+"), percent.to_lowercase(), percent];
    forms.extend([with(b" *-._").replace(' ', "+"), with(b"@*_+-./")]);
    // What a browser makes of it in a path, in a query, and in the query of a form.
    for left_out in [" \"<>`{}^", " \"<>'", " \"<>"] {
        forms.push(percent_encoded(value, |byte| byte.is_ascii_graphic() && !left_out.as_bytes().contains(&byte)));
    }
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let quoted = html.replace('"', "&quot;");
    forms.extend([quoted.replace('\'', "&#39;"), quoted, html]);
    forms.push(value.replace(['"', '*', '/', ':', '<', '>', '?', '\\', '|'], "_"));
    forms
}

fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// As it is in base64, alone and wherever it begins in a longer text: only the letters that nothing but the secret decides, and
/// with a `/` or `+` in them also as addresses and forms have them.
fn base64_forms(value: &[u8]) -> Vec<String> {
    let mut forms = vec![base64(value)];
    for before in 0..3 {
        let encoded = base64(&[&vec![0; before], value].concat());
        let whole = (before * 8).div_ceil(6)..(before + value.len()) * 8 / 6;
        forms.push(encoded[whole].to_owned());
    }
    let for_addresses: Vec<_> = forms.iter().map(|form| form.replace('+', "-").replace('/', "_")).collect();
    let escaped: Vec<_> =
        forms.iter().map(|form| percent_encoded(form, |byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')).collect();
    forms.extend(for_addresses.into_iter().chain(escaped));
    forms
}

fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn percent_encoded(value: &str, plain: impl Fn(u8) -> bool) -> String {
    value.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn unquoted(value: &str) -> &str {
    let within = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|secret| &secret.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tabmux_tools::Reply;

    fn secrets() -> Secrets {
        Secrets::parse("# mine\nexport PASSWORD=\"hunter2 & \\more\"\n\nTOKEN='abcdef'\nLONG=abcdefghi\n").unwrap()
    }

    #[test]
    fn a_file_of_names_and_values_is_read_and_what_is_wrong_is_said_without_the_value() {
        assert_eq!(secrets().get("PASSWORD").unwrap(), "hunter2 & \\more");
        assert_eq!(secrets().get("TOKEN").unwrap(), "abcdef");
        assert!(secrets().get("NONE").unwrap_err().message.contains("PASSWORD"));
        for (text, why) in [("PIN=12345", "PIN has fewer than 6"), ("=abcdefg", "the name"), ("abcdefg", "line 1 is not NAME=VALUE")] {
            let said = Secrets::parse(text).unwrap_err();
            assert!(said.contains(why) && !said.contains("12345") && !said.contains("abcdefg"), "{said}");
        }
        assert!(!format!("{:?}", secrets()).contains("hunter2"));
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_written() {
        let secrets = secrets();
        for shown in [
            "hunter2 & \\more",
            "{\"a\":\"hunter2 & \\\\more\"}",
            "\"{\\\"a\\\":\\\"hunter2 & \\\\\\\\more\\\"}\"",
            "?p=hunter2%20%26%20%5Cmore",
            "p=hunter2+%26+%5Cmore",
            "/hunter2%20&%20\\more",
            "<i>hunter2 &amp; \\more</i>",
        ] {
            let hidden = secrets.hide(shown);
            assert!(!hidden.contains("hunter2") && hidden.contains("<secret PASSWORD>"), "{shown}: {hidden}");
        }
        assert_eq!(secrets.hide("xabcdefghix abcdef"), "x<secret LONG>x <secret TOKEN>", "the longer one first");
        assert_eq!(secrets.hide("abcde"), "abcde");
    }

    /// As a login's header has it: behind a name of any length, so at any place of a group of three.
    #[test]
    fn a_secret_is_hidden_in_base64_wherever_it_begins() {
        let secrets = Secrets::parse("KEY=subject>>?~more").unwrap();
        for (before, after) in [("", ""), ("a:", ""), ("an:", "x"), ("ann:", "xy"), ("annabel:", "xyz")] {
            let text = base64(format!("{before}subject>>?~more{after}").as_bytes());
            for written in
                [text.clone(), text.replace('+', "-").replace('/', "_"), percent_encoded(&text, |byte| byte.is_ascii_alphanumeric())]
            {
                let hidden = secrets.hide(&written);
                assert!(
                    hidden.contains("<secret KEY>") && hidden.len() < "<secret KEY>".len() + 14 + before.len() * 2,
                    "{written}: {hidden}"
                );
            }
        }
        assert_eq!(secrets.hide(&base64(b"subject>>?~more")), "<secret KEY>", "alone, nothing is left of it");
    }

    #[test]
    fn whatever_reads_as_a_capability_is_hidden_but_in_the_answer_that_gives_it_out() {
        let capability = format!("tmx_{}", "0123456789abcdef".repeat(4));
        let none = Secrets::default();
        assert_eq!(
            none.hide(&format!("a {capability} tmx_ {capability}, tmx_beef tmx_0123456789…")),
            "a <capability> tmx_ <capability>, tmx_beef <capability>…"
        );
        assert!(matches!(none.hide("tmx_ and tmx_beef"), Cow::Borrowed(_)));
        let reply = || Reply::text(capability.clone()).with("of", json!({ capability.clone(): [capability.clone()] }));
        let answer = |what| {
            let mut answer = ToolAnswer { outcome: Ok(reply()), result: serde_json::Map::new() };
            none.hide_in(&mut answer, what);
            format!("{answer:?}").contains(&capability)
        };
        assert_eq!((answer(Hidden::All), answer(Hidden::Registered)), (false, true));
    }

    #[test]
    fn what_is_left_of_a_secret_where_a_text_was_cut_is_hidden_too() {
        let secrets = secrets();
        assert_eq!(secrets.hide("x hunter2 & … [90 bytes]"), "x <secret PASSWORD>… [90 bytes]");
        assert_eq!(secrets.hide("xhun…\nyhun"), "x<secret PASSWORD>…\nyhun");
        assert_eq!(secrets.hide("…ter2 & \\more and on"), "…<secret PASSWORD> and on");
        assert_eq!(secrets.hide("x…y hu… z…"), "x…y hu… z…");
        assert_eq!(secrets.hide("abcde…"), "<secret LONG>…");
    }

    #[test]
    fn every_part_of_an_answer_is_looked_through() {
        let reply = Reply::text("it is abcdef").with("value", json!({ "abcdef": ["abcdef"] })).structured(json!({ "a": "abcdef" }));
        let mut answer =
            ToolAnswer { outcome: Ok(reply), result: [("url".to_owned(), json!("http://a.test/abcdef"))].into_iter().collect() };
        secrets().hide_in(&mut answer, Hidden::Registered);
        assert!(!format!("{answer:?}").contains("abcdef"), "{answer:?}");
        let fault = Fault::new(Code::BadArgument, "abcdef", "abcdef");
        let mut answer = ToolAnswer { outcome: Err(fault), result: serde_json::Map::new() };
        secrets().hide_in(&mut answer, Hidden::All);
        assert!(!format!("{answer:?}").contains("abcdef"), "{answer:?}");
    }
}
