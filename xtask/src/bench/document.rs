//! docs/benchmarks.md has several writers; each owns the part between its own marks.

use anyhow::Result;

use crate::workspace;

const DOCUMENT: &str = "docs/benchmarks.md";

/// Replaces the part of this name, or adds it at the end.
pub(super) fn write_part(name: &str, part: &str) -> Result<()> {
    let document = workspace::read(DOCUMENT).unwrap_or_default();
    workspace::write(DOCUMENT, &with_part(&document, name, part))
}

fn with_part(document: &str, name: &str, part: &str) -> String {
    let (begin, end) = (format!("<!-- {name}: begin -->"), format!("<!-- {name}: end -->"));
    let part = format!("{begin}\n{}\n{end}", part.trim_end());
    match (document.find(&begin), document.find(&end)) {
        (Some(from), Some(to)) if from < to => format!("{}{part}{}", &document[..from], &document[to + end.len()..]),
        _ => format!("{}\n\n{part}\n", document.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_between_its_marks_and_the_rest_stays() {
        let one = with_part("# Benchmarks\n", "a", "first\n");
        assert_eq!(one, "# Benchmarks\n\n<!-- a: begin -->\nfirst\n<!-- a: end -->\n");
        let two = with_part(&one, "b", "other");
        let again = with_part(&two, "a", "second");
        assert!(again.contains("second") && again.contains("other") && !again.contains("first"), "{again}");
        assert_eq!(again.matches("<!--").count(), 4);
    }
}
