//! What reading costs a model, in o200k's tokens, beside the smallest of the peers (FACTS §2), and what it costs the page.

use std::fmt::Write as _;

use tabmux_cdp::protocol::system_info::GetProcessInfo;

use super::*;

pub(super) fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}

const SENTENCES: &str = include_str!("sentences.txt");

/// An article of 28 kB: paragraphs of plain prose, with a heading now and then and a link in every other one.
fn article() -> String {
    let sentences: Vec<_> = SENTENCES.lines().collect();
    let mut html = "<article><h1>An article</h1>".to_owned();
    for at in 0.. {
        let text = (0..4 + at % 3).map(|sentence| sentences[(at * 3 + sentence) % sentences.len()]).collect::<Vec<_>>().join(" ");
        match at % 8 {
            0 => write!(html, "<h2>Part {at} of the story</h2>"),
            1 | 3 | 5 => write!(html, "<p>{text} See <a href=\"#{at}\">section {at}</a> for <em>more</em>.</p>"),
            _ => write!(html, "<p class=\"body-text\">{text}</p>"),
        }
        .expect("writing to a string cannot fail");
        if html.len() > 28_000 {
            break;
        }
    }
    html + "</article>"
}

#[tokio::test]
async fn a_small_form_a_long_list_and_an_article_cost_less_than_with_any_peer() {
    let article = article();
    assert!((28_000..30_000).contains(&article.len()), "{}", article.len());
    for (name, body, most, most_in_full) in
        [("form", FORM, 173, 173), ("list", &rows(200), 10_181, 10_181), ("article", &article, 6581, 6581)]
    {
        let stage = Stage::showing(body).await;
        let folded = tokens(&stage.lines().await);
        let full = stage.see(&Sight { rows: Rows::All, budget: 1_000_000, ..Sight::default() }).await;
        assert_eq!(full.left, 0);
        let full = tokens(&full.text);
        assert!(folded <= most && full <= most_in_full, "{name}: {folded} and {full} tokens");
    }
}

/// A bare walk: what each node is called, what it says and where it is.
const WALK: &str = "(() => { let said = 0; const walk = (node) => { said += node.nodeName.length; if (node.nodeType === 3) said += node.data.length; \
    else if (node.nodeType === 1) said += node.getBoundingClientRect().width; for (const child of node.childNodes) walk(child); }; \
    walk(document.body); return said; })()";

/// In how many rounds it is measured: Chromium counts in hundredths of a second.
const ROUNDS: usize = 15;

/// How long the processes that draw pages have worked, whatever else the machine does.
async fn worked(stage: &Stage) -> f64 {
    let known = soon(stage.browser.connection().call(None, &GetProcessInfo::default())).await.expect("the browser knows its processes");
    known.process_info.iter().filter(|process| process.kind == "renderer").map(|process| process.cpu_time).sum()
}

#[tokio::test]
async fn ten_thousand_nodes_are_read_in_three_times_a_bare_walk() {
    let plain = |at: usize| format!("<div>Item {at}</div>");
    let prose = |at: usize| format!("<div><p>Paragraph {at} with <b>bold</b> and <a href='#{at}'>link {at}</a></p></div>");
    let row = |at: usize| format!("<tr><td>{at}</td><td><a href='/{at}'>Name {at}</a></td><td><button>Edit</button></td></tr>");
    let table = format!("<table>{}</table>", (0..1000).map(row).collect::<String>());
    for (what, body) in [
        ("plain", (0..5000).map(plain).collect::<String>()),
        ("prose", (0..1250).map(prose).collect::<String>()),
        ("table", table),
        ("list", rows(750)),
    ] {
        let stage = Stage::showing(&body).await;
        // Neither is measured while it is new to the browser.
        for _ in 0..3 {
            stage.run(WALK).await;
            stage.lines().await;
        }
        let mut best = f64::MAX;
        for _ in 0..3 {
            best = best.min(times_a_walk(&stage).await);
            if best <= 3.0 {
                break;
            }
        }
        assert!(best <= 3.0, "{what}: {best} times a walk");
    }
}

async fn times_a_walk(stage: &Stage) -> f64 {
    let began = worked(stage).await;
    for _ in 0..ROUNDS {
        stage.run(WALK).await;
    }
    let walked = worked(stage).await;
    for _ in 0..ROUNDS {
        stage.lines().await;
    }
    (worked(stage).await - walked) / (walked - began).max(0.05)
}

#[tokio::test]
async fn fifty_thousand_nodes_are_read_while_the_page_goes_on() {
    let item = |at: usize| format!("<p>Text {at} <a href='#{at}'>link {at}</a></p>");
    let stage = Stage::showing(&(0..12_500).map(item).collect::<String>()).await;
    stage.run("window.ticks = 0; const channel = new MessageChannel(); channel.port1.onmessage = () => { ticks++; channel.port2.postMessage(0); }; channel.port2.postMessage(0); 0").await;
    let before = stage.run("window.ticks = 0").await;
    let seen = stage.see(&Sight::default()).await;
    let during = stage.run("window.ticks").await;
    assert!(seen.text.contains("more rows like this"), "{}", seen.text.chars().take(500).collect::<String>());
    assert!(during.as_u64() > before.as_u64(), "the page stood still");
}
