//! One rule for the names that people give to tokens, callers and daemons: they stand in URLs, files and logs as they are.

/// The rule, as the end of a sentence.
pub const RULE: &str = "1 to 64 letters, digits, dots, underscores and dashes";

/// `[A-Za-z0-9._-]{1,64}`
pub fn is_plain(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for name in ["a", "A.b_c-9", &"x".repeat(64)] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["", "a b", "a/b", "é", "a\n", &"x".repeat(65)] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
