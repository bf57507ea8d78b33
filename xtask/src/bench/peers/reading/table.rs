//! What reading and acting cost, as Markdown.

use super::super::agent::Product;
use super::super::table::{cut, spread};
use super::super::verdict::milliseconds;
use super::result::{Outcome, Reading, Seen};

pub(super) fn tables(reading: &Reading) -> String {
    format!("{}{}{}", lists(reading), forms(reading), sights(reading))
}

fn lists(reading: &Reading) -> String {
    let mut text = "\n### Tool lists\n\n| contender | tokens |\n|---|---|\n".to_owned();
    for cell in &reading.lists {
        let tokens = cell.tokens.as_ref().map_or_else(|why| cut(why), |tokens| tokens.to_string());
        text += &format!("| {} | {tokens} |\n", cell.product.name());
    }
    text
}

fn forms(reading: &Reading) -> String {
    let mut text = "\n### One form: opened, read, seven fields and a tick filled in, sent, the confirmation read\n\n\
         | contender | calls | tokens of calls | tokens of replies | time p50 / p99 | errors |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for cell in &reading.forms {
        text += &match &cell.outcome {
            Err(why) => format!("| {} | {} | | | | |\n", cell.product.name(), cut(why)),
            Ok(done) => format!(
                "| {} | {} | {} | {} | {} | {}{} |\n",
                cell.product.name(),
                done.spent.calls,
                done.spent.asked,
                done.spent.answered,
                spread(done.time),
                done.errors,
                done.first_problem.as_ref().map(|problem| format!(", first: {}", cut(problem))).unwrap_or_default()
            ),
        };
    }
    text
}

/// A row for each page, a column for each contender.
fn sights(reading: &Reading) -> String {
    let mut columns: Vec<(Product, &str)> = Vec::new();
    let mut pages: Vec<&str> = Vec::new();
    for cell in &reading.sights {
        let column = (cell.product, cell.how.as_str());
        if !columns.contains(&column) {
            columns.push(column);
        }
        if !pages.contains(&cell.page.as_str()) {
            pages.push(&cell.page);
        }
    }
    let heads: Vec<_> = columns.iter().map(|(product, how)| format!("{} {how}", product.name())).collect();
    let mut text =
        format!("\n### A page as text: tokens, time p50\n\n| page | {} |\n|---|{}\n", heads.join(" | "), "---|".repeat(columns.len()));
    for page in pages {
        let cells = columns.iter().map(|(product, how)| {
            let cell = reading.sights.iter().find(|cell| cell.page == page && cell.product == *product && cell.how == *how);
            cell.map_or_else(|| "–".to_owned(), |cell| seen(&cell.outcome))
        });
        text += &format!("| {page} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

fn seen(outcome: &Outcome<Seen>) -> String {
    match outcome {
        Err(why) => cut(why),
        Ok(seen) => {
            let calls = if seen.calls > 1 { format!(" in {} calls", seen.calls) } else { String::new() };
            format!("{}{calls}, {}", seen.tokens, milliseconds(seen.time.p50_ms))
        }
    }
}
