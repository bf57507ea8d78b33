//! What a newcomer tries first, with the shipped binary on a real Chromium: flags, pictures, waiting, storage. Every reply
//! is read as its reader would.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::display::Display;
use support::site::Site;
use support::{Lab, Mcp, Reply, SOON, Typist, until};

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
    let said = format!("No element \"#never\" could be seen within 300 ms; the page is at {} — \"/two\".", site.at("/two"));
    assert!(late.contains(&said) && late.contains("snapshot"), "{late}");
    let bad = client.fails("wait_for", &json!({"selector": "p["}), "bad_argument");
    assert!(bad.contains("\"p[\" is no selector"), "{bad}");
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
    assert_eq!(said(&client.ok("storage", &json!({"set": {"old": null}}))), "Removed 1 item of localStorage.");
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

/// A server with a certificate that nobody signed.
struct Untrusted {
    server: std::process::Child,
    port: u16,
}

impl Untrusted {
    fn start(directory: &std::path::Path) -> Self {
        let (key, certificate) = (directory.join("key.pem"), directory.join("cert.pem"));
        let mut make = Command::new("openssl");
        make.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout"]);
        let made = make.arg(&key).arg("-out").arg(&certificate).stderr(Stdio::null()).status().expect("the package openssl");
        assert!(made.success());
        let mut serve = Command::new("openssl");
        serve.args(["s_server", "-www", "-accept", "127.0.0.1:0", "-key"]).arg(&key).arg("-cert").arg(&certificate);
        let mut server = serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the package openssl");
        let lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("ACCEPT")?.trim().rsplit_once(':')?.1.parse().ok());
        Self { server, port: port.expect("s_server says its port") }
    }
}

impl Drop for Untrusted {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

#[test]
fn an_untrusted_site_is_refused_with_the_way_out_and_opens_for_the_client_that_asked_for_it() {
    let lab = Lab::real();
    let untrusted = Untrusted::start(lab.path());
    let url = format!("https://127.0.0.1:{}/", untrusted.port);
    let careful = lab.ready_client();
    let text = careful.fails("navigate", &json!({"url": url}), "navigation_failed");
    assert!(text.contains("certificate cannot be verified") && text.contains("--ignore-https-errors"), "{text}");
    let trusting = client_with(&lab, &["--ignore-https-errors"]);
    trusting.ok("navigate", &json!({"url": url}));
    assert!(trusting.ok("read_text", &json!({})).text().contains("s_server"));
    trusting.ok("new_page", &json!({"url": url}));
    careful.fails("new_page", &json!({"url": url}), "navigation_failed");
}

#[test]
fn the_viewport_is_as_large_as_asked_for_in_every_tab_of_that_client() {
    let (lab, site) = (Lab::real(), Site::start(|_| "<p>here".into()));
    let client = client_with(&lab, &["--viewport-size", "640x400"]);
    for tool in ["navigate", "new_page"] {
        client.ok(tool, &json!({"url": site.at("/")}));
        assert_eq!(eval(&client, "[innerWidth, innerHeight]"), json!([640, 400]));
        let reply = client.ok("screenshot", &json!({}));
        assert_eq!((&reply.result()["width"], &reply.result()["height"]), (&json!(640), &json!(400)));
    }
    client.ok("emulate", &json!({"set": {"viewport": "300x200", "timezone": "Asia/Tokyo"}}));
    let reset = client.ok("emulate", &json!({"reset": true}));
    assert!(reset.text().contains("Emulated now: viewport."), "{reset:?}");
    assert_eq!(eval(&client, "[innerWidth, innerHeight]"), json!([640, 400]), "what the client began with");
    let wrong = lab.run(&["mcp", "--viewport-size", "large"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("1280x720"), "{wrong:?}");
}

#[test]
fn pictures_of_the_page_all_of_it_and_an_element_are_as_large_as_they_should_be() {
    let body = "<body style='margin:0'><div id=box style='width:120px;height:80px;background:lime'></div><div style='height:9000px'></div>";
    let (lab, site) = (Lab::real(), Site::start(move |_| body.into()));
    let client = client_with(&lab, &["--viewport-size", "800x600"]);
    client.ok("navigate", &json!({"url": site.at("/")}));
    let size = |args: Value| {
        let reply = client.ok("screenshot", &args);
        (reply.result()["width"].as_u64().unwrap(), reply.result()["height"].as_u64().unwrap(), said(&reply))
    };
    assert_eq!(size(json!({})), (800, 600, format!("800×600 jpeg of {}.", site.at("/"))));
    assert_eq!(size(json!({"selector": "#box"})), (120, 80, format!("120×80 jpeg of {}.", site.at("/"))));
    let cut = format!("400×1568 jpeg of {}. Only the top 3136 of 9080 px. Give file for more, or selector for a part.", site.at("/"));
    assert_eq!(size(json!({"fullPage": true})), (400, 1568, cut));
    let file = lab.path().join("all.png");
    let saved = said(&client.ok("screenshot", &json!({"fullPage": true, "file": file})));
    assert!(saved.starts_with(&format!("Saved {}: 800×9080 png, ", file.display())) && saved.ends_with("B."), "{saved}");
    let printed = lab.run(&["screenshot", "-t", "nobody", "x.png"]);
    assert!(printed.code == 1 && printed.stderr.contains("[session_not_found]"), "{printed:?}");
    let text = client.fails("screenshot", &json!({"selector": "#box >"}), "bad_argument");
    assert!(text.contains("is no selector"), "{text}");
}

#[test]
fn a_screenshot_from_the_command_line_is_a_file_in_this_directory() {
    let (lab, site) = (Lab::real(), Site::start(|_| "<p>here".into()));
    assert_eq!(lab.run(&["open", &site.at("/")]).code, 0);
    for (args, start) in [(&["screenshot"][..], b"\x89PNG".as_slice()), (&["screenshot", "--full-page", "b.jpg"], b"\xff\xd8\xff")] {
        let printed = lab.run_command(lab.command(args).current_dir(lab.path()));
        assert_eq!((printed.code, printed.stderr.as_str()), (0, ""), "{printed:?}");
        let file = lab.path().join(args.get(2).unwrap_or(&"screenshot.png"));
        assert!(printed.stdout.starts_with(&format!("Saved {}: 1280×720 ", file.display())), "{printed:?}");
        assert!(std::fs::read(file).unwrap().starts_with(start));
    }
}

/// A window that can be seen, whose tabs can all be pictured, beside a headless session of another client.
#[test]
fn headed_opens_a_window_and_every_tab_in_it_can_be_pictured() {
    let display = Display::new();
    let lab = Lab::with(&[("TABMUX_BROWSER", ""), ("DISPLAY", &display.name)]);
    let site = Site::start(|path| format!("<title>{path}</title><body style='background:{}'>", path.trim_start_matches('/')));
    let client = client_with(&lab, &["--headed"]);
    for colour in ["red", "lime", "blue"] {
        client.ok("new_page", &json!({"url": site.at(&format!("/{colour}"))}));
    }
    for (tab, colour) in [("t1", [255, 0, 0]), ("t2", [0, 255, 0]), ("t3", [0, 0, 255])] {
        let reply = client.ok("screenshot", &json!({"tabId": tab, "format": "png"}));
        let picture = reply.0["result"]["content"][1]["data"].as_str().unwrap();
        let script = format!(
            "(async () => {{ const map = await createImageBitmap(await (await fetch('data:image/png;base64,{picture}')).blob()); \
             const pen = new OffscreenCanvas(map.width, map.height).getContext('2d'); pen.drawImage(map, 0, 0); \
             return [...pen.getImageData(map.width / 2, map.height / 2, 1, 1).data].slice(0, 3) }})()"
        );
        assert_eq!(eval(&client, &script), json!(colour), "{tab}");
    }
    let windows = Command::new("xwininfo").args(["-root", "-tree", "-display", &display.name]).output();
    match windows {
        Ok(windows) => {
            let tree = String::from_utf8_lossy(&windows.stdout).into_owned();
            assert!(tree.contains("/red") || tree.contains("/lime") || tree.contains("/blue"), "a window shows one of the pages: {tree}");
        }
        Err(error) => eprintln!("no xwininfo here ({error}): the window itself was not looked at"),
    }
    let beside = lab.ready_client();
    beside.ok("navigate", &json!({"url": site.at("/plain")}));
    assert_eq!(lab.status()["browsers"].as_array().map(Vec::len), Some(2));
    let nowhere = Lab::real();
    let text = client_with(&nowhere, &["--headed"]).fails("navigate", &json!({"url": site.at("/red")}), "unsupported");
    assert!(text.contains("needs a display") && text.contains("--headed"), "{text}");
}

/// Issue 3: whoever types into another window goes on doing so, whatever agents do in a browser that can be seen. From 149 or 150 on
/// Chromium itself gives its window the focus when a tab in front is pressed by DevTools, whatever the way (mouse, pen, touch).
#[test]
fn headed_leaves_the_keyboard_to_the_person() {
    let display = Display::new();
    let mut typist = Typist::at(&display);
    let lab = Lab::with(&[("TABMUX_BROWSER", ""), ("DISPLAY", &display.name)]);
    let site = Site::start(|path| format!("<title>{path}</title><form action=/sent><input name=name><button>Send</button></form>"));
    for flags in [&["--headed"][..], &["--headed", "--isolation", "window"], &["--headed", "--isolation", "browser"]] {
        let client = client_with(&lab, flags);
        let url = site.at("/form");
        let mut in_front = false;
        for (tool, arguments) in [
            ("new_page", json!({"url": url})),
            ("new_page", json!({"url": url})),
            ("click_element", json!({"selector": "input"})),
            ("type_text", json!({"text": "Ada"})),
            ("press_key", json!({"key": "Enter"})),
            ("navigate", json!({"url": url})),
            ("set_value", json!({"selector": "input", "value": "Grace"})),
            ("click_element", json!({"selector": "button"})),
            ("select_page", json!({"pageIdx": 0})),
            ("click_element", json!({"selector": "button"})),
            ("screenshot", json!({})),
            ("close_page", json!({"tabId": "t1"})),
            ("close_session", json!({})),
        ] {
            client.ok(tool, &arguments);
            if in_front && tool == "click_element" && eval(&client, r"/Chrome\/(\d+)/.exec(navigator.userAgent)[1] >= 150") == json!(true) {
                typist.loses_the_focus_and_takes_it_back();
            }
            assert!(typist.kept_the_focus(), "{tool} {arguments} took the focus with {flags:?}");
            in_front |= tool == "select_page";
        }
    }
}
