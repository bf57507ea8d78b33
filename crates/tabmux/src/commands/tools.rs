//! `tabmux tools`: the table of tools this program was built with. Needs no daemon; where one runs, the costs of its replies are said too.

use serde_json::{Map, Value, json};
use tabmux_tools::{Level, TABLE, cost, list_cost, listing};
use tabmux_wire::control::Ask;

use crate::control::Control;
use crate::failure::Outcome;
use crate::output::{self, Form};
use crate::settings::Config;

pub(super) fn run(config: &Config, form: Form, with_cost: bool) -> Outcome {
    let document: Vec<Value> = TABLE
        .iter()
        .map(|tool| {
            let mut listed = listing(tool);
            listed["level"] = json!(tool.level.name());
            if with_cost {
                listed["tokens"] = json!(cost(tool.name));
            }
            listed
        })
        .collect();
    let lists: Map<String, Value> = Level::ALL.map(|level| (level.name().to_owned(), list_cost(level).into())).into_iter().collect();
    let document = if with_cost {
        json!({"tools": document, "tokens": list_cost(Level::Full), "lists": lists, "replies": replies(config)?})
    } else {
        json!({"tools": document})
    };
    output::report(form, &document, || if with_cost { costs(&document["replies"]) } else { names() })
}

fn names() -> String {
    let first = |text: &str| text.split_once(". ").map_or(text, |(sentence, _)| sentence).to_owned();
    let rows: Vec<_> = TABLE.iter().map(|tool| [tool.name.to_owned(), tool.level.name().to_owned(), first(tool.description)]).collect();
    output::table(["TOOL", "LIST", "WHAT IT DOES"], &rows)
}

/// What the replies of the daemon that runs have cost so far.
fn replies(config: &Config) -> Outcome<Value> {
    match Control::find(config)? {
        Some(mut control) => Ok(control.ask(&Ask::Status)?["tokens"].take()),
        None => Ok(Value::Null),
    }
}

fn costs(replies: &Value) -> String {
    let count = |tokens: Option<usize>| tokens.map_or_else(String::new, |tokens| tokens.to_string());
    let mut rows: Vec<_> = TABLE.iter().map(|tool| [tool.name.to_owned(), tool.level.name().to_owned(), count(cost(tool.name))]).collect();
    rows.extend(Level::ALL.map(|level| ["total".to_owned(), format!("--tools {}", level.name()), list_cost(level).to_string()]));
    let sessions = super::server::tokens_by_session(replies);
    rows.extend(sessions.into_iter().map(|(name, tokens)| ["replies".to_owned(), name, tokens]));
    output::table(["TOOL", "LIST", "TOKENS"], &rows)
}
