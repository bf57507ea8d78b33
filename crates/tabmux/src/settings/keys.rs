//! The one table of what can be set: key in the file, variable, and what a value may be. File, variables and
//! `--set` all read it, so none of them can know a key the others do not.

/// One line of the table.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) variable: Option<&'static str>,
}

const fn key(name: &'static str, variable: Option<&'static str>) -> Key {
    Key { name, variable }
}

pub(super) const KEYS: [Key; 28] = [
    key("session.idle", Some("TABMUX_SESSION_IDLE")),
    key("session.orphan_grace", Some("TABMUX_ORPHAN_GRACE")),
    key("session.save", Some("TABMUX_SESSION_SAVE")),
    key("session.on_lost", None),
    key("daemon.exit_when_empty", Some("TABMUX_EXIT_WHEN_EMPTY")),
    key("call.deadline", Some("TABMUX_CALL_DEADLINE")),
    key("limits.warn_sessions", None),
    key("limits.max_sessions", None),
    key("limits.max_clones", None),
    key("limits.queue", None),
    key("listen.addr", Some("TABMUX_LISTEN")),
    key("listen.also", None),
    key("listen.on_conflict", None),
    key("reply.session_info", None),
    key("browser", Some("TABMUX_BROWSER")),
    key("browser_args", Some("TABMUX_BROWSER_ARGS")),
    key("browser_profile", Some("TABMUX_BROWSER_PROFILE")),
    key("headless", Some("TABMUX_HEADLESS")),
    key("window.bounds", Some("TABMUX_WINDOW_BOUNDS")),
    key("window.scope", None),
    key("window.include_all_pages", None),
    key("window.devtools_pages", None),
    key("policy.allow_domains", Some("TABMUX_ALLOW_DOMAINS")),
    key("policy.deny_domains", Some("TABMUX_DENY_DOMAINS")),
    key("attach", Some("TABMUX_ATTACH")),
    key("secrets", Some("TABMUX_SECRETS")),
    key("log", Some("TABMUX_LOG")),
    // Mounts the MCP conformance fixtures. Tests only, and so without a variable and without a word in the manual.
    key("test.conformance_fixtures", None),
];

/// Variables that name a place.
pub(crate) const PLACES: [&str; 3] = ["TABMUX_RUNTIME_DIR", "TABMUX_STATE_DIR", "TABMUX_CONFIG"];

/// Variables that are not settings of the daemon.
pub(super) const OTHER_VARIABLES: [&str; 7] = [
    "TABMUX_RUNTIME_DIR",
    "TABMUX_STATE_DIR",
    "TABMUX_CONFIG",
    "TABMUX_SESSION",
    "TABMUX_TOKEN",
    "TABMUX_SURFACE_ID",
    "TABMUX_WORKSPACE_ID",
];

/// Variables that decide which daemon is found, and what one that is started is like. Who asks is none of them.
pub(crate) fn variables_of_a_daemon() -> impl Iterator<Item = &'static str> {
    PLACES.into_iter().chain(KEYS.iter().filter_map(|key| key.variable))
}

pub(super) fn known(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The known key that looks most like `name`.
pub(super) fn nearest_key(name: &str) -> &'static str {
    let distance = |key: &&Key| edit_distance(name, key.name).min(edit_distance(name, key.name.rsplit('.').next().unwrap_or(key.name)));
    KEYS.iter().min_by_key(distance).map_or("session.idle", |key| key.name)
}

/// What our own tests and soaks are told; a program that they run inherits it.
fn is_for_tests(name: &str) -> bool {
    let exact = ["TABMUX_SEED", "TABMUX_BLESS", "TABMUX_BIN", "TABMUX_FAILPOINTS", "TABMUX_HISTORY_STEPS"];
    exact.contains(&name) || name.starts_with("TABMUX_SOAK_") || name.starts_with("TABMUX_TEST_")
}

/// What is wrong with a variable that is no setting; nothing, where it is somebody else's.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// A slip of one that there is.
    Meant(&'static str),
    /// It begins like ours and resembles none.
    Unknown,
}

pub(super) fn stranger(name: &str) -> Option<Stranger> {
    if OTHER_VARIABLES.contains(&name) || is_for_tests(name) || !begins_like_ours(name) {
        return None;
    }
    let short = |name: &'_ str| name.strip_prefix(PREFIX).unwrap_or(name).len();
    let mut meant = variables().filter(|variable| edit_distance(name, variable) <= (short(variable) / 4).max(1));
    match meant.next() {
        Some(meant) => Some(Stranger::Meant(meant)),
        None => name.starts_with(PREFIX).then_some(Stranger::Unknown),
    }
}

/// All that are read.
pub(super) fn variables() -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(|key| key.variable).chain(OTHER_VARIABLES)
}

const PREFIX: &str = "TABMUX_";

/// `TABMUX_`, or a slip of it. Other programs have variables that end like ours (`CMUX_WORKSPACE_ID`), and tmux those that begin so.
fn begins_like_ours(name: &str) -> bool {
    let prefix = name.split_inclusive('_').next().unwrap_or_default();
    prefix != "TMUX_" && edit_distance(prefix, PREFIX) <= 2
}

/// Levenshtein's distance over bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_finds_its_neighbour() {
        for (typo, key) in
            [("sesion.idle", "session.idle"), ("orphan_grace", "session.orphan_grace"), ("limits.maxsessions", "limits.max_sessions")]
        {
            assert_eq!(nearest_key(typo), key);
        }
    }

    #[test]
    fn slips_of_a_known_variable_are_told_from_unknown_ones_and_from_other_programs() {
        use Stranger::{Meant, Unknown};
        for (name, expected) in [
            ("TABMUX_SESION", Some(Meant("TABMUX_SESSION"))),
            ("TABMUX_RUNTIMEDIR", Some(Meant("TABMUX_RUNTIME_DIR"))),
            ("TABMUX_SESSION_IDEL", Some(Meant("TABMUX_SESSION_IDLE"))),
            ("TABMUX_LOGS", Some(Meant("TABMUX_LOG"))),
            ("TABMX_WORKSPACE_ID", Some(Meant("TABMUX_WORKSPACE_ID"))),
            ("TABMUX_NOSUCH", Some(Unknown)),
            ("TABMUX_", Some(Unknown)),
            ("TABMUX_BLESS", None),
            ("TABMUX_TEST_DIR", None),
            ("TABMUX_SOAK_ROUNDS", None),
            ("TABMUX_BIN", None),
            ("TABMUX_TOKEN", None),
            ("CMUX_WORKSPACE_ID", None),
            ("CMUX_SURFACE_ID", None),
            ("TMUX_WORKSPACE_ID", None),
            ("TMUX_TMPDIR", None),
            ("TABLE_SPACE", None),
            ("HOME", None),
        ] {
            assert_eq!(stranger(name), expected, "{name}");
        }
    }
}
