//! The shape of files: what each must begin with, how long it may be, and which words may not stand in it.

use std::collections::BTreeSet;

use crate::workspace::Source;

const MAX_LINES: usize = 800;

/// Tests that may sleep, and why no event can be awaited there.
const MAY_SLEEP: [(&str, &str); 3] = [
    ("crates/tabmux/tests/support/wait.rs", "polls what another process does (exit, file, socket), for all end-to-end tests"),
    ("crates/tabmux/src/start/tests.rs", "a stopped process sends no event, and a lock file appears without one"),
    ("crates/tabmux-daemon/src/hub/tests/restart.rs", "records are ordered by the wall clock's milliseconds, so one must pass"),
];

/// Spelt in halves so that this file does not find itself.
const SLEEPS: [&str; 3] = [concat!("thread::sle", "ep("), concat!("time::sle", "ep("), concat!("sle", "ep(Duration")];
const IGNORED: &str = concat!("#[ign", "ore");
const TODO: &str = concat!("to", "do!(");
const UNWRAP: &str = concat!(".unw", "rap()");
const EMPTY_NAMES: [&str; 3] = ["Manager", "Helper", "Utils"];

pub(super) fn check_rust(file: &Source, test_modules: &BTreeSet<String>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find = |line: usize, what: &str| findings.push(format!("{}:{line}: {what}", file.path));
    let in_test_module =
        test_modules.iter().any(|module| file.path == *module || file.path.starts_with(&format!("{}/", module.trim_end_matches(".rs"))));
    let all_tests = file.path.contains("/tests/") || in_test_module;
    if !in_test_module && !file.text.starts_with("//!") {
        find(1, "begins without `//!`: say what this room is for");
    }
    let lines = file.text.lines().count();
    if lines > MAX_LINES {
        find(lines, &format!("{lines} lines; the limit is {MAX_LINES}"));
    }
    if is_empty_name(stem(&file.path)) {
        find(1, "the file's name says nothing; name it after its one type or verb");
    }
    let tests_from = file.text.lines().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(usize::MAX);
    let mut paused_clock = false;
    for (at, line) in file.text.lines().enumerate() {
        if line.contains("#[tokio::test") || line.contains("#[test]") {
            paused_clock = line.contains("start_paused");
        }
        paused_clock = (paused_clock || line.trim().ends_with("pause();")) && !line.trim().ends_with("resume();");
        let code = line.split("//").next().unwrap_or_default();
        let in_tests = all_tests || at > tests_from;
        if code.contains(IGNORED) {
            find(at + 1, "an ignored test tests nothing");
        }
        if code.contains(TODO) {
            find(at + 1, "unfinished");
        }
        if !in_tests && code.contains(UNWRAP) {
            find(at + 1, "unwrap outside tests; use expect(\"why this cannot be\")");
        }
        // Under a paused clock a sleep takes no time: it is how such a test says "later".
        if in_tests && !paused_clock && !may_sleep(&file.path) && SLEEPS.iter().any(|sleep| code.contains(sleep)) {
            find(at + 1, "a test that sleeps; await an event, or use wait::until");
        }
        if code.split('"').step_by(2).flat_map(declared_names).any(is_empty_name) {
            find(at + 1, "Manager, Helper, Utils and version suffixes say nothing; name what it is");
        }
    }
    findings
}

pub(super) fn check_merge_markers(file: &Source) -> Vec<String> {
    let marks = ["<<<<<<< ", ">>>>>>> ", "||||||| "];
    let marked = file.text.lines().enumerate().filter(|(_, line)| marks.iter().any(|mark| line.starts_with(mark)));
    marked.map(|(at, _)| format!("{}:{}: merge marker", file.path, at + 1)).collect()
}

/// The files of modules that are declared for tests only.
pub(super) fn test_modules(files: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in files {
        let (directory, stem) = (file.path.rsplit_once('/').map_or("", |(directory, _)| directory), stem(&file.path));
        let inside = if ["lib", "main", "mod"].contains(&stem) { directory.to_owned() } else { format!("{directory}/{stem}") };
        let lines: Vec<_> = file.text.lines().map(str::trim).collect();
        for pair in lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]") {
            let name = pair[1].strip_suffix(';').and_then(|line| line.rsplit_once("mod ")).map(|(_, name)| name);
            found.extend(name.map(|name| format!("{inside}/{name}.rs")));
        }
    }
    found
}

fn may_sleep(path: &str) -> bool {
    MAY_SLEEP.iter().any(|(allowed, _)| *allowed == path)
}

fn stem(path: &str) -> &str {
    path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default()
}

/// The names a line declares.
fn declared_names(code: &str) -> impl Iterator<Item = &str> {
    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    std::iter::from_fn(move || {
        words.find(|word| ["struct", "enum", "trait", "fn", "mod", "type"].contains(word))?;
        words.next()
    })
}

fn is_empty_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    let vague =
        EMPTY_NAMES.iter().any(|word| name.contains(word)) || ["manager", "helper", "helpers", "utils", "util"].contains(&lower.as_str());
    let last = lower.rsplit('_').next().unwrap_or_default();
    let version_suffix =
        lower.contains('_') && last.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    // Test names are sentences and may end in the version they talk about.
    let sentence = lower.matches('_').count() >= 3;
    vague || (version_suffix && !sentence) || ["_unified", "_enhanced", "_new2"].iter().any(|suffix| lower.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check_rust(&Source { path: path.into(), text: format!("//! x\n{text}\n") }, &BTreeSet::new()).len()
    }

    #[test]
    fn each_rule_finds_what_it_bans() {
        let source = "crates/a/src/b.rs";
        assert_eq!(findings(source, "fn fine() {}"), 0);
        assert_eq!(check_rust(&Source { path: source.into(), text: "fn a() {}".into() }, &BTreeSet::new()).len(), 1);
        assert_eq!(findings(source, &"\n".repeat(MAX_LINES)), 1);
        assert_eq!(findings(source, &format!("{IGNORED}]")), 1);
        assert_eq!(findings(source, &format!("{TODO})")), 1);
        assert_eq!(findings(source, &format!("x{UNWRAP};")), 1);
        assert_eq!(findings(source, &format!("#[cfg(test)]\nx{UNWRAP};")), 0);
        assert_eq!(findings(source, "struct TabManager;"), 1);
        assert_eq!(findings(source, "fn dispatch_v2() {}"), 1);
        assert_eq!(findings("crates/a/src/utils.rs", ""), 1);
        for sleep in SLEEPS {
            assert!(findings("crates/a/tests/b.rs", &format!("{sleep}x)")) == 1, "{sleep}");
        }
    }

    #[test]
    fn a_module_declared_for_tests_is_a_test_file() {
        let text = "//! x\n#[cfg(test)]\npub(crate) mod testing;\nmod plain;\n".to_owned();
        let files = [Source { path: "crates/a/src/lib.rs".into(), text: text.clone() }, Source { path: "crates/a/src/b.rs".into(), text }];
        let expected = ["crates/a/src/b/testing.rs", "crates/a/src/testing.rs"].map(str::to_owned);
        assert_eq!(test_modules(&files), BTreeSet::from(expected));
    }

    #[test]
    fn merge_markers_are_found() {
        let text = format!("a\n{} main\n", "<".repeat(7));
        assert_eq!(check_merge_markers(&Source { path: "x".into(), text }), ["x:2: merge marker"]);
    }
}
