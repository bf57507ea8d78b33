//! Which names a session may be given. Looking a session up needs no rule: what cannot exist is not found.

use tabmux_core::{Code, Fault};

use crate::visible;

const MAX_NAME_CHARS: usize = 128;

/// Says whether a session may be called so. Targets are written `session:tab` and `/mcp/NAME`, so `:` and `/` are kept out.
pub fn valid_name(name: &str) -> Result<(), Fault> {
    let wrong = if name.is_empty() {
        "is empty"
    } else if name.chars().count() > MAX_NAME_CHARS {
        "is longer than 128 characters"
    } else if visible::line(name) != name {
        "contains control or invisible characters"
    } else if name.contains(['/', ':']) {
        "contains / or :"
    } else if name.trim() != name {
        "begins or ends with a space"
    } else {
        return Ok(());
    };
    let start: String = name.chars().take(MAX_NAME_CHARS).collect();
    let message = format!("The session name \"{}\" {wrong}.", visible::line(&start));
    Err(Fault::new(Code::BadArgument, message, "Use 1 to 128 visible characters without / and :, for example web-1."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_pass() {
        for name in ["a", "browser-1", "user a", "größe", "x.y_z@1", &"n".repeat(128)] {
            assert_eq!(valid_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_name_that_could_mislead_or_break_a_target_is_refused() {
        let long = "n".repeat(129);
        let cases = [
            ("", "is empty"),
            (&long, "longer than 128"),
            ("a\nb", "control"),
            ("a\u{202e}b", "invisible"),
            ("a/b", "contains / or :"),
            ("a:t1", "contains / or :"),
            (" a", "space"),
            ("a ", "space"),
        ];
        for (name, reason) in cases {
            let fault = valid_name(name).unwrap_err();
            assert!(fault.code == Code::BadArgument && fault.message.contains(reason), "{name:?}: {fault}");
        }
        insta::assert_snapshot!(valid_name("a\n").unwrap_err(), @r#"[bad_argument] The session name "a\u000a" contains control or invisible characters. Use 1 to 128 visible characters without / and :, for example web-1."#);
    }
}
