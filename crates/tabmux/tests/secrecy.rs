//! A registered secret reaches the page and comes back through no door: whatever tool an agent reads with, however the page writes
//! the secret, over MCP, HTTP, the sockets and the command line, and in nothing that is written down. What is in a password field
//! nobody reads at all.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use support::site::{Site, html, with};
use support::{Door, Lab};

/// With what has to be written in another way in addresses, markup, JSON and base64.
const SECRET: &str = "correct horse/battery<+>\"&'?~staple";

/// Typed into a password field by an agent that registered nothing.
const TYPED: &str = "Tr0ub4dor&3";

/// Every way it may come out: none of these parts is ever read. Three are from the middle of its base64, for each place in a group
/// of three letters where it may begin.
const GIVEAWAYS: [&str; 7] = ["correct", "battery", "staple", "Tr0ub4dor", "YXR0ZXJ5PC", "YmF0dGVyeT", "L2JhdHRlcn"];

/// A page that shows, logs, sends and stores whatever it is told.
const PAGE: &str = r#"<!doctype html><title>Teller</title><h1 id=head></h1><p id=said></p><label>Name <input id=name></label>
  <label>Word <input id=word type=password></label><label>Other <input id=other type=password></label><a id=link>Link</a><button id=told></button>
  <select id=list><option>one<option id=option></select><button id=ask>Ask</button><div id=more></div>
  <script>
    const tell = (words) => {
      document.title = head.textContent = said.textContent = told.textContent = option.textContent = words;
      link.textContent = btoa('ann:' + words); link.href = '/there/' + encodeURIComponent(words) + '?q=' + words + '#' + words;
      head.title = words; said.ariaLabel = words; localStorage[words] = words; sessionStorage.kept = words;
      document.cookie = 'kept=' + encodeURIComponent(words); console.log(words); console.error({ words: [words] }, words);
      fetch('/asked?' + new URLSearchParams({ words }), { method: 'POST', headers: { 'X-Words': btoa(words) }, body: words }).catch(() => 0);
      fetch('/basic', { headers: { Authorization: 'Basic ' + btoa('ann:' + words) } }).catch(() => 0);
      ask.onclick = () => { more.innerHTML = ''; more.append(words + ' again'); confirm('Really ' + words + '?'); };
      return words.length;
    };
  </script>"#;

fn site() -> Site {
    Site::answering(|path| {
        if path.starts_with("/file") {
            let name: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let name = format!("Content-Disposition: attachment; filename*=UTF-8''{name}.txt\r\n");
            return with("200 OK", "text/plain", &name, "a file");
        }
        html(PAGE)
    })
}

/// Every file below, that has these words in it.
fn files_with(directory: &Path, words: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        // A browser's files come and go.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            found.extend(files_with(&entry.path(), words));
        } else if kind.is_file()
            && std::fs::read(entry.path()).is_ok_and(|bytes| bytes.windows(words.len()).any(|part| part == words.as_bytes()))
        {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

fn assert_kept(what: &str, shown: &str) {
    for part in GIVEAWAYS {
        assert!(!shown.contains(part), "{what} gives {part} away: {shown}");
    }
}

/// What an agent reads with, after the page was told the secret. `true`: the secret's name is there in its place.
fn looks(site: &Site, file: &str) -> Vec<(&'static str, Value, bool)> {
    vec![
        ("snapshot", json!({}), true),
        ("snapshot", json!({"find": "battery"}), false),
        ("get_visible_elements", json!({}), true),
        ("read_text", json!({}), true),
        ("read_text", json!({"selector": "#said"}), true),
        ("list_pages", json!({}), false),
        ("list_sessions", json!({}), false),
        ("network", json!({}), true),
        ("console", json!({}), true),
        ("storage", json!({}), true),
        ("cookies", json!({}), true),
        ("screenshot", json!({"file": file}), false),
        ("evaluate", json!({"script": "said.textContent"}), true),
        (
            "evaluate",
            json!({"script": "({[said.textContent]: [said.textContent, btoa(said.textContent), btoa('x' + said.textContent)]})"}),
            true,
        ),
        ("evaluate", json!({"script": "encodeURIComponent(said.textContent) + escape(said.textContent)"}), true),
        ("evaluate", json!({"script": "document.body.innerHTML"}), true),
        ("evaluate", json!({"script": "JSON.stringify(JSON.stringify(said.textContent))"}), true),
        ("evaluate", json!({"script": "throw new Error(said.textContent)"}), true),
        ("evaluate", json!({"script": "${secret:PASSWORD}"}), true),
        ("set_value", json!({"selector": "#name", "value": "${secret:PASSWORD}"}), true),
        ("type_text", json!({"selector": "#name", "text": "${secret:PASSWORD}"}), true),
        ("set_value", json!({"selector": "#word", "value": "${secret:PASSWORD}"}), false),
        ("type_text", json!({"selector": "#word", "text": "${secret:PASSWORD}"}), false),
        ("set_value", json!({"selector": "#other", "value": TYPED}), false),
        ("type_text", json!({"selector": "#other", "text": TYPED}), false),
        ("snapshot", json!({"selector": "#other"}), false),
        ("get_visible_elements", json!({}), true),
        ("select_option", json!({"selector": "#list", "options": ["${secret:PASSWORD}"]}), true),
        ("select_option", json!({"selector": "#list", "options": ["no such"]}), true),
        ("click_element", json!({"selector": "#told"}), true),
        ("hover", json!({"selector": "#told"}), true),
        ("click_element", json!({"selector": "text=${secret:PASSWORD} nowhere", "timeout": 2000}), true),
        ("wait_for", json!({"text": "${secret:PASSWORD}"}), false),
        ("wait_for", json!({"text": "${secret:PASSWORD} nowhere", "timeout": 1500}), false),
        ("click_element", json!({"selector": "#ask"}), true),
        ("handle_dialog", json!({}), true),
        (
            "execute_sequence",
            json!({"actions": [
            {"action": "evaluate", "script": "said.textContent", "save": "words"},
            {"action": "evaluate", "script": "1", "expect": {"equals": "${words}"}}]}),
            true,
        ),
        ("execute_sequence", json!({"fanOut": ["one"], "actions": [{"action": "assert", "text": "${secret:PASSWORD} nowhere"}]}), false),
        ("navigate", json!({"url": site.at("/file?${secret:PASSWORD}")}), true),
        ("downloads", json!({"wait": true}), false),
        ("upload_file", json!({"paths": ["/nowhere/${secret:PASSWORD}"], "selector": "#name"}), true),
        ("navigate", json!({"url": "http://127.0.0.1:1/${secret:PASSWORD}"}), true),
        ("navigate", json!({"url": "gopher://${secret:PASSWORD}"}), false),
        ("navigate", json!({"url": site.at("/x?p=${secret:PASSWORD}#${secret:PASSWORD}")}), true),
        ("evaluate", json!({"script": "tell(${secret:PASSWORD})"}), false),
        ("no_such_tool", json!({"x": "${secret:PASSWORD}"}), false),
        ("evaluate", json!({"script": "1", "${secret:PASSWORD}": 1}), false),
    ]
}

fn lab_with_a_secret() -> (Lab, String) {
    let mut lab = Lab::with(&[("TABMUX_BROWSER", ""), ("TABMUX_LOG", "debug")]);
    let path = lab.path().join("secrets.env");
    std::fs::write(&path, format!("PASSWORD={SECRET}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let file = path.to_str().unwrap().to_owned();
    lab.set("TABMUX_SECRETS", &file);
    (lab, file)
}

#[test]
fn a_secret_comes_out_of_no_tool_and_is_written_nowhere() {
    let (site, (lab, file)) = (site(), lab_with_a_secret());
    let picture = lab.path().join("picture.png").to_str().unwrap().to_owned();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "one", "navigationUrl": site.at("/")}));
    let told = client.ok("evaluate", &json!({"script": "tell(${secret:PASSWORD})"}));
    assert_eq!(told.result()["value"], json!(SECRET.len()), "the page has the value");
    for (tool, arguments, named) in looks(&site, &picture) {
        let reply = client.call(tool, &arguments);
        let shown = reply.0.to_string();
        assert_kept(&format!("{tool} {arguments}"), &shown);
        assert!(!named || shown.contains("<secret PASSWORD>"), "{tool} {arguments}: the page did show it: {shown}");
    }
    let doors = ["ls --all --json", "status --json", "logs"];
    for door in doors {
        let printed = lab.run(&door.split(' ').collect::<Vec<_>>());
        assert_kept(door, &format!("{}{}", printed.stdout, printed.stderr));
    }
    drop(client);
    assert_eq!(lab.run(&["stop"]).code, 0);
    std::fs::remove_file(file).unwrap();
    let state = lab.state_dir();
    for words in GIVEAWAYS {
        // What a page keeps is the browser's to write down, in a directory that is gone by now.
        assert_eq!(files_with(&state, words), Vec::<String>::new(), "{words}");
    }
}

/// The same secret over every other door.
#[test]
fn a_secret_comes_out_of_no_door() {
    let (site, (lab, _file)) = (site(), lab_with_a_secret());
    drop(lab.ready_client());
    let picture = lab.path().join("picture.png").to_str().unwrap().to_owned();
    let calls = [
        ("navigate", json!({"url": site.at("/?p=${secret:PASSWORD}")})),
        ("evaluate", json!({"script": "tell(${secret:PASSWORD})"})),
        ("evaluate", json!({"script": "[said.textContent, btoa(said.textContent), encodeURIComponent(said.textContent)]"})),
        ("evaluate", json!({"script": "throw new Error(said.textContent)"})),
        ("snapshot", json!({})),
        ("read_text", json!({})),
        ("network", json!({})),
        ("console", json!({})),
        ("cookies", json!({})),
        ("screenshot", json!({"file": picture})),
        ("click_element", json!({"selector": "text=${secret:PASSWORD} nowhere", "timeout": 1500})),
        ("list_pages", json!({})),
    ];
    let http = lab.http();
    let (mcp, path) = (http.initialize("/mcp"), http.initialize("/mcp/NAME"));
    let instance = http.initialize("/mcp");
    let mut socket = Door::open(&lab.socket());
    let registered = socket.ask(&json!({"type": "REGISTER", "id": "r"}))["sessionId"].clone();
    for (number, (tool, arguments)) in calls.iter().enumerate() {
        let args = arguments.to_string();
        let command = lab.run(&["call", tool, "--args", &args, "--json"]);
        let request = json!({"type": "REQUEST", "id": number.to_string(), "sessionId": registered, "action": tool, "params": arguments});
        let shown = [
            ("HTTP", http.call("/mcp", &mcp, tool, arguments).0.to_string()),
            ("HTTP by name", http.call("/mcp/NAME", &path, tool, arguments).0.to_string()),
            ("/commands", http.post("/commands", &[("X-Instance-ID", &instance)], &json!({"name": tool, "payload": arguments})).body),
            ("Seed 1", socket.ask(&request).to_string()),
            ("the command line", format!("{}{}", command.stdout, command.stderr)),
        ];
        for (door, shown) in shown {
            assert_kept(&format!("{door}: {tool}"), &shown);
            assert!(tool != &"snapshot" || shown.contains("<secret PASSWORD>"), "{door}: {shown}");
        }
    }
    let listed = http.get("/health", &[]).body + &socket.ask(&json!({"type": "STATUS", "id": "s"})).to_string();
    assert_kept("what is said of the daemon", &listed);
    let opened = Door::open(&lab.socket())
        .ask(&json!({"id": 1, "method": "browser.agent_session.open", "params": {"url": site.at("/?${secret:PASSWORD}")}}));
    assert_kept("Seed 3", &opened.to_string());
}
