//! The ready-to-paste configuration for MCP clients that `tabmux up` prints. It names the file of the token, never the token.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::settings::Config;

/// Variables a client's own `tabmux mcp` needs to find the same daemon.
const PASSED_ON: [&str; 2] = ["TABMUX_RUNTIME_DIR", "TABMUX_STATE_DIR"];

pub(super) fn text(config: &Config, program: &Path, http: Option<&str>) -> String {
    let server = server(config, program);
    let args: Vec<&str> = server["args"].as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str).collect();
    let env: String = server["env"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("-e {name}={} ", quoted(value.as_str().unwrap_or_default())))
        .collect();
    let command = quoted(&program.to_string_lossy());
    let words: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
    let mut text = format!("Claude Code:\n  claude mcp add tabmux {env}-- {command} {}\n\n", words.join(" "));
    text += &format!(
        "Claude Desktop (claude_desktop_config.json), Cursor (.cursor/mcp.json):\n{}\n\n",
        indented(&json!({"mcpServers": {"tabmux": server}}))
    );
    let mut vs_code = server;
    vs_code["type"] = "stdio".into();
    text += &format!("VS Code (.vscode/mcp.json):\n{}\n\n", indented(&json!({"servers": {"tabmux": vs_code}})));
    match http {
        Some(url) => {
            let token = config.settings.paths.state_dir.join("token");
            text +=
                &format!("Over HTTP:\n  {url}/mcp\n  with the header `Authorization: Bearer TOKEN`; the token is in {}\n", token.display());
        }
        None => text += "Over HTTP: off, or its port is taken; `tabmux doctor` says which.\n",
    }
    text
}

fn server(config: &Config, program: &Path) -> Value {
    let mut args: Vec<String> = Vec::new();
    if let Some(name) = &config.flags.instance {
        args.extend(["-L".to_owned(), name.clone()]);
    }
    if config.flags.socket.is_some() {
        args.extend(["--socket".to_owned(), config.settings.paths.socket.to_string_lossy().into_owned()]);
    }
    args.push("mcp".into());
    let mut server = json!({"command": program, "args": args});
    let env: Map<String, Value> =
        PASSED_ON.iter().filter_map(|name| Some(((*name).to_owned(), json!(config.env.cwd.join(config.env.get(name)?))))).collect();
    if !env.is_empty() {
        server["env"] = Value::Object(env);
    }
    server
}

fn indented(document: &Value) -> String {
    let pretty = serde_json::to_string_pretty(document).expect("a JSON value is always written");
    pretty.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Environment, Flags};
    use std::collections::BTreeMap;

    #[test]
    fn every_common_client_finds_its_lines_and_no_token_is_among_them() {
        let variables = BTreeMap::from([("HOME".into(), "/h".into()), ("TABMUX_RUNTIME_DIR".into(), "/r d".into())]);
        let env = Environment { variables, cwd: "/".into(), temp_dir: "/tmp".into(), uid: 1 };
        let flags = Flags { instance: Some("ci".into()), ..Flags::default() };
        let config = Config::resolve(&flags, env).unwrap();
        insta::assert_snapshot!(text(&config, Path::new("/usr/bin/tabmux"), Some("http://127.0.0.1:3026")));
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        for (word, expected) in [("a/b", "a/b"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")] {
            assert_eq!(quoted(word), expected);
        }
    }
}
