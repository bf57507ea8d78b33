//! What a fake page has for reading: a block for each of its lines. Pure.

use crate::{Article, DriverError, Reading, Result};

/// A line costs ten tokens here.
const LINE: u32 = 10;

pub(super) fn read(text: &str, reading: &Reading) -> Result<Article> {
    if let Some(selector) = reading.selector.as_ref().filter(|selector| selector.to_string() != "body") {
        return Err(DriverError::ElementNotFound { selector: selector.to_string(), near: Vec::new() });
    }
    let lines: Vec<_> = text.lines().collect();
    let from = reading.cursor.as_deref().map_or(Ok(0), str::parse::<usize>).ok().filter(|from| *from <= lines.len());
    let from = from.ok_or(DriverError::StaleCursor)?;
    let end = lines.len().min(from + (reading.budget / LINE).max(1) as usize);
    let left = lines.len() - end;
    let cursor = (left > 0).then(|| end.to_string());
    Ok(Article { text: lines[from..end].join("\n"), cursor, left, left_out: Vec::new() })
}
