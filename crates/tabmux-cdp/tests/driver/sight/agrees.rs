//! What we read beside what Chromium itself tells assistive technology: nothing that can be focused is missing, and it has the
//! same role and name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tabmux_cdp::protocol::accessibility::GetFullAXTree;
use tabmux_cdp::protocol::target::AttachToTarget;

use super::*;

/// How many documentation pages of each directory are compared, and how many there are at least.
const OF_EACH: usize = 3;
const PAGES: usize = 20;

/// Roles that have another name here.
const CALLED: [(&str, &str); 10] = [
    ("DisclosureTriangle", "disclosure"),
    ("Iframe", "iframe"),
    ("ColorWell", "colorwell"),
    ("Date", "date"),
    ("DateTime", "datetime"),
    ("InputTime", "time"),
    ("Canvas", "canvas"),
    ("Video", "video"),
    ("Audio", "audio"),
    ("generic", "focusable"),
];

/// What Chromium says can be focused: role and name.
async fn focusable(stage: &Stage) -> Vec<(String, String)> {
    let connection = stage.browser.connection();
    let attach = AttachToTarget { target_id: stage.page.handle().0.clone(), flatten: Some(true) };
    let session = connection.call(None, &attach).await.expect("our own page").session_id;
    let tree = soon(connection.call(Some(&session), &GetFullAXTree::default())).await.expect("it has a tree");
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for node in tree.nodes.iter().filter(|node| !node.ignored) {
        let can =
            node.properties.iter().flatten().any(|property| property.name == "focusable" && property.value.value == Some(true.into()));
        let role = text(node.role.as_ref().and_then(|role| role.value.as_ref()));
        // Options of a closed list are told with it.
        if can && !["RootWebArea", "option", "MenuListPopup"].contains(&role.as_str()) {
            let role = CALLED.iter().find(|(theirs, _)| *theirs == role).map_or(role.as_str(), |(_, ours)| ours).to_owned();
            let name = text(node.name.as_ref().and_then(|name| name.value.as_ref()));
            found.push((role, name.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    found
}

/// A line's words, and what is quoted in it.
fn words(line: &str) -> Vec<(String, bool)> {
    let (mut found, mut rest) = (Vec::new(), line);
    while let Some(first) = rest.chars().next() {
        let length = if first == '"' {
            let mut quotes = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            found.push((quotes.next().expect("a quote").expect("JSON"), true));
            quotes.byte_offset()
        } else {
            let word = rest.split([' ', '"']).next().unwrap_or_default();
            found.push((word.to_owned(), false));
            word.len().max(1)
        };
        rest = &rest[length..];
    }
    found.retain(|(word, quoted)| *quoted || !word.is_empty());
    found
}

/// What we say can be acted upon: role and name, counted.
fn told(text: &str) -> HashMap<(String, String), usize> {
    let is_ref =
        |word: &str| word.strip_prefix('e').is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    let mut found = HashMap::new();
    for words in text.lines().map(words) {
        for at in (0..words.len()).filter(|at| !words[*at].1 && is_ref(&words[*at].0)) {
            let role = words.get(at + 1).map_or("", |(word, _)| word).trim_end_matches(':').to_owned();
            let name = words.get(at + 2).filter(|(_, quoted)| *quoted).map(|(name, _)| name.clone()).unwrap_or_default();
            *found.entry((role, name)).or_default() += 1;
        }
    }
    found
}

async fn compare(stage: &Stage, what: &str) -> (usize, Vec<(String, String)>) {
    let text = stage.see(&Sight { rows: Rows::All, budget: 10_000_000, ..Sight::default() }).await.text;
    let (mut ours, theirs) = (told(&text), focusable(stage).await);
    for role in theirs.iter().map(|(role, _)| role) {
        let said: usize = ours.iter().filter(|((known, _), _)| known == role).map(|(_, count)| count).sum();
        let there = theirs.iter().filter(|(known, _)| known == role).count();
        assert!(said >= there, "{what}: {said} of {there} of the kind {role} are in\n{text}");
    }
    let mut misnamed = Vec::new();
    for found in &theirs {
        match ours.get_mut(found) {
            Some(left) if *left > 0 => *left -= 1,
            _ => misnamed.push(found.clone()),
        }
    }
    (theirs.len(), misnamed)
}

#[tokio::test]
async fn roles_and_names_of_all_kinds_of_controls_are_chromiums() {
    let stage = Stage::showing(
        r##"<a href=1>Link <b>bold</b></a><a href=2 aria-label="Labelled">x</a><a href=3><img alt="Picture" src="data:,"></a>
        <button title=Tip></button><button><span>One</span><div>Two</div></button><input type=submit><input type=reset value=Again>
        <label for=x>Text field</label><input id=x><input placeholder=Hint><input type=search aria-labelledby="l1 l2"><b id=l1>First</b><i id=l2 hidden>Second</i>
        <textarea title=Area></textarea><select aria-label=Choose><option>A<option>B</select><input type=checkbox aria-label=Check><label><input type=radio>Radio</label>
        <input type=range aria-label=Range><input type=number aria-label=Number><input type=color aria-label=Colour>
        <div role=button tabindex=0>Own <em>button</em></div><div role=tab tabindex=0 aria-selected=true>Tab</div><div role=switch tabindex=0 aria-checked=true>Switch</div>
        <div role=menuitem tabindex=-1>Item</div><details><summary>Details</summary>x</details><button style="text-transform:uppercase">loud</button>
        <button aria-labelledby=gone>Fallback</button><a href=4 role=button>Pressed</a><span role=link tabindex=0>Span link</span><div role=slider tabindex=0 aria-label=Slide aria-valuenow=3></div>
        <style>.icon::before { content: "Icon \\22" } details[open] summary::after { content: "less" }</style><button class=icon></button><details open><summary>Open</summary>x</details>
        <style>@media all { .said::before { content: "before " } } .said i::after { content: " inside" } .said::after { display: none; content: "not shown" }
        .req::after { content: " *" } [data-end]::after { content: attr(data-end) } .alt::before { content: "★" / "Star " }</style>
        <button class=said>after <i>and</i></button><label class=req for=must>Must</label><input id=must><a href=6 data-end=" end">Link</a><a href=7 class=alt>Alt</a>
        <a role=doc-noteref href=5>[1]</a>"##,
    )
    .await;
    let (count, misnamed) = compare(&stage, "controls").await;
    assert!(count >= 30 && misnamed.is_empty(), "{count}: {misnamed:?}");
}

/// Pages of Debian's documentation packages, which `scripts/setup.sh docs` unpacks: some of each directory, of several makers.
pub(super) fn documentation() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/docs")];
    while let Some(directory) = open.pop() {
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let (below, pages): (Vec<_>, Vec<_>) =
            entries.map(|entry| entry.path()).filter(|path| !path.is_symlink()).partition(|path| path.is_dir());
        open.extend(below);
        let mut pages: Vec<_> = pages.into_iter().filter(|path| is_page(path)).collect();
        pages.sort();
        found.extend(pages.into_iter().take(OF_EACH));
    }
    found.sort();
    found
}

fn is_page(path: &Path) -> bool {
    let size = std::fs::metadata(path).map_or(0, |about| about.len());
    path.extension().is_some_and(|ending| ending == "html") && (4_000..200_000).contains(&size)
}

#[tokio::test]
async fn on_documentation_pages_nothing_is_missing_and_names_are_chromiums_for_99_of_100() {
    let pages = documentation();
    assert!(pages.len() >= PAGES, "{} documentation pages are here; scripts/setup.sh docs brings them", pages.len());
    let stage = Stage::new(Want::Plain).await;
    let (mut all, mut wrong) = (0, Vec::new());
    for path in pages {
        soon(stage.page.navigate(Navigation::To(&format!("file://{}", path.display())))).await.expect("it opens");
        let (count, misnamed) = compare(&stage, &path.display().to_string()).await;
        all += count;
        wrong.extend(misnamed);
    }
    assert!(all >= 500 && wrong.len() * 100 <= all, "{} of {all}: {wrong:?}", wrong.len());
}
