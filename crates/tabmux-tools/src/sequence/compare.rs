//! What sessions that did the same found: the same, or which differ and how.

use serde_json::{Map, Value, json};

use super::Ending;
use super::report::session;
use super::run::{Done, Telling};
use crate::visible;

/// How much of a value is shown beside the others.
const SHOWN_BYTES: usize = 160;

/// The comparison as a sentence or some, and as data.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) text: String,
    pub(crate) data: Value,
}

/// Something that can be compared: what it is called, and what each session found.
struct Compared {
    what: String,
    found: Vec<Value>,
}

/// Compares what the sequences saved under the same name and what the same step read in each.
pub(crate) fn compared(endings: &[Ending]) -> Option<Comparison> {
    let (first, others) = endings.split_first().filter(|(_, others)| !others.is_empty())?;
    let findings: Vec<Compared> = first
        .done
        .iter()
        .enumerate()
        .filter_map(|(at, done)| {
            let mut found = vec![result(done)];
            for other in others {
                found.push(result(counterpart(done, at, other)?));
            }
            let what = done.save.clone().unwrap_or_else(|| format!("step {} {}", at + 1, done.action));
            Some(Compared { what, found })
        })
        .collect();
    let names: Vec<String> = endings.iter().map(session).collect();
    let (same, different): (Vec<&Compared>, Vec<&Compared>) = findings.iter().partition(|one| one.is_same());
    let mut text = match (same.len(), different.len()) {
        (0, 0) => "Nothing to compare: no step was done in all.".to_owned(),
        (_, 0) => format!("Same in all {}.", names.len()),
        (0, _) => String::new(),
        _ => format!("Same in all {}: {}.", names.len(), same.iter().map(|one| one.what.as_str()).collect::<Vec<_>>().join(", ")),
    };
    for one in &different {
        text += &format!("{}Different: {}: {}", if text.is_empty() { "" } else { "\n" }, one.what, one.beside_each_other(&names));
    }
    let data = findings.iter().map(|one| one.data(&names)).collect();
    Some(Comparison { text, data })
}

/// What another sequence did in the place of this step.
fn counterpart<'e>(done: &Done, at: usize, other: &'e Ending) -> Option<&'e Done> {
    match &done.save {
        Some(name) => other.done.iter().find(|other| other.save.as_ref() == Some(name)),
        None => other.done.get(at).filter(|other| other.action == done.action && other.save.is_none()),
    }
}

/// What a step found; one that only acts has found that it could.
fn result(done: &Done) -> Value {
    match &done.outcome {
        Ok(given) if given.telling == Telling::Whole || done.save.is_some() => given.value.clone(),
        Ok(_) => "done".into(),
        Err(fault) => format!("FAILED {}", fault.code).into(),
    }
}

impl Compared {
    fn is_same(&self) -> bool {
        self.found.windows(2).all(|pair| pair[0] == pair[1])
    }

    fn beside_each_other(&self, names: &[String]) -> String {
        let shown = self.telling_parts();
        let pair = |(name, value): (&String, &String)| format!("{name} {}", visible::short(value, SHOWN_BYTES));
        names.iter().zip(&shown).map(pair).collect::<Vec<_>>().join(" | ")
    }

    /// Each value, or of texts of several lines the first line that is not the same in all.
    fn telling_parts(&self) -> Vec<String> {
        let lines: Option<Vec<Vec<&str>>> = self.found.iter().map(|value| value.as_str().map(|text| text.lines().collect())).collect();
        let Some(lines) = lines.filter(|lines| lines.iter().any(|lines| lines.len() > 1)) else {
            return self.found.iter().map(Value::to_string).collect();
        };
        let longest = lines.iter().map(Vec::len).max().unwrap_or_default();
        let differs = |at: &usize| lines.windows(2).any(|pair| pair[0].get(*at) != pair[1].get(*at));
        let at = (0..longest).find(differs).unwrap_or_default();
        lines
            .iter()
            .map(|lines| lines.get(at).map_or_else(|| "(no such line)".to_owned(), |line| format!("line {}: {:?}", at + 1, line)))
            .collect()
    }

    fn data(&self, names: &[String]) -> Value {
        if self.is_same() {
            return json!({ "what": self.what, "equal": true });
        }
        let short = |value: &Value| visible::short(&value.to_string(), SHOWN_BYTES);
        let values: Map<String, Value> = names.iter().zip(&self.found).map(|(name, value)| (name.clone(), short(value).into())).collect();
        json!({ "what": self.what, "equal": false, "values": values })
    }
}
