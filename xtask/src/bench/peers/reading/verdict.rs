//! The limits of issue 4 and whether this run keeps them. tabmux is judged by what it answers when asked for a page without
//! further arguments, followed to the end; the smallest peer is found for each number by itself.

use super::super::agent::Product;
use super::super::verdict::{milliseconds, unmeasured};
use super::result::{FormDone, Reading, Seen};
use super::shelf::{ARTICLE, FORM, LIST, NODES, nodes_name};
use crate::bench::{Holds, Row};

const LIST_TOKENS: usize = 2_500;
const ROWS_SHARE: f64 = 0.5;
const SHARE: f64 = 1.0;
/// How the pages of packages are named.
const OF_PACKAGE: &str = ": ";

pub(super) fn verdicts(reading: &Reading) -> Vec<Row> {
    let mut rows = vec![tool_list(reading)];
    rows.push(form(reading, "form: calls, of the fewest of a peer", Some(SHARE), |done| done.spent.calls as f64, |n| format!("{n:.0}")));
    rows.push(form(reading, "form: tokens, of the smallest peer", Some(SHARE), |done| done.spent.tokens() as f64, |n| format!("{n:.0}")));
    rows.push(form(reading, "form: time p50, of the fastest peer", None, |done| done.time.p50_ms, milliseconds));
    for (page, limit) in [(FORM, SHARE), (LIST, ROWS_SHARE), (ARTICLE, SHARE)] {
        rows.push(page_row(reading, page, &format!("{page}: tokens, of the smallest peer"), Some(limit), tokens, |n| format!("{n:.0}")));
    }
    rows.push(documentation(reading));
    for nodes in NODES.map(nodes_name).iter().filter(|page| reading.sights.iter().any(|cell| cell.page == **page)) {
        rows.push(page_row(reading, nodes, &format!("{nodes}: tokens, of the smallest peer"), None, tokens, |n| format!("{n:.0}")));
        rows.push(page_row(
            reading,
            nodes,
            &format!("{nodes}: time p50, of the fastest peer"),
            None,
            |seen| seen.time.p50_ms,
            milliseconds,
        ));
    }
    rows.push(mistakes(reading));
    rows
}

fn tokens(seen: &Seen) -> f64 {
    seen.tokens as f64
}

fn tool_list(reading: &Reading) -> Row {
    let what = "tool list, tokens";
    let ours = reading.lists.iter().find(|cell| cell.product == Product::Tabmux).and_then(|cell| cell.tokens.as_ref().ok());
    let peers = reading.lists.iter().filter(|cell| cell.product != Product::Tabmux);
    let best = peers.filter_map(|cell| Some((cell.product, *cell.tokens.as_ref().ok()?))).min_by_key(|(_, tokens)| *tokens);
    let (Some(ours), Some((peer, best))) = (ours, best) else { return unmeasured(what, "not measured") };
    let measured = format!("{ours} ({}: {best})", peer.name());
    Row { what: what.into(), measured, limit: format!("≤ {LIST_TOKENS}"), holds: Holds::when(*ours <= LIST_TOKENS) }
}

fn form(reading: &Reading, what: &str, limit: Option<f64>, of: fn(&FormDone) -> f64, text: fn(f64) -> String) -> Row {
    let numbers = reading.forms.iter().filter_map(|cell| Some((cell.product, of(cell.outcome.as_ref().ok()?))));
    share(what, limit, &numbers.collect::<Vec<_>>(), text)
}

fn page_row(reading: &Reading, page: &str, what: &str, limit: Option<f64>, of: fn(&Seen) -> f64, text: fn(f64) -> String) -> Row {
    share(what, limit, &numbers(reading, page, of), text)
}

/// One number of each product on a page; tabmux's is the one it gives by itself, which is the first.
fn numbers(reading: &Reading, page: &str, of: fn(&Seen) -> f64) -> Vec<(Product, f64)> {
    let cells = reading.sights.iter().filter(|cell| cell.page == page);
    let mut numbers: Vec<(Product, f64)> = Vec::new();
    for cell in cells {
        if let Ok(seen) = &cell.outcome
            && numbers.iter().all(|(product, _)| *product != cell.product)
        {
            numbers.push((cell.product, of(seen)));
        }
    }
    numbers
}

/// tabmux's number, as a share of the smallest of the peers'.
fn share(what: &str, limit: Option<f64>, numbers: &[(Product, f64)], text: fn(f64) -> String) -> Row {
    let Some((ours, peer, best)) = beside(numbers) else { return unmeasured(what, "not measured") };
    let share = ours / best;
    Row {
        what: what.into(),
        measured: format!("{:.0} % ({}; {}: {})", share * 100.0, text(ours), peer.name(), text(best)),
        limit: limit.map_or("–".into(), |limit| format!("≤ {:.0} %", limit * 100.0)),
        holds: limit.map_or(Holds::Unjudged, |limit| Holds::when(share <= limit)),
    }
}

fn beside(numbers: &[(Product, f64)]) -> Option<(f64, Product, f64)> {
    let ours = numbers.iter().find(|(product, _)| *product == Product::Tabmux)?.1;
    let peers = numbers.iter().filter(|(product, number)| *product != Product::Tabmux && *number > 0.0);
    let (peer, best) = *peers.min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((ours, peer, best))
}

/// Every page by itself: a sum would let one long page hide the others.
fn documentation(reading: &Reading) -> Row {
    let what = "documentation pages: tokens, of the smallest peer on the worst";
    let mut pages: Vec<_> = reading.sights.iter().map(|cell| cell.page.as_str()).filter(|page| page.contains(OF_PACKAGE)).collect();
    pages.sort_unstable();
    pages.dedup();
    let shares: Option<Vec<_>> =
        pages.iter().map(|page| beside(&numbers(reading, page, tokens)).map(|(ours, peer, best)| (ours / best, *page, peer))).collect();
    let worst = shares.as_ref().and_then(|shares| shares.iter().max_by(|a, b| a.0.total_cmp(&b.0)));
    let (Some(shares), Some((share, page, peer))) = (&shares, worst) else {
        return unmeasured(what, "a page was not read by tabmux, or by no peer");
    };
    let kept = shares.iter().filter(|(share, ..)| *share <= SHARE).count();
    let measured = format!("{:.0} % ({page}; {}), {kept} of {} within", share * 100.0, peer.name(), shares.len());
    Row { what: what.into(), measured, limit: format!("≤ {:.0} %", SHARE * 100.0), holds: Holds::when(*share <= SHARE) }
}

fn mistakes(reading: &Reading) -> Row {
    let unread = reading.sights.iter().filter(|cell| cell.product == Product::Tabmux && cell.outcome.is_err()).count() as u64;
    let forms = reading.forms.iter().filter(|cell| cell.product == Product::Tabmux);
    let failed: u64 = forms.map(|cell| cell.outcome.as_ref().map_or(1, |done| done.errors)).sum();
    let measured = format!("{failed} forms, {unread} pages");
    Row { what: "errors and wrong results of tabmux".into(), measured, limit: "0".into(), holds: Holds::when(failed + unread == 0) }
}
