//! The ready-to-paste configuration for MCP clients that `tabmux up` prints. It names the file of the token, never the token.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::settings::Config;
use crate::settings::keys::{PLACES, variables_of_a_daemon};

/// The same for programs: what each client's configuration takes.
pub(super) fn document(config: &Config, program: &Path, http: Option<&str>) -> Value {
    let server = server(config, program);
    let mut vs_code = server.clone();
    vs_code["type"] = "stdio".into();
    let token_file = config.settings.paths.state_dir.join("token");
    json!({
        "clients": {"mcpServers": {"tabmux": server}, "vscode": {"servers": {"tabmux": vs_code}}},
        "http": http.map(|url| json!({"url": format!("{url}/mcp"), "token_file": token_file})),
    })
}

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
            text += "  `tabmux token new NAME` makes others: one for each agent, because clients with the same of these are one caller\n";
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
    let (flags, paths) = (&config.flags, &config.settings.paths);
    for (flag, given, path) in [
        ("--socket", &flags.socket, &paths.socket),
        ("--pid-file", &flags.pid_file, &paths.pid_file),
        ("--log-file", &flags.log_file, &paths.log_file),
    ] {
        if given.is_some() {
            args.extend([flag.to_owned(), path.to_string_lossy().into_owned()]);
        }
    }
    // Which windows are whose is the operator's alone.
    for pair in flags.set.iter().filter(|pair| !pair.starts_with("window.")) {
        args.extend(["--set".to_owned(), pair.clone()]);
    }
    args.push("mcp".into());
    let mut server = json!({"command": program, "args": args});
    let env: Map<String, Value> =
        variables_of_a_daemon().filter_map(|name| Some((name.to_owned(), json!(passed_on(config, name)?)))).collect();
    if !env.is_empty() {
        server["env"] = Value::Object(env);
    }
    server
}

/// A variable as it reads in any working directory; one that is not set is none.
fn passed_on(config: &Config, name: &str) -> Option<String> {
    let value = config.env.get(name)?;
    let is_place = PLACES.contains(&name) || name == "TABMUX_BROWSER_PROFILE" || (name == "TABMUX_BROWSER" && value.contains('/'));
    Some(if is_place { config.env.cwd.join(value).to_string_lossy().into_owned() } else { value.to_owned() })
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
    fn a_client_that_starts_the_daemon_itself_starts_the_same_one() {
        let variables = [
            ("HOME", "/h"),
            ("TABMUX_BROWSER", "bin/chromium"),
            ("TABMUX_LISTEN", "127.0.0.1:4000"),
            ("TABMUX_CONFIG", "t.toml"),
            ("TABMUX_SESSION_IDLE", "5m"),
            ("TABMUX_TOKEN", "secret"),
            ("TABMUX_SESSION", "mine"),
        ];
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("t.toml"), "").unwrap();
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let env = Environment { variables, cwd: dir.path().into(), temp_dir: "/tmp".into(), uid: 1 };
        let flags = Flags { set: vec!["limits.queue=5".into()], ..Flags::default() };
        let server = server(&Config::resolve(&flags, env).unwrap(), Path::new("/usr/bin/tabmux"));
        assert_eq!(server["args"], json!(["--set", "limits.queue=5", "mcp"]));
        let expected = json!({
            "TABMUX_BROWSER": dir.path().join("bin/chromium"),
            "TABMUX_LISTEN": "127.0.0.1:4000",
            "TABMUX_CONFIG": dir.path().join("t.toml"),
            "TABMUX_SESSION_IDLE": "5m",
        });
        assert_eq!(server["env"], expected);
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        for (word, expected) in [("a/b", "a/b"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")] {
            assert_eq!(quoted(word), expected);
        }
    }
}
