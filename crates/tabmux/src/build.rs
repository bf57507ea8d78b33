//! Which of two tabmux is the newer one: by its version, and within one version by when its binary was made.

use std::time::UNIX_EPOCH;

use tabmux_wire::hello::Welcome;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Build {
    version: String,
    /// Milliseconds of Unix time; 0 where that is not known.
    pub(crate) made: u64,
}

impl Build {
    /// This program's, also where its file was replaced while it runs.
    pub(crate) fn own() -> Self {
        let file = std::fs::metadata("/proc/self/exe").or_else(|_| std::fs::metadata(std::env::current_exe()?));
        let made = file.and_then(|file| file.modified()).ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let made = made.and_then(|since| u64::try_from(since.as_millis()).ok()).unwrap_or_default();
        Self { version: env!("CARGO_PKG_VERSION").into(), made }
    }

    /// That of the daemon one has joined.
    pub(crate) fn of(welcome: &Welcome) -> Self {
        Self { version: welcome.version.clone(), made: welcome.build }
    }

    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        match (precedence(&self.version), precedence(&other.version)) {
            (Some(mine), Some(theirs)) if mine != theirs => mine > theirs,
            (Some(_), Some(_)) => other.made > 0 && self.made > other.made,
            _ => false,
        }
    }
}

/// As semantic versions are ordered, as far as we ever number: a pre-release comes before its release.
fn precedence(version: &str) -> Option<([u64; 3], bool, String)> {
    let version = version.split_once('+').map_or(version, |(version, _)| version);
    let (numbers, pre) = version.split_once('-').unwrap_or((version, ""));
    let mut parts = numbers.split('.').map(|part| part.parse().ok());
    let mut next = || parts.next().flatten();
    Some(([next()?, next()?, next()?], pre.is_empty(), pre.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(version: &str, made: u64) -> Build {
        Build { version: version.into(), made }
    }

    #[test]
    fn the_version_decides_and_then_the_age_of_the_binary() {
        let newer = |mine: (&str, u64), theirs: (&str, u64)| build(mine.0, mine.1).is_newer_than(&build(theirs.0, theirs.1));
        assert!(newer(("0.2.0", 1), ("0.1.9", 2)) && newer(("0.10.0", 1), ("0.9.0", 1)) && newer(("1.0.0", 1), ("1.0.0-beta", 2)));
        assert!(!newer(("0.1.9", 2), ("0.2.0", 1)) && !newer(("1.0.0-beta", 2), ("1.0.0", 1)));
        assert!(newer(("0.1.0", 2), ("0.1.0", 1)), "built later");
        assert!(!newer(("0.1.0", 1), ("0.1.0", 1)) && !newer(("0.1.0", 1), ("0.1.0", 2)), "the same, or older");
        assert!(!newer(("0.1.0", 1), ("0.1.0", 0)) && !newer(("0.1.0", 1), ("new", 0)), "not known");
    }

    #[test]
    fn this_program_knows_when_it_was_made() {
        assert!(Build::own().made > 1_700_000_000_000);
    }
}
