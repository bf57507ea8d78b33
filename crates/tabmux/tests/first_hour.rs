//! What a newcomer tries first, with the shipped binary on a real Chromium: flags, pictures, waiting, storage. Every reply
//! is read as its reader would.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use serde_json::{Value, json};
use support::site::Site;
use support::{Lab, Mcp, Reply, SOON, until};

fn eval(client: &Mcp, script: &str) -> Value {
    client.ok("evaluate", &json!({"script": script})).result()["value"].clone()
}

/// What a reply says, without the line about the session.
fn said(reply: &Reply) -> String {
    let text = reply.text();
    text.split("\n[sessionId").next().unwrap_or_default().to_owned()
}

fn client_with(lab: &Lab, flags: &[&str]) -> Mcp {
    let client = lab.client_with(&[&["mcp"], flags].concat());
    client.initialize();
    client
}

#[test]
fn waiting_ends_when_the_page_is_so_and_says_where() {
    let (lab, site) = (Lab::real(), Site::start(|path| format!("<title>{path}</title><p>The page {path}")));
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/one")}));
    eval(&client, "setTimeout(() => document.body.append('Late news'), 300)");
    let reply = client.ok("wait_for", &json!({"text": "late news"}));
    assert_eq!(said(&reply), format!("It is there at {} — \"/one\".", site.at("/one")));
    eval(&client, "setTimeout(() => location = '/two', 300)");
    let reply = client.ok("wait_for", &json!({"url": "*/two", "text": "The page /two"}));
    assert_eq!(reply.result()["url"], json!(site.at("/two")));
    let late = client.fails("wait_for", &json!({"selector": "#never", "timeout": 300}), "timeout");
    assert!(late.contains("deadline"), "{late}");
    let bad = client.fails("wait_for", &json!({"selector": "p["}), "bad_argument");
    assert!(bad.contains("\"p[\" is no CSS selector"), "{bad}");
}

/// A dialog or the caller ends a wait, and the session goes on.
#[test]
fn a_dialog_and_a_cancel_end_the_wait() {
    let (lab, site) = (Lab::real(), Site::start(|_| "<p>here".into()));
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    eval(&client, "setTimeout(() => alert('stop'), 300)");
    let text = client.fails("wait_for", &json!({"text": "never"}), "dialog_open");
    assert!(text.contains("stop"), "{text}");
    client.ok("handle_dialog", &json!({}));
    let waiting = client.start_call("wait_for", &json!({"text": "never"}));
    until("the call runs", SOON, || (lab.status()["calls"]["running"] == json!(1)).then_some(()));
    client.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waiting}}));
    until("the call is over", SOON, || (lab.status()["calls"]["running"] == json!(0)).then_some(()));
    assert_eq!(eval(&client, "1"), json!(1));
}

#[test]
fn storage_is_read_and_written_where_the_page_is() {
    let (lab, site) = (Lab::real(), Site::start(|_| "<p>here".into()));
    let client = lab.ready_client();
    let refused = client.fails("storage", &json!({"sessionId": start(&client)}), "bad_argument");
    assert!(refused.contains("Only http and https pages have one"), "{refused}");
    client.ok("navigate", &json!({"url": site.at("/")}));
    // A page that tampers with its own methods does not change what we read.
    eval(&client, "Storage.prototype.setItem = Storage.prototype.getItem = () => 'lies'; Object.entries = () => []");
    assert_eq!(said(&client.ok("storage", &json!({"set": {"token": "abc", "old": "1"}}))), "Set 2 items of localStorage.");
    assert_eq!(said(&client.ok("storage", &json!({"set": {"old": null}}))), "Set 1 item of localStorage.");
    assert_eq!(eval(&client, "localStorage.token"), json!("abc"));
    let listed = client.ok("storage", &json!({}));
    assert_eq!((said(&listed), &listed.structured()["items"][0]["value"]), ("1 item in localStorage\ntoken=abc".to_owned(), &json!("abc")));
    assert_eq!(said(&client.ok("storage", &json!({"area": "session"}))), "No items in sessionStorage.");
    client.ok("storage", &json!({"clear": true}));
    assert_eq!(eval(&client, "localStorage.length"), json!(0));
    eval(&client, "localStorage.big = 'x'.repeat(5000000); 0");
    let full = client.fails("storage", &json!({"set": {"more": "x".repeat(500_000)}}), "bad_argument");
    assert!(full.contains("quota"), "{full}");
}

fn start(client: &Mcp) -> Value {
    client.ok("start_browser", &json!({})).result()["sessionId"].clone()
}

#[test]
fn a_storage_state_is_there_at_the_first_navigation_of_each_session() {
    let (lab, site) = (Lab::real(), Site::start(|_| "<script>document.title = localStorage.token + ' ' + document.cookie</script>".into()));
    let file = lab.path().join("state.json");
    let cookie = |name: &str, http_only: bool| json!({"name": name, "value": "1", "domain": "127.0.0.1", "path": "/", "expires": -1, "httpOnly": http_only, "secure": false, "sameSite": "Lax"});
    let origins = json!([
        {"origin": site.at(""), "localStorage": [{"name": "token", "value": "abc"}]},
        {"origin": "https://elsewhere.test", "localStorage": [{"name": "token", "value": "other"}]},
    ]);
    std::fs::write(&file, json!({"cookies": [cookie("sid", false), cookie("hidden", true)], "origins": origins}).to_string()).unwrap();
    let client = client_with(&lab, &["--storage-state", file.to_str().unwrap()]);
    for session in ["one", "two"] {
        let reply = client.ok("start_browser", &json!({"sessionId": session, "navigationUrl": site.at("/")}));
        assert_eq!(site.asked(), ["/"], "nothing but the page itself was asked for: {reply:?}");
        let seen = client.ok("evaluate", &json!({"sessionId": session, "script": "document.title"}));
        assert_eq!(seen.result()["value"], json!("abc sid=1"));
        let cookies = client.ok("cookies", &json!({"sessionId": session})).structured()["cookies"].clone();
        assert_eq!(cookies.as_array().map(Vec::len), Some(2), "{cookies}");
        assert_eq!(client.ok("list_pages", &json!({"sessionId": session})).structured()["pages"].as_array().unwrap().len(), 1);
    }
    let plain = lab.ready_client();
    plain.ok("navigate", &json!({"url": site.at("/")}));
    assert_eq!(eval(&plain, "document.title"), json!("undefined"), "another client's sessions begin empty");
}

#[test]
fn a_bad_storage_state_is_said_at_the_start() {
    let lab = Lab::new();
    let file = lab.path().join("state.json");
    for (text, said) in [
        (None, "No such file"),
        (Some("{"), "it is no JSON"),
        (Some(r#"{"cookies": [{"name": "a"}]}"#), "cookies[0]: missing field `value`"),
    ] {
        text.into_iter().for_each(|text| std::fs::write(&file, text).unwrap());
        let printed = lab.run(&["mcp", "--storage-state", file.to_str().unwrap()]);
        assert_eq!(printed.code, 78, "{printed:?}");
        assert!(printed.stderr.contains(said) && printed.stderr.contains("state.json") && printed.stdout.is_empty(), "{printed:?}");
    }
    assert!(lab.daemons().is_empty());
}

/// `tabmux open/eval/wait`, and what they print.
#[test]
fn the_short_forms_work_as_their_names_say() {
    let (lab, site) = (Lab::real(), Site::start(|path| format!("<title>{path}</title><p>The page {path}")));
    let told = |args: &[&str]| {
        let printed = lab.run(args);
        assert_eq!((printed.code, printed.stderr.as_str()), (0, ""), "{args:?}: {printed:?}");
        printed.stdout.trim_end().to_owned()
    };
    assert_eq!(told(&["open", &site.at("/one")]), format!("Navigated to {} — \"/one\".", site.at("/one")));
    assert_eq!(told(&["eval", "document.title"]), "\"/one\"");
    assert_eq!(told(&["wait", "the page"]), format!("It is there at {} — \"/one\".", site.at("/one")));
    assert_eq!(told(&["wait", "--url", "*/one", "--gone", "#spinner"]), format!("All of it holds at {} — \"/one\".", site.at("/one")));
    let late = lab.run(&["wait", "--selector", "#never", "--timeout", "200"]);
    assert_eq!((late.code, late.stdout.as_str()), (1, ""), "{late:?}");
    assert!(late.stderr.contains("[timeout]"), "{late:?}");
}
