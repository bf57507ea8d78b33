//! `tabmux tools`: the table of tools this program was built with. Needs no daemon.

use serde_json::{Value, json};
use tabmux_tools::{TABLE, cost, listing};

use crate::failure::Outcome;
use crate::output::{self, Form};

pub(super) fn run(form: Form, with_cost: bool) -> Outcome {
    let document: Vec<Value> = TABLE
        .iter()
        .map(|tool| {
            let mut listed = listing(tool);
            if with_cost {
                listed["tokens"] = json!(cost(tool.name));
            }
            listed
        })
        .collect();
    let total: usize = TABLE.iter().filter_map(|tool| cost(tool.name)).sum();
    let document = if with_cost { json!({"tools": document, "tokens": total}) } else { json!({"tools": document}) };
    output::report(form, &document, || if with_cost { costs(total) } else { names() })
}

fn names() -> String {
    let first = |text: &str| text.split_once(". ").map_or(text, |(sentence, _)| sentence).to_owned();
    let rows: Vec<_> = TABLE.iter().map(|tool| [tool.name.to_owned(), first(tool.description)]).collect();
    output::table(["TOOL", "WHAT IT DOES"], &rows)
}

fn costs(total: usize) -> String {
    let count = |tokens: Option<usize>| tokens.map_or_else(String::new, |tokens| tokens.to_string());
    let mut rows: Vec<_> = TABLE.iter().map(|tool| [tool.name.to_owned(), count(cost(tool.name))]).collect();
    rows.push(["total".to_owned(), total.to_string()]);
    output::table(["TOOL", "TOKENS"], &rows)
}
