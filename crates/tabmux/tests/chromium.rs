//! The shipped binary on a real Chromium: one browser, many agents, each in its own world; and what is left after
//! anything dies. The site is a small server of the test's own.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use support::site::Site;
use support::{Lab, Mcp, SOON, at_once, process, until};

/// Serves a page for every path until the test ends; the page says its path.
fn site() -> String {
    Site::start(|path| format!("<!doctype html><title>{path}</title><h1>The page {path}</h1>")).at("")
}

fn eval(client: &Mcp, script: &str) -> Value {
    client.ok("evaluate", &json!({"script": script})).result()["value"].clone()
}

fn browser_pid(lab: &Lab) -> u32 {
    let browsers = lab.status()["browsers"].clone();
    assert_eq!(browsers.as_array().map(Vec::len), Some(1), "{browsers}");
    u32::try_from(browsers[0]["pid"].as_u64().unwrap()).unwrap()
}

fn keeper_pid(lab: &Lab) -> u32 {
    u32::try_from(lab.status()["browsers"][0]["keeper_pid"].as_u64().unwrap()).unwrap()
}

/// A call that was on its way when the daemon died is told so; these tests ask once it is dead.
fn kill(pid: u32) {
    process::kill(pid);
    until("it is dead", SOON, || (!process::is_alive(pid)).then_some(()));
}

fn daemons(lab: &Lab) -> usize {
    lab.daemons().into_iter().filter(|pid| process::command_line(*pid).contains("daemon")).count()
}

/// Two clients with the one-line default configuration: each its own page and cookies, one daemon, one browser.
#[test]
fn two_clients_with_no_flags_each_get_the_right_page_in_one_browser() {
    let (lab, site) = (Lab::real(), site());
    let clients = [lab.ready_client(), lab.ready_client()];
    for (number, client) in clients.iter().enumerate() {
        client.ok("navigate", &json!({"url": format!("{site}/{number}")}));
        eval(client, &format!("document.cookie = 'agent=token{number}'"));
    }
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(eval(client, "location.pathname"), json!(format!("/{number}")));
        assert_eq!(eval(client, "document.cookie"), json!(format!("agent=token{number}")));
        assert!(client.ok("read_text", &json!({})).text().contains(&format!("The page /{number}")));
        assert_eq!(client.ok("list_pages", &json!({})).structured()["pages"].as_array().unwrap().len(), 1);
        assert_eq!(client.ok("list_sessions", &json!({})).structured()["sessions"][0]["capabilities"]["browserName"], "chromium");
    }
    browser_pid(&lab);
    assert_eq!(daemons(&lab), 1);
}

#[test]
fn four_http_clients_in_tight_loops_never_get_a_wrong_page() {
    let (lab, site) = (Lab::real(), site());
    assert_eq!(lab.run(&["call", "list_sessions"]).code, 0, "starts the daemon");
    at_once((0..4).collect(), |client: u32| {
        let http = lab.http();
        let session = http.initialize("/mcp");
        for step in 0..48 {
            let path = format!("/client{client}-{step}");
            let went = http.call("/mcp", &session, "navigate", &json!({"url": format!("{site}{path}")}));
            assert!(!went.failed(), "{went:?}");
            let at = http.call("/mcp", &session, "evaluate", &json!({"script": "location.pathname"}));
            assert_eq!(at.result()["value"], json!(path), "{at:?}");
        }
    });
    browser_pid(&lab);
}

#[test]
fn ten_named_sessions_stay_right_after_the_daemon_is_killed() {
    let (lab, site) = (Lab::real(), site());
    let clients = at_once((0..10).collect(), |number: usize| {
        let client = lab.ready_client();
        client.ok("start_browser", &json!({"sessionId": format!("s{number}"), "navigationUrl": format!("{site}/{number}")}));
        eval(&client, &format!("window.kept = {number}; document.cookie = 'n={number}'"));
        client
    });
    let browser = browser_pid(&lab);
    kill(lab.daemon_pid());
    at_once(clients.iter().enumerate().collect(), |(number, client)| {
        // Not only the address: the very page, with what its scripts had in memory.
        assert_eq!(
            eval(client, "[location.pathname, window.kept, document.cookie]"),
            json!([format!("/{number}"), number, format!("n={number}")])
        );
        assert_eq!(client.sessions(), [format!("s{number}")]);
    });
    assert_eq!((browser_pid(&lab), daemons(&lab)), (browser, 1));
}

/// The contract: running calls end within a second, each session's next call says it once, then the name starts afresh.
#[test]
fn a_killed_browser_is_said_once_by_each_session() {
    let (lab, site) = (Lab::real(), site());
    let clients = [lab.ready_client(), lab.ready_client()];
    for client in &clients {
        client.ok("start_browser", &json!({"sessionId": "web", "navigationUrl": site}));
    }
    let running = clients[0].start_call("evaluate", &json!({"script": "new Promise(() => {})"}));
    until("the call runs", SOON, || (lab.status()["calls"]["running"] == json!(1)).then_some(()));
    let killed = browser_pid(&lab);
    process::kill(killed);
    let ended = clients[0].finish_call(&running, Duration::from_secs(1));
    assert_eq!(ended.code(), "browser_crashed", "{ended:?}");
    for client in &clients {
        client.fails("evaluate", &json!({"sessionId": "web", "script": "1"}), "browser_crashed");
        client.ok("navigate", &json!({"sessionId": "web", "url": format!("{site}/again")}));
        assert_eq!(eval(client, "location.pathname"), json!("/again"));
    }
    assert_ne!(browser_pid(&lab), killed);
}

#[test]
fn a_killed_keeper_is_replaced_and_a_later_crash_of_the_daemon_loses_nothing() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": format!("{site}/kept")}));
    let (browser, keeper) = (browser_pid(&lab), keeper_pid(&lab));
    process::kill(keeper);
    until("there is a new keeper", SOON, || (keeper_pid(&lab) != keeper).then_some(()));
    kill(lab.daemon_pid());
    assert_eq!(eval(&client, "location.pathname"), json!("/kept"));
    assert_eq!(browser_pid(&lab), browser);
}

#[test]
fn with_daemon_and_keeper_killed_nothing_is_left_of_the_browser_and_the_session_starts_afresh() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "web", "navigationUrl": site}));
    let (browser, keeper, daemon) = (browser_pid(&lab), keeper_pid(&lab), lab.daemon_pid());
    // The daemon first: it would give the browser a new keeper.
    process::kill(daemon);
    process::kill(keeper);
    until("the browser ends", SOON, || (!process::is_alive(browser)).then_some(()));
    client.fails("evaluate", &json!({"script": "1"}), "browser_crashed");
    client.ok("navigate", &json!({"sessionId": "web", "url": format!("{site}/again")}));
    let left = || std::fs::read_dir(lab.state_dir().join("browsers")).unwrap().count();
    until("only one profile and its lock are left", SOON, || (left() == 2).then_some(()));
}

/// A page that spins, one that asks and one that crashes disturb nobody but their own caller, who can go on.
#[test]
fn a_spinning_an_asking_and_a_crashed_page_disturb_only_their_own_session() {
    let (lab, site) = (Lab::real(), site());
    let [spinning, asking, crashing, calm] = [(); 4].map(|()| lab.ready_client());
    for client in [&spinning, &asking, &crashing, &calm] {
        client.ok("navigate", &json!({"url": site}));
    }
    spinning.fails("evaluate", &json!({"script": "for (;;) {}", "timeout": 500}), "timeout");
    asking.fails("evaluate", &json!({"script": "alert('stop')"}), "dialog_open");
    crashing.fails("navigate", &json!({"url": "chrome://crash"}), "policy_denied");
    assert_eq!(eval(&calm, "1 + 1"), json!(2));
    assert_eq!(eval(&spinning, "1 + 2"), json!(3));
    asking.ok("handle_dialog", &json!({}));
    assert_eq!(eval(&asking, "1 + 3"), json!(4));
}

/// S0.39: the list says where a page is now, also after a navigation that failed, and what it holds.
#[test]
fn the_list_of_sessions_says_where_pages_are_and_what_they_hold() {
    let (lab, site) = (Lab::real(), site());
    assert_eq!(lab.run(&["open", &format!("{site}/here")]).code, 0);
    let listed = || lab.json(&["ls", "--json"])["sessions"][0].clone();
    let held = until("it is known what the page holds", SOON, || listed()["memory_kb"].as_u64());
    assert!((100..1_000_000).contains(&held), "{held} kB");
    assert_eq!(listed()["url"], json!(format!("{site}/here")));
    // Nobody listens there.
    let nowhere = {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/", taken.local_addr().unwrap())
    };
    let failed = lab.run(&["open", &nowhere]);
    assert!(failed.code == 1 && failed.stderr.contains("[navigation_failed]"), "{failed:?}");
    assert_eq!(listed()["url"], json!(nowhere));
}

/// A page may ask whether it may be left; once it may, the next call meets the next page.
#[test]
fn after_a_page_was_allowed_to_leave_the_next_call_meets_the_next_page() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": format!("{site}/form")}));
    eval(&client, "onbeforeunload = (event) => event.preventDefault(); 1");
    let asked = client.fails("navigate", &json!({"url": format!("{site}/next")}), "dialog_open");
    assert!(asked.contains("whether the page may be left") && asked.contains("accept: false it stays"), "{asked}");
    let stayed = client.ok("handle_dialog", &json!({"accept": false})).text();
    assert!(stayed.contains("Dismissed the beforeunload: the page is at ") && stayed.contains("/form"), "{stayed}");
    assert_eq!(eval(&client, "location.pathname"), json!("/form"));
    client.fails("navigate", &json!({"url": format!("{site}/next")}), "dialog_open");
    client.ok("handle_dialog", &json!({}));
    assert_eq!(eval(&client, "location.pathname"), json!("/next"));
}

/// A page and what it opened run in one thread, so both stand still: the call that is under way on the first says so at once.
#[test]
fn a_dialog_of_a_popup_ends_its_openers_call_and_is_answered_by_the_name_of_its_tab() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site}));
    eval(&client, "!!(window.popup = open('/popup'))");
    until("the popup is there", SOON, || {
        (eval(&client, "popup.document.readyState + popup.location.pathname") == "complete/popup").then_some(())
    });
    let ask = "new Promise((done) => setTimeout(() => done(popup.confirm('Delete?'))))";
    let began = std::time::Instant::now();
    let told = client.fails("evaluate", &json!({"script": format!("window.asked = {ask}")}), "dialog_open");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(told.contains("Tab t2") && told.contains("(confirm): \"Delete?\"") && told.contains("tabId t2"), "{told}");
    let late = client.fails("evaluate", &json!({"script": "1", "timeout": 500}), "timeout");
    assert!(late.contains("handle_dialog and tabId t2"), "{late}");
    assert!(client.fails("handle_dialog", &json!({}), "bad_argument").contains("tabId t2"));
    client.ok("handle_dialog", &json!({"tabId": "t2"}));
    assert_eq!(client.ok("evaluate", &json!({"tabId": "t1", "script": "window.asked"})).result()["value"], json!(true));
}

/// S4.23: a popup is a tab of the session whose page opened it.
#[test]
fn a_popup_joins_the_session_of_its_opener() {
    let (lab, site) = (Lab::real(), site());
    let (client, other) = (lab.ready_client(), lab.ready_client());
    for client in [&client, &other] {
        client.ok("navigate", &json!({"url": site}));
    }
    client.ok("evaluate", &json!({"script": "window.open('/popup', '_blank', 'noopener'); 1"}));
    let listed = until("the popup joins", SOON, || {
        let listed = client.ok("list_pages", &json!({})).structured()["pages"].clone();
        (listed[1]["url"] == json!(format!("{site}/popup"))).then_some(listed)
    });
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(other.ok("list_pages", &json!({})).structured()["pages"].as_array().unwrap().len(), 1);
}

#[test]
fn the_short_forms_of_the_command_line_work_as_their_names_say() {
    let (lab, site) = (Lab::real(), site());
    let run = |arguments: &[&str]| {
        let printed = lab.run(arguments);
        assert_eq!(printed.code, 0, "{arguments:?}: {printed:?}");
        printed.stdout
    };
    run(&["open", &format!("{site}/hello")]);
    assert_eq!(run(&["eval", "document.title"]).trim(), "\"/hello\"");
    let file = lab.path().join("shot.png");
    run(&["screenshot", file.to_str().unwrap()]);
    assert!(std::fs::read(&file).unwrap().starts_with(b"\x89PNG"));
    let picture = lab.path().join("heading.png");
    run(&["screenshot", picture.to_str().unwrap(), "--selector", "h1"]);
    assert!(std::fs::metadata(&picture).unwrap().len() < std::fs::metadata(&file).unwrap().len());
}

#[test]
fn a_browser_that_is_not_there_says_what_to_do() {
    let lab = Lab::with(&[("TABMUX_BROWSER", "/nowhere/chromium")]);
    let client = lab.ready_client();
    let text = client.fails("start_browser", &json!({}), "browser_not_found");
    assert!(text.contains("/nowhere/chromium") && text.contains("TABMUX_BROWSER"), "{text}");
    assert_eq!(client.sessions(), Vec::<String>::new());
    assert_eq!(lab.run(&["doctor"]).code, 1);
    for command in [&["new"][..], &["open", "about:blank"], &["call", "new_page"], &["agent-session", "open"]] {
        let refused = lab.run(command);
        assert!(refused.code == 69 && refused.stderr.contains("/nowhere/chromium"), "{command:?}: {refused:?}");
    }
}

#[test]
fn a_client_gets_the_viewport_its_flag_asks_for() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.client_with(&["mcp", "--viewport-size", "640x400", "--ignore-https-errors"]);
    client.initialize();
    client.ok("navigate", &json!({"url": site}));
    assert_eq!(eval(&client, "[innerWidth, innerHeight]"), json!([640, 400]));
}

/// C12: a session in a browser of its own shares nothing with others, not even the process; both end with it.
#[test]
fn a_session_can_have_a_browser_of_its_own_that_ends_with_it() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "shared", "navigationUrl": site}));
    client.ok("start_browser", &json!({"sessionId": "alone", "isolation": "browser", "navigationUrl": format!("{site}/alone")}));
    let browsers = || lab.status()["browsers"].as_array().unwrap().len();
    assert_eq!(browsers(), 2);
    kill(lab.daemon_pid());
    let at = client.ok("evaluate", &json!({"sessionId": "alone", "script": "location.pathname"}));
    assert_eq!(at.result()["value"], json!("/alone"));
    client.ok("close_session", &json!({"sessionId": "alone"}));
    until("its browser ends", SOON, || (browsers() == 1).then_some(()));
    client.ok("evaluate", &json!({"sessionId": "shared", "script": "1"}));
}

/// C12: tabs in the shared profile are logged in alike, and stay each their session's own.
#[test]
fn sessions_isolated_by_tab_share_the_login_and_not_the_pages() {
    let (lab, site) = (Lab::real(), site());
    let clients = [lab.ready_client(), lab.ready_client()];
    for client in &clients {
        client.ok("start_browser", &json!({"isolation": "tab", "navigationUrl": site}));
        assert_eq!(client.ok("list_sessions", &json!({})).structured()["sessions"][0]["isolation"], "tab");
    }
    eval(&clients[0], "document.cookie = 'login=yes'");
    assert_eq!(eval(&clients[1], "document.cookie"), json!("login=yes"));
    for client in &clients {
        assert_eq!(client.ok("list_pages", &json!({})).structured()["pages"].as_array().unwrap().len(), 1);
    }
}

/// A browser that nobody claims is ended by its keeper, so the next daemon claims it at once, whether or not anybody calls.
#[test]
fn the_next_daemon_takes_the_browser_over_before_anybody_calls() {
    let (lab, site) = (Lab::real(), site());
    let mut up = lab.spawn(lab.command(&["up"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
    until("up has started the daemon", SOON, || (lab.status()["running"] == json!(true)).then_some(()));
    assert_eq!(lab.run(&["new", "-s", "idle", &site]).code, 0);
    let (browser, daemon) = (browser_pid(&lab), lab.daemon_pid());
    kill(daemon);
    until("the next daemon has it", SOON, || {
        let status = lab.status();
        (status["running"] == json!(true) && status["browsers"][0]["pid"] == json!(browser)).then_some(())
    });
    lab.stop();
    up.wait().unwrap();
}
