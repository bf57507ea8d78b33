//! What can be seen of a fake page: a heading, its one link to itself, and a line for each text that scripts added. Pure.

use crate::{Changes, DriverError, Result, Scope, Sight, Snapshot, Which};

/// What somebody saw last.
#[derive(Debug, Default)]
pub(super) struct Seen(Option<(String, Vec<String>)>);

impl Seen {
    pub(super) fn look(&mut self, url: &str, title: &str, added: &str, sight: &Sight) -> Result<Snapshot> {
        let mut lines = lines(url, title, added);
        self.0 = Some((url.to_owned(), lines.clone()));
        match &sight.scope {
            Scope::Page | Scope::Span(..) => {}
            Scope::Part(selector) => match selector.reference() {
                Some(1) => lines.retain(|line| line.starts_with("e1 ")),
                Some(number) => return Err(DriverError::StaleRef(format!("e{number}"))),
                None => return Err(DriverError::ElementNotFound { selector: selector.to_string(), near: Vec::new() }),
            },
        }
        if sight.which == Which::Interactive {
            lines.retain(|line| line.starts_with('e'));
        }
        if let Some(find) = &sight.find {
            lines.retain(|line| line.to_lowercase().contains(&find.to_lowercase()));
        }
        let from: usize = sight.cursor.as_deref().map_or(Ok(0), str::parse).map_err(|_| DriverError::StaleCursor)?;
        // A line costs ten tokens here.
        let shown = (sight.budget as usize / 10).max(1);
        let left = lines.len().saturating_sub(from + shown);
        let cursor = (left > 0).then(|| (from + shown).to_string());
        Ok(Snapshot { text: lines.into_iter().skip(from).take(shown).collect::<Vec<_>>().join("\n"), cursor, left })
    }

    pub(super) fn compare(&mut self, url: &str, title: &str, added: &str) -> Changes {
        let now = lines(url, title, added);
        let before = self.0.replace((url.to_owned(), now.clone()));
        let moved = before.as_ref().is_some_and(|(former, _)| former != url);
        let text = match before {
            None => String::new(),
            Some(_) if moved => now.join("\n"),
            Some((_, before)) => {
                let added = now.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
                added.chain(before.iter().filter(|line| !now.contains(line)).map(|line| format!("- {line}"))).collect::<Vec<_>>().join("\n")
            }
        };
        Changes { moved, text, ..Changes::default() }
    }
}

fn lines(url: &str, title: &str, added: &str) -> Vec<String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut lines = vec![format!("# {}", quoted(title)), format!("e1 link {}", quoted(url))];
    lines.extend(added.lines().map(quoted));
    lines
}
