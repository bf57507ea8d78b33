//! What reading and acting cost a model: the tool list, the text of a page, one form filled in and sent. One agent at a
//! time, each product with the tools that its own documentation names for this, all with the same browser. Whether an
//! element is missing from a text is deliberately not judged here, but by the driver's tests.

mod dialect;
mod forms;
mod looks;
mod result;
mod shelf;
mod table;
#[cfg(test)]
mod tests;
mod verdict;

use std::time::{Duration, Instant};

use anyhow::Result;

use super::agent::{Browser, Ground};
use super::browsers::Browsers;
use super::install::Installed;
use super::pages::Pages;
use super::{agent_browser, chrome_devtools, named_browser, playwright, tabmux, versions};
use crate::bench::{Holds, memory, rows_table};
pub(super) use dialect::{Dialect, Entry, FormDialect, Kind, Shows, Step, last_page};
pub(super) use forms::Orders;
pub(super) use result::Reading;
use result::{FormCell, ListCell, SightCell};
pub(super) use shelf::Shelf;

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Full,
    /// Each thing once, on few pages.
    Trial,
}

/// All that one page or one form may take, so that a product that hangs costs no more.
const LIMIT: Duration = Duration::from_secs(90);

fn dialects() -> Vec<&'static Dialect> {
    vec![
        &tabmux::DIALECT,
        &tabmux::UNFOLDED,
        &playwright::DIALECT,
        &chrome_devtools::DIALECT,
        &agent_browser::DIALECT,
        &tabmux::INTERACTIVE,
        &agent_browser::INTERACTIVE,
    ]
}

/// Measures all products, or those whose name contains `only`.
pub(super) fn measure(installed: &Installed, browsers: &Browsers, extent: Extent, only: Option<&str>) -> Result<Reading> {
    let began = Instant::now();
    let (tasks, looks) = if extent == Extent::Trial { (1, 1) } else { (10, 5) };
    let pages = Pages::with(Shelf::fill(extent)?)?;
    let mut reading = Reading { preface: preface(installed, browsers, pages.shelf()), ..Reading::default() };
    println!("{}", reading.preface.join("\n"));
    for dialect in dialects().into_iter().filter(|dialect| only.is_none_or(|name| dialect.product.name().contains(name))) {
        let directory = tempfile::tempdir()?;
        let browser = named_browser(dialect.product, Browser::SameAsTabmux, browsers);
        let ground = Ground { installed, directory: directory.path().to_owned(), browser };
        let (product, how) = (dialect.product, dialect.how.to_owned());
        let log = |what: &str| println!("{:6.1} s  {} ({how}): {what}", began.elapsed().as_secs_f64(), product.name());
        if let Some(form) = dialect.form {
            let tokens = looks::list_tokens(dialect, &ground);
            log(&format!("tool list: {tokens:?}"));
            reading.lists.push(ListCell { product, tokens });
            let outcome = forms::measure(dialect, form, &ground, &pages, tasks)?;
            log(&format!("form: {outcome:?}"));
            reading.forms.push(FormCell { product, how: how.clone(), outcome });
        }
        for (page, outcome) in looks::measure(dialect, &ground, &pages, looks)? {
            log(&format!("{page}: {outcome:?}"));
            reading.sights.push(SightCell { product, how: how.clone(), page, outcome });
        }
    }
    Ok(reading)
}

/// The document's part, and how many limits do not hold.
pub(super) fn report(reading: &Reading) -> (String, usize) {
    let verdicts = verdict::verdicts(reading);
    let broken = verdicts.iter().filter(|row| row.holds == Holds::No).count();
    let text = format!(
        "## Reading and acting, side by side\n\nWritten by `cargo xtask bench peers`. {}\n\n{}{}",
        reading.preface.join(" "),
        rows_table(&verdicts),
        table::tables(reading)
    );
    (text, broken)
}

fn preface(installed: &Installed, browsers: &Browsers, shelf: &Shelf) -> Vec<String> {
    vec![
        memory::machine(),
        versions(installed),
        format!("Every contender has one agent, a client of its own and `{}`.", browsers.shell.display()),
        "Tokens are of o200k: of the texts of the replies (structured copies beside them are not counted), and for the form \
         also of the names and arguments of the calls. A reply that was cut is followed to its end. Limits compare whole pages; \
         what shows only the interactive elements stands in the last columns. The small form, the 200-row list and the article \
         are of the sizes of the first comparison (FACTS.md §2)."
            .to_owned(),
        shelf.sentence(),
    ]
}
