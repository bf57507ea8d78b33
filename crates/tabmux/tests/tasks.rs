//! What agents do with several sessions and several steps, with the shipped binary on a real Chromium: Seed 0's use cases (web
//! part) and patterns, sequences, waiting for another session, secrets, and every command of the guides for agents.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use support::site::{Site, html};
use support::{Lab, Mcp, SOON, at_once};

const SECRET: &str = "correct horse/battery";

/// A chat, a shop, an article and a login; `/say?…` is what the chat's messages come from.
fn site() -> Site {
    let messages = Arc::<Mutex<Vec<String>>>::default();
    Site::answering(move |path| {
        if let Some(text) = path.strip_prefix("/say?") {
            messages.lock().unwrap().push(text.replace("%20", " "));
        }
        match path.split('?').next().unwrap() {
            "/say" | "/messages" => html(&messages.lock().unwrap().join("\n")),
            "/chat" => html(
                "<title>Chat</title><ul id=all></ul><input id=message aria-label=Message><button onclick='say(message.value)'>Send</button><script>
                 const say = async (text) => (await fetch('/say?' + encodeURIComponent(text).replace('!', '!'))).ok;
                 const row = (text) => Object.assign(document.createElement('li'), { textContent: text });
                 const next = async () => { all.replaceChildren(...(await (await fetch('/messages')).text()).split('\\n').map(row)); setTimeout(next, 700); };
                 next();</script>",
            ),
            "/cart" => html("<title>Cart</title><p>Total: <b id=total>42</b>"),
            "/pay" => html(&format!("<title>Pay</title><p>Paying {}", path.split("sum=").nth(1).unwrap_or_default())),
            "/login" => html(
                "<title>Login</title><p id=state></p><input type=password id=word><script>
                 const show = () => { state.textContent = localStorage.user ? 'Welcome, ' + localStorage.user : 'Please log in'; };
                 const logIn = (user, secret) => { word.value = secret; localStorage.user = user; show(); return secret.length; };
                 show();</script>",
            ),
            _ => html(&format!("<title>{path}</title><p>The page {path}")),
        }
    })
}

fn start(client: &Mcp, name: &str, url: &str) {
    client.ok("start_browser", &json!({"sessionId": name, "navigationUrl": url}));
}

fn sequence(client: &Mcp, arguments: &Value) -> String {
    client.ok("execute_sequence", arguments).text()
}

/// S0.25, S0.34
#[test]
fn alice_sends_and_bob_sees_it_while_both_can_still_be_used() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    start(&client, "alice", &site.at("/chat"));
    start(&client, "bob", &site.at("/chat"));
    let waiting = client.start_call("wait_for", &json!({"in": "bob", "text": "Hello Bob!"}));
    // Behind nobody: bob's page is watched from beside its queue.
    client.ok("evaluate", &json!({"sessionId": "bob", "script": "1"}));
    let said = sequence(
        &client,
        &json!({"sessionId": "alice", "actions": [
            {"action": "set_value", "selector": "~Message", "value": "Hello Bob!"},
            {"action": "click_element", "selector": "text=Send"},
            {"action": "wait_for", "in": "bob", "text": "Hello Bob!"},
        ]}),
    );
    assert!(said.starts_with("3 steps done."), "{said}");
    let elements = client.ok("get_visible_elements", &json!({"sessionId": "bob"})).text();
    let texts = elements.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).map(|element| element["text"].clone());
    assert!(texts.into_iter().any(|text| text == "Hello Bob!"), "{elements}");
    let seen = client.finish_call(&waiting, SOON);
    assert!(!seen.failed() && seen.result()["sessionId"] == "bob", "{seen:?}");
}

/// S0.35
#[test]
fn two_sub_agents_on_one_connection_work_at_the_same_time_without_cross_talk() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    at_once(vec!["one", "two"], |name: &str| {
        start(&client, name, &site.at(&format!("/{name}/0")));
        for step in 1..6 {
            let path = format!("/{name}/{step}");
            let said = sequence(
                &client,
                &json!({"sessionId": name, "actions": [
                    {"action": "navigate", "url": site.at(&path)},
                    {"action": "evaluate", "script": "sessionStorage.steps = Number(sessionStorage.steps || 0) + 1", "expect": {"equals": step}},
                    {"action": "assert", "url": path, "text": format!("The page {path}")},
                ]}),
            );
            assert!(said.starts_with("3 steps done."), "{said}");
        }
    });
}

/// S0.36
#[test]
fn logged_in_and_logged_out_live_side_by_side() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    for name in ["member", "guest"] {
        start(&client, name, &site.at("/login"));
    }
    client.ok("evaluate", &json!({"sessionId": "member", "script": "logIn('ann', 'no secret')"}));
    for _ in 0..2 {
        let said = sequence(
            &client,
            &json!({"fanOut": ["member", "guest"], "actions": [
                {"action": "navigate", "url": site.at("/login")},
                {"action": "evaluate", "script": "state.textContent", "save": "state"},
            ]}),
        );
        assert!(said.contains("Different: state: member \"Welcome, ann\" | guest \"Please log in\""), "{said}");
    }
}

/// S0.37
#[test]
fn three_sessions_do_the_same_and_are_compared() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    for name in ["a", "b", "c"] {
        client.ok("start_browser", &json!({"sessionId": name}));
    }
    let actions =
        json!([{"action": "navigate", "url": site.at("/cart")}, {"action": "evaluate", "script": "total.textContent", "save": "total"}]);
    let reply = client.ok("execute_sequence", &json!({"fanOut": ["a", "b", "c"], "actions": actions}));
    assert!(reply.text().contains("Same in all 3."), "{}", reply.text());
    assert_eq!(reply.result()["comparison"][1], json!({"what": "total", "equal": true}));
    client.ok("evaluate", &json!({"sessionId": "c", "script": "total.textContent = '43'"}));
    let again = json!([{"action": "evaluate", "script": "total.textContent", "save": "total"}]);
    let text = sequence(&client, &json!({"fanOut": ["a", "b", "c"], "actions": again}));
    assert!(text.contains("Different: total: a \"42\" | b \"42\" | c \"43\""), "{text}");
}

/// A failed step is an error, names itself, and the page is told as it was.
#[test]
fn a_failed_step_is_never_a_success_and_shows_the_page() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    start(&client, "shop", &site.at("/cart"));
    let actions = json!([
        {"action": "evaluate", "script": "total.textContent = '41'"},
        {"action": "assert", "text": "Total: 42"},
        {"action": "evaluate", "script": "document.title = 'never'"},
    ]);
    let text = client.fails("execute_sequence", &json!({"actions": actions}), "assert_failed");
    assert!(text.contains("Step 2 of 3 failed.") && text.contains("3 not run.") && text.contains("Total: 41"), "{text}");
    assert!(text.contains(&format!("The page was at {}", site.at("/cart"))), "{text}");
    assert_eq!(client.ok("evaluate", &json!({"script": "document.title"})).result()["value"], "Cart");
}

#[test]
fn the_network_is_idle_when_the_last_answer_has_come() {
    let hold = Arc::new((Mutex::new(false), std::sync::Condvar::new()));
    let held = Arc::clone(&hold);
    let site = Site::answering(move |path| {
        if path == "/slow" {
            let open = held.0.lock().unwrap();
            drop(held.1.wait_timeout_while(open, Duration::from_secs(60), |open| !*open).unwrap());
        }
        html("<p>here<script>fetch('/slow').then(() => { document.title = 'loaded' })</script>")
    });
    let lab = Lab::real();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    let idle = client.start_call("wait_for", &json!({"networkIdle": true, "timeout": 60_000}));
    let late = client.start_call("wait_for", &json!({"in": "browser-1", "function": "document.title === 'loaded'", "timeout": 60_000}));
    // As long as the answer is held back, neither can have come; nothing here depends on how long that is.
    client.ok("wait_for", &json!({"in": "browser-1", "text": "here"}));
    assert!(client.try_reply(&idle, Duration::from_millis(700)).is_err(), "an answer is still outstanding");
    *hold.0.lock().unwrap() = true;
    hold.1.notify_all();
    for waiting in [idle, late] {
        let reply = client.finish_call(&waiting, Duration::from_secs(60));
        assert!(!reply.failed(), "{reply:?}");
    }
    assert_eq!(client.ok("evaluate", &json!({"script": "document.title"})).result()["value"], "loaded");
}

fn secrets_file(lab: &Lab) -> String {
    let path = lab.path().join("secrets.env");
    std::fs::write(&path, format!("PASSWORD=\"{SECRET}\"\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_secrets_file_that_others_can_read_is_refused() {
    let mut lab = Lab::new();
    let file = secrets_file(&lab);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    lab.set("TABMUX_SECRETS", &file);
    let refused = lab.run(&["new"]);
    assert!(refused.code == 78 && refused.stderr.contains("chmod 600") && !refused.stderr.contains("battery"), "{refused:?}");
}

/// Runs every `sh` block of a guide, from the first to the last, as one script.
fn every_command_works(guide: &str) {
    let site = site();
    let mut lab = Lab::real();
    let file = secrets_file(&lab);
    lab.set("TABMUX_SECRETS", &file);
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(guide)).unwrap();
    let blocks: Vec<&str> = text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    assert!(!blocks.is_empty(), "{guide} has no commands");
    let mut shell = std::process::Command::new("sh");
    lab.environment(&mut shell);
    let directory = Path::new(env!("CARGO_BIN_EXE_tabmux")).parent().unwrap().display();
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap_or_default());
    shell.args(["-euxc", &blocks.concat()]).env("PATH", path).env("SITE", site.at(""));
    let ran = lab.run_within(&mut shell, Duration::from_secs(300));
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
}

/// S0.37
#[test]
fn every_command_of_the_guide_for_agents_works() {
    every_command_works("docs/agents.md");
}

/// S0.37
#[test]
fn every_command_of_the_skill_works() {
    every_command_works("skills/tabmux/SKILL.md");
}
