//! What goes to standard output: results, as text or as one JSON document, and nothing else. Everything for the
//! eye of a person (notes, failures) goes to standard error. Colour and tables only where a person looks.

use std::io::{ErrorKind, IsTerminal, Write};

use serde_json::{Value, json};
use tabmux_core::Code;
use tabmux_wire::control::WireFault;

use crate::failure::{Exit, Failure, Outcome};

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
}

/// Writes a result.
pub(crate) fn say(text: &str) -> Outcome {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| if text.ends_with('\n') { Ok(()) } else { stdout.write_all(b"\n") });
    match written.and_then(|()| stdout.flush()) {
        // Whoever read has seen enough, as in `tabmux ls | head -1`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::io("The result cannot be written", &error)),
        Ok(()) => Ok(()),
    }
}

pub(crate) fn say_json(document: &Value) -> Outcome {
    say(&document.to_string())
}

/// Says a result in the wanted form.
pub(crate) fn report(form: Form, document: &Value, text: impl FnOnce() -> String) -> Outcome {
    match form {
        Form::Json => say_json(document),
        Form::Text => {
            let text = text();
            if text.is_empty() { Ok(()) } else { say(&text) }
        }
    }
}

/// Says something beside the result. Where standard error is closed, nobody listens.
pub(crate) fn note(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}

pub(crate) fn fail(form: Form, failure: &Failure) {
    let fault = &failure.fault;
    // That there is nobody to ask has no code of its own, but the nearest there is; words do.
    let text = match (failure.exit, fault.code) {
        (Exit::Unavailable, Code::Internal | Code::SessionNotFound) => format!("{} {}", fault.message, fault.hint),
        _ => fault.to_string(),
    };
    match form {
        // The failure is being reported already; that its report cannot be written cannot be reported as well.
        Form::Json => drop(say_json(&json!({"error": WireFault::from(fault)}))),
        Form::Text if std::io::stderr().is_terminal() => note(&format!("\x1b[31mtabmux:\x1b[0m {text}")),
        Form::Text => note(&format!("tabmux: {text}")),
    }
}

/// Rows in columns with headings on a terminal; elsewhere tabs between the cells and no headings, for scripts.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    if std::io::stdout().is_terminal() { aligned(headings, rows) } else { rows.iter().map(|row| row.join("\t") + "\n").collect() }
}

fn aligned<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).chain([headings[column].len()]).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: [&str; N]| {
        let padded: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let body: String = rows.iter().map(|row| line(std::array::from_fn(|column| row[column].as_str()))).collect();
    format!("\x1b[1m{}\x1b[0m\n{body}", line(headings).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_under_their_headings() {
        let rows = [["a".to_owned(), "1".to_owned()], ["long-name".to_owned(), "22".to_owned()]];
        assert_eq!(aligned(["NAME", "TABS"], &rows), "\u{1b}[1mNAME       TABS\u{1b}[0m\na          1\nlong-name  22\n");
    }

    #[test]
    fn a_script_reads_cells_between_tabs() {
        assert_eq!(table(["NAME", "TABS"], &[["a b".to_owned(), "1".to_owned()]]), "a b\t1\n");
    }
}
