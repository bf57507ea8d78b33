//! What each tool costs the context of a model that is shown the list: tokens of its name, description and schema,
//! counted with the o200k vocabulary. Counting needs 2 MB of vocabulary, so the numbers are generated and a test compares them.

mod generated;

use crate::{Level, shown};

/// The tokens one tool takes in a tool list.
pub fn cost(name: &str) -> Option<usize> {
    generated::COSTS.iter().find(|(known, _)| *known == name).map(|(_, tokens)| *tokens)
}

/// The tokens a whole tool list takes.
pub fn list_cost(level: Level) -> usize {
    shown(level).filter_map(|tool| cost(tool.name)).sum()
}

#[cfg(test)]
mod tests {
    use crate::{Level, TABLE, Tool, list_cost, listing, shown};

    /// The most a list may cost. Others take 4,400 to 17,400 (FACTS §2).
    const MAX_TOKENS: [(Level, usize); 3] = [(Level::Slim, 900), (Level::Core, 2500), (Level::Full, 5000)];

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/costs/generated.rs");

    fn tokens(tool: &Tool) -> usize {
        tiktoken_rs::o200k_base_singleton().encode_ordinary(&listing(tool).to_string()).len()
    }

    #[test]
    fn the_costs_are_those_of_the_table() {
        let mut file = "//! Tokens per tool. `TABMUX_BLESS=1 cargo test -p tabmux-tools costs` writes this file.\n\n".to_owned();
        file += "pub(super) const COSTS: &[(&str, usize)] = &[\n";
        for tool in TABLE {
            file += &format!("    (\"{}\", {}),\n", tool.name, tokens(tool));
        }
        file += "];\n";
        if std::env::var_os("TABMUX_BLESS").is_some() {
            std::fs::write(FILE, &file).unwrap();
        }
        let written = std::fs::read_to_string(FILE).unwrap();
        assert_eq!(written, file, "run `TABMUX_BLESS=1 cargo test -p tabmux-tools costs`");
    }

    /// Counted as a client gets it, in one piece, and not as the sum of its parts.
    #[test]
    fn every_list_stays_small() {
        for (level, most) in MAX_TOKENS {
            let list: Vec<_> = shown(level).map(listing).collect();
            let tokens = tiktoken_rs::o200k_base_singleton().encode_ordinary(&serde_json::json!({ "tools": list }).to_string()).len();
            assert!(tokens <= most, "{level:?}: {tokens} tokens");
            assert!(tokens.abs_diff(list_cost(level)) < 50, "{level:?}: {tokens} and {}", list_cost(level));
        }
    }
}
