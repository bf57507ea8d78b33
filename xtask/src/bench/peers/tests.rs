use super::agent::{Browser, Door, Product};
use super::result::{Measured, Outcome, Run};
use super::*;

/// A run of this benchmark on a busy machine; no number of it is a claim.
fn recorded() -> Run {
    serde_json::from_str(include_str!("recorded.json")).unwrap()
}

fn change(run: &mut Run, product: Product, change: impl Fn(&mut Measured)) {
    for cell in run.cells.iter_mut().filter(|cell| cell.product == product) {
        if let Outcome::Measured(measured) = &mut cell.outcome {
            change(measured);
        }
    }
}

fn holds(run: &Run, what: &str) -> Holds {
    let rows = verdict::verdicts(run);
    rows.into_iter().find(|row| row.what.starts_with(what)).unwrap_or_else(|| panic!("no verdict on {what}")).holds
}

#[test]
fn each_limit_is_judged_by_its_own_number() {
    let run = recorded();
    assert_eq!(holds(&run, "evaluate p50, times a bare client"), Holds::No);
    assert_eq!(holds(&run, "evaluate p50, times faster"), Holds::Yes);
    assert_eq!(holds(&run, "defaults: ready"), Holds::Yes);
    assert_eq!(holds(&run, "defaults: memory, of the best peer"), Holds::Yes);
    assert_eq!(holds(&run, "defaults: memory, of the best with a client"), Holds::Yes);
    assert_eq!(holds(&run, "same binary, Chromium: memory, of the best peer"), Holds::No);
    assert_eq!(holds(&run, "same binary, Chromium: memory, of the best with a client"), Holds::Yes);
    assert_eq!(holds(&run, "same binary, headless-shell: memory, of the best peer"), Holds::Yes);
    assert_eq!(holds(&run, "same binary, headless-shell: memory, of the best with a client"), Holds::No);
    assert_eq!(holds(&run, "calls per second"), Holds::Yes);
    assert_eq!(holds(&run, "wrong answers"), Holds::Yes);
    assert_eq!(holds(&run, "command line: evaluate"), Holds::Unjudged);

    let mut slow = recorded();
    change(&mut slow, Product::Tabmux, |measured| {
        measured.evaluate.p50_ms *= 2.0;
        measured.ready_ms *= 3.0;
        measured.memory_kb *= 2;
        measured.calls_per_s /= 3.0;
        measured.tally.wrong += 1;
    });
    for what in [
        "evaluate p50, times faster",
        "defaults: ready",
        "defaults: memory",
        "same binary, headless-shell: memory",
        "calls per second",
        "wrong",
    ] {
        assert_eq!(holds(&slow, what), Holds::No, "{what}");
    }
    let broken = report(&slow).1;
    assert!(broken > report(&run).1, "{broken}");
}

#[test]
fn the_best_peer_is_the_best_of_those_that_count() {
    let row = |run: &Run, what: &str| verdict::verdicts(run).into_iter().find(|row| row.what.starts_with(what)).unwrap().measured;
    let run = recorded();
    // All set-ups count for memory, only those with a client per agent for the second limit, and no command line for either.
    assert!(row(&run, "defaults: memory, of the best peer").contains("@playwright/mcp `--isolated --port`"));
    assert!(row(&run, "defaults: memory, of the best with a client").contains("agent-browser `mcp`"));
    assert!(row(&run, "evaluate p50, times faster").contains("agent-browser `mcp`"));
    let mut silent = recorded();
    change(&mut silent, Product::AgentBrowser, |measured| measured.evaluate = Spread::default());
    assert!(row(&silent, "evaluate p50, times faster").contains("chrome-devtools-mcp"), "a peer without a right answer is not the fastest");
}

#[test]
fn what_was_not_measured_holds_nothing() {
    let mut run = recorded();
    run.cells.retain(|cell| cell.product == Product::Tabmux);
    run.floor = None;
    assert_eq!(holds(&run, "evaluate p50, times a bare client"), Holds::No);
    assert_eq!(holds(&run, "calls per second"), Holds::No);
    run.cells.clear();
    assert_eq!(holds(&run, "everything"), Holds::No);
}

#[test]
fn the_tables_name_every_contender_its_browser_and_its_failures() {
    let run = recorded();
    let (text, _) = report(&run);
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with("| tabmux |") || line.starts_with("| @playwright/mcp |")).collect();
    assert!(rows[0].contains("default: chromium-headless-shell") && rows[0].contains("1.00 ×, 1.00 ×, 1.00 ×, 1.00 ×"), "{}", rows[0]);
    assert!(text.contains("### 20 agents") && text.contains("hung: ended with all its processes after 120 s"));
    let (_, tables) = text.split_once("### ").unwrap();
    let lines: Vec<_> = tables.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(lines.len(), run.cells.len() + 2 * 2, "two tables of a head and a row for each cell");
    for line in lines {
        assert_eq!(line.matches('|').count(), 13, "{line}");
    }
}

#[test]
fn the_chart_has_a_bar_for_each_contender_in_each_panel() {
    let run = recorded();
    let bars = run.cells.iter().filter(|cell| cell.agents == JUDGED_AGENTS && cell.measured().is_some()).count();
    let svg = chart::chart(&run);
    // One rectangle is the background.
    assert_eq!(svg.matches("<rect ").count(), 4 * bars + 1);
    assert_eq!(svg.matches("#1a7f37").count(), 4 * 3, "ours are marked");
    assert!(!svg.contains('`') && svg.ends_with("</svg>\n"));
}

#[test]
fn every_peer_runs_with_its_default_browser_and_with_that_of_tabmux() {
    let all = contenders();
    for product in [Product::Playwright, Product::ChromeDevtools, Product::AgentBrowser] {
        for browser in [Browser::Default, Browser::SameAsTabmux] {
            assert!(
                all.iter().any(|c| c.product == product && c.browser == browser && c.door == Door::OwnClient),
                "{product:?} {browser:?}"
            );
        }
    }
    assert!(all.iter().any(|c| c.product == Product::Tabmux && c.browser == Browser::Default && c.door == Door::OwnClient));
}
