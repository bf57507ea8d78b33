//! The shipped binary in a browser that a person started: agents share one connection to it, and nothing of the person's is
//! seen, touched, focused or closed.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::process::Stdio;

use serde_json::{Value, json};
use support::{Gate, Lab, Mcp, Person, SOON, Said, Shown, at_once, process, site, until};

const UNITS: [&str; 3] = ["window", "context", "tab"];

fn client(lab: &Lab, endpoint: &str) -> Mcp {
    let client = lab.client_with(&["mcp", "--cdp-endpoint", endpoint]);
    client.initialize();
    client
}

fn eval(client: &Mcp, script: &str) -> Value {
    client.ok("evaluate", &json!({"script": script})).result()["value"].clone()
}

fn pages(client: &Mcp) -> usize {
    client.ok("list_pages", &json!({})).structured()["pages"].as_array().unwrap().len()
}

fn kill(pid: u32) {
    process::kill(pid);
    until("it is dead", SOON, || (!process::is_alive(pid)).then_some(()));
}

/// Their pages, and nothing else, are in the browser again.
fn await_only(person: &Person, theirs: &[(String, String)]) {
    until("only the person's pages are left", SOON, || (person.pages() == theirs).then_some(()));
}

/// What the page the person looks at told of being looked away from since then. The others are behind it already.
fn disturbances(person: &Person, since: usize) -> Vec<String> {
    let told = |path: &String| ["/blurred-looked-at", "/hidden-looked-at"].contains(&path.as_str());
    person.site.seen().into_iter().skip(since).filter(told).collect()
}

/// Four agents that name the browser in four ways, each kind of isolation among them.
fn four_agents_beside_a_person(shown: Shown) {
    let (lab, person) = (Lab::new(), Person::new(shown));
    person.open("second");
    person.open("looked-at");
    let (theirs, since) = (person.pages(), person.site.seen().len());
    assert_eq!(theirs.len(), 3);
    let gate = Gate::open(person.port);
    let path = person.url.rsplit_once(&format!(":{}", person.port)).unwrap().1;
    let names = [
        gate.port.to_string(),
        format!("localhost:{}", gate.port),
        format!("http://127.0.0.1:{}", gate.port),
        format!("ws://127.0.0.1:{}{path}", gate.port),
    ];
    let clients = at_once(names.iter().enumerate().collect(), |(number, name)| {
        let client = client(&lab, name);
        let url = person.site.page(&format!("agent{number}"));
        let mut start = json!({"navigationUrl": url});
        if let Some(isolation) = [None, Some("context"), Some("tab"), Some("window")][number] {
            start["isolation"] = json!(isolation);
        }
        client.ok("start_browser", &start);
        client.ok("new_page", &json!({"url": url}));
        assert_eq!((pages(&client), eval(&client, "location.href")), (2, json!(url)));
        client.ok("screenshot", &json!({}));
        go_about(&client, &url);
        client
    });
    assert_eq!(gate.websockets(), 1, "one connection for all");
    let units = clients.iter().map(|client| client.ok("list_sessions", &json!({})).structured()["sessions"][0]["isolation"].clone());
    assert_eq!(units.collect::<Vec<_>>(), ["window", "context", "tab", "window"], "a window is what an attached session gets");
    let status = lab.status();
    let endpoint = &status["browsers"][0]["endpoint"];
    assert_eq!((status["browsers"].as_array().unwrap().len(), &status["browsers"][0]["kind"]), (1, &json!("attached")), "{status}");
    assert!(endpoint.as_str().unwrap().ends_with(&format!(":{}{path}", gate.port)), "{endpoint}");
    assert_eq!(person.pages().len(), 3 + 2 * 4);
    for client in &clients {
        client.ok("close_session", &json!({}));
    }
    await_only(&person, &theirs);
    assert_eq!(disturbances(&person, since), Vec::<String>::new());
    assert_considerate(&gate.messages(), &theirs);
}

/// What agents do all day. Pages that open others by themselves do take the focus, which is theirs and not ours.
fn go_about(client: &Mcp, url: &str) {
    client.ok("evaluate", &json!({"script": "document.body.insertAdjacentHTML('beforeend', '<button>Press</button>')"}));
    client.ok("click_element", &json!({"selector": "button"}));
    client.ok("new_page", &json!({"url": url}));
    for page in [2, 0, 1] {
        client.ok("select_page", &json!({"pageIdx": page}));
        client.ok("snapshot", &json!({}));
        client.ok("read_text", &json!({}));
    }
    client.ok("navigate", &json!({"url": format!("{url}-further")}));
    client.ok("navigate", &json!({"back": true}));
    client.ok("screenshot", &json!({"fullPage": true}));
    client.ok("close_page", &json!({"pageIdx": 2}));
}

/// The log of a whole run: nothing takes the focus, and nothing is asked of a page that is not ours.
fn assert_considerate(sent: &[Value], theirs: &[(String, String)]) {
    assert!(sent.len() > 200, "{} messages", sent.len());
    for message in sent {
        let (method, params) = (message["method"].as_str().unwrap(), &message["params"]);
        assert!(!["Page.bringToFront", "Target.activateTarget"].contains(&method), "{message}");
        assert!(theirs.iter().all(|(id, _)| params["targetId"] != json!(id)), "{message}");
        assert!(method != "Target.setAutoAttach" || message["sessionId"].is_string(), "to everybody's pages: {message}");
        if method == "Target.createTarget" {
            assert!(params["background"] == json!(true) || params["hidden"] == json!(true), "{message}");
        }
    }
}

/// S4.6, S4.7
#[test]
fn four_agents_share_one_connection_and_the_person_notices_nothing() {
    four_agents_beside_a_person(Shown::Headless);
}

/// S4.6, S4.7
#[test]
fn four_agents_share_one_connection_and_the_person_at_the_windows_notices_nothing() {
    four_agents_beside_a_person(Shown::Windows);
}

#[test]
fn up_attaches_at_once_and_stop_leaves_the_browser_as_it_was() {
    let (lab, mut person) = (Lab::new(), Person::new(Shown::Headless));
    let theirs = person.pages();
    let port = person.port.to_string();
    let up = |arguments: &[&str]| {
        let mut command = lab.command(&[&["up"], arguments].concat());
        lab.spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
    };
    let mut supervisor = up(&["--attach", &port]);
    let attached = || {
        let printed = lab.run(&["status", "--json"]).json();
        (printed["browsers"][0]["endpoint"] == json!(person.url)).then_some(())
    };
    until("it is attached", SOON, attached);
    assert_eq!(person.pages(), theirs, "nobody asked for a page yet");
    for unit in UNITS {
        assert_eq!(lab.run(&["new", "-s", unit, "--isolation", unit, &person.site.page("agent")]).code, 0);
    }
    assert_eq!(person.pages().len(), theirs.len() + 3);
    let fault = lab.run(&["new", "--isolation", "browser"]);
    assert!(fault.code == 1 && fault.stderr.contains("[unsupported]"), "{fault:?}");
    assert_eq!(lab.run(&["doctor"]).code, 0);
    lab.stop();
    supervisor.wait().unwrap();
    await_only(&person, &theirs);
    assert!(person.is_running());
}

/// A daemon that runs is not moved to another browser behind its sessions' backs.
#[test]
fn up_says_when_a_daemon_without_that_browser_already_runs() {
    let (lab, person) = (Lab::new(), Person::new(Shown::Headless));
    assert_eq!(lab.run(&["call", "list_sessions"]).code, 0, "starts the daemon");
    let refused = lab.run(&["up", "--attach", &person.port.to_string()]);
    assert!(refused.code == 69 && refused.stderr.contains("tabmux stop"), "{refused:?}");
}

#[test]
fn after_a_killed_daemon_the_sessions_have_their_very_pages_again() {
    let (lab, person) = (Lab::new(), Person::new(Shown::Headless));
    let (theirs, gate) = (person.pages(), Gate::open(person.port));
    let clients = UNITS.map(|isolation| {
        let client = client(&lab, &gate.port.to_string());
        client.ok("start_browser", &json!({"sessionId": isolation, "isolation": isolation, "navigationUrl": person.site.page(isolation)}));
        eval(&client, &format!("window.kept = '{isolation}'"));
        client
    });
    kill(lab.daemon_pid());
    for (client, isolation) in clients.iter().zip(UNITS) {
        assert_eq!(eval(client, "window.kept"), json!(isolation));
        assert_eq!(client.sessions(), [isolation]);
    }
    assert_eq!((gate.websockets(), person.pages().len()), (2, theirs.len() + 3), "one connection for each daemon, no page more");
    // Nobody opens them again, and still the next daemon knows which pages are theirs.
    kill(lab.daemon_pid());
    assert_eq!(lab.run(&["call", "list_sessions"]).code, 0, "starts the next one");
    lab.stop();
    await_only(&person, &theirs);
}

/// A connection that breaks is not a browser that ends: whoever was calling is told, and the pages are found again.
/// S1.27, for the link to a person's browser that there is today; the extension's comes with the extension.
#[test]
fn after_a_broken_connection_the_sessions_go_on_with_their_pages() {
    let (lab, person) = (Lab::new(), Person::new(Shown::Headless));
    let (theirs, gate) = (person.pages(), Gate::open(person.port));
    let [client, other] = [(); 2].map(|()| client(&lab, &gate.port.to_string()));
    client.ok("start_browser", &json!({"navigationUrl": person.site.page("agent")}));
    eval(&client, "window.kept = 'yes'");
    other.ok("start_browser", &json!({"navigationUrl": person.site.page("other")}));
    let calls = [&client, &other].map(|client| client.start_call("evaluate", &json!({"script": "new Promise(() => {})"})));
    until("the calls run", SOON, || (lab.status()["calls"]["running"] == json!(2)).then_some(()));
    gate.cut();
    for (client, call) in [&client, &other].into_iter().zip(&calls) {
        assert_eq!(client.finish_call(call, SOON).code(), "browser_crashed");
    }
    assert_eq!(eval(&client, "window.kept"), json!("yes"));
    assert_eq!(eval(&other, "location.href"), json!(person.site.page("other")));
    assert_eq!((gate.websockets(), person.pages().len()), (2, theirs.len() + 2));
    for client in [&client, &other] {
        client.ok("close_session", &json!({}));
    }
    await_only(&person, &theirs);
}

/// The contract's rule for a crash, where the browser comes back only when its user starts it again.
#[test]
fn a_browser_that_its_user_quits_is_said_once_and_attached_to_again_when_it_is_back() {
    quits_and_comes_back(|_, client, quit| {
        quit();
        client.fails("evaluate", &json!({"script": "1"}), "browser_crashed")
    });
}

#[test]
fn a_browser_that_its_user_quits_during_a_call_is_said_once_too() {
    quits_and_comes_back(|lab, client, quit| {
        let running = client.start_call("evaluate", &json!({"script": "new Promise(() => {})"}));
        until("the call runs", SOON, || (lab.status()["calls"]["running"] == json!(1)).then_some(()));
        quit();
        let reply = client.finish_call(&running, SOON);
        assert_eq!(reply.code(), "browser_crashed");
        reply.text()
    });
}

fn quits_and_comes_back(hears_of_it: impl FnOnce(&Lab, &Mcp, &mut dyn FnMut()) -> String) {
    let lab = Lab::new();
    let mut person = Person::at_home(lab.path(), "chromium");
    let client = client(&lab, "auto");
    client.ok("start_browser", &json!({"sessionId": "web", "isolation": "context", "navigationUrl": person.site.page("one")}));
    let text = hears_of_it(&lab, &client, &mut || drop(person.quit()));
    assert!(text.contains("gone"), "{text}");
    for _ in 0..2 {
        let text = client.fails("navigate", &json!({"sessionId": "web", "url": person.site.page("two")}), "browser_not_found");
        assert!(text.contains("chrome://inspect"), "{text}");
    }
    assert_eq!(client.sessions(), ["web"]);
    let again = Person::at_home(lab.path(), "chromium");
    client.ok("navigate", &json!({"sessionId": "web", "url": again.site.page("two")}));
    assert_eq!(eval(&client, "location.href"), json!(again.site.page("two")));
}

#[test]
fn auto_finds_the_browser_that_runs_and_asks_which_when_there_are_two() {
    let lab = Lab::new();
    // What a killed browser leaves.
    let mut killed = Person::at_home(lab.path(), "google-chrome");
    killed.quit();
    let person = Person::at_home(lab.path(), "chromium");
    assert!(lab.run(&["doctor", "--set", "attach=auto"]).stdout.contains(&person.url));
    let one = client(&lab, "auto");
    one.ok("start_browser", &json!({}));
    assert_eq!(lab.status()["browsers"][0]["endpoint"], json!(person.url));
    let second = Person::at_home(lab.path(), "BraveSoftware/Brave-Browser");
    let doctor = lab.run(&["doctor", "--set", "attach=auto"]);
    assert!(doctor.code == 1 && doctor.stdout.contains(&person.url) && doctor.stdout.contains(&second.url), "{doctor:?}");
    // Who has one already keeps it.
    one.ok("start_browser", &json!({"sessionId": "other", "isolation": "context"}));
}

#[test]
fn what_is_wrong_with_an_endpoint_is_said_with_a_way_out() {
    let lab = Lab::new();
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    for (endpoint, code, way_out) in [
        (dead.as_str(), "browser_not_found", "chrome://inspect"),
        ("nowhere", "bad_argument", "http://host:port"),
        ("wss://example.test/devtools/browser/1", "unsupported", "tunnel"),
    ] {
        let client = client(&lab, endpoint);
        let text = client.fails("start_browser", &json!({}), code);
        assert!(text.contains(way_out), "{text}");
        assert_eq!(client.sessions(), Vec::<String>::new());
    }
    let doctor = lab.run(&["doctor", "--set", &format!("attach={dead}")]);
    assert!(doctor.code == 1 && doctor.stdout.contains("chrome://inspect"), "{doctor:?}");
    let wrong = lab.run(&["up", "--attach", "nowhere"]);
    assert!(wrong.code == 78 && wrong.stderr.contains("attach") && wrong.stderr.contains("http://host:port"), "{wrong:?}");
}

/// An everyday browser, in which remote debugging was allowed at chrome://inspect: it says nothing of itself and asks.
struct Everyday {
    _person: Person,
    gate: Gate,
}

impl Everyday {
    fn new(lab: &Lab) -> Self {
        let person = Person::new(Shown::Headless);
        let gate = Gate::asking(person.port);
        let profile = lab.path().join(".config/google-chrome");
        std::fs::create_dir_all(&profile).unwrap();
        let path = person.url.rsplit_once(&format!(":{}", person.port)).unwrap().1;
        std::fs::write(profile.join("DevToolsActivePort"), format!("{}\n{path}", gate.port)).unwrap();
        Self { _person: person, gate }
    }
}

#[test]
fn a_call_waits_while_the_browser_asks_its_user_who_is_asked_once() {
    let lab = Lab::new();
    let everyday = Everyday::new(&lab);
    let (one, other) = (client(&lab, "auto"), client(&lab, &everyday.gate.port.to_string()));
    let waiting = [&one, &other].map(|client| client.start_call("start_browser", &json!({})));
    until("status says so", SOON, || {
        let waits_for = lab.status()["browsers"][0]["waits_for"].clone();
        waits_for.as_str().is_some_and(|text| text.contains("allow")).then_some(())
    });
    everyday.gate.say(Said::Allow);
    for (client, call) in [&one, &other].into_iter().zip(waiting) {
        assert!(!client.finish_call(&call, SOON).failed());
    }
    assert_eq!((everyday.gate.websockets(), &lab.status()["browsers"][0]["waits_for"]), (1, &Value::Null));
}

#[test]
fn a_user_who_says_no_is_obeyed_and_asked_again_only_with_the_next_call() {
    let lab = Lab::new();
    let everyday = Everyday::new(&lab);
    let client = client(&lab, "auto");
    everyday.gate.say(Said::Cancel);
    let text = client.fails("start_browser", &json!({}), "policy_denied");
    assert!(text.contains("Cancel") && text.contains("Allow"), "{text}");
    assert_eq!(everyday.gate.websockets(), 1);
    everyday.gate.say(Said::Allow);
    client.ok("start_browser", &json!({}));
}

/// The doctor's own settings know nothing of it.
#[test]
fn the_doctor_names_the_browser_that_the_daemon_is_attached_to_and_says_whether_it_answers() {
    let (lab, mut person) = (Lab::new(), Person::new(Shown::Headless));
    let mut command = lab.command(&["up", "--attach", &person.port.to_string()]);
    let mut supervisor = lab.spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
    until("it is attached", SOON, || (lab.run(&["status", "--json"]).json()["browsers"][0]["endpoint"] == json!(person.url)).then_some(()));
    let attached = || {
        let checks = lab.run(&["doctor", "--json"]).json()["checks"].clone();
        checks.as_array().unwrap().iter().find(|check| check["check"] == "attached browser").cloned().unwrap()
    };
    let found = attached();
    assert_eq!(
        (&found["ok"], &found["found"]),
        (&json!(true), &json!(format!("{}; the daemon is attached to it, and it answers", person.url)))
    );
    person.quit();
    let found = attached();
    let problem = found["problem"].as_str().unwrap();
    assert!(found["ok"] == json!(false) && problem.contains("does not answer") && problem.contains(&person.port.to_string()), "{found}");
    lab.stop();
    supervisor.wait().unwrap();
}

#[test]
fn the_doctor_says_whether_the_browser_to_attach_to_is_there() {
    let mut person = Person::new(Shown::Headless);
    let lab = Lab::with(&[("TABMUX_ATTACH", &person.port.to_string())]);
    let browser = || {
        let checks = lab.run(&["doctor", "--json"]).json()["checks"].clone();
        checks.as_array().unwrap().iter().find(|check| check["check"] == "browser").unwrap().clone()
    };
    let found = browser();
    assert!(found["ok"] == json!(true) && found["found"].as_str().unwrap().contains("can be attached to"), "{found}");
    person.quit();
    let found = browser();
    assert!(found["ok"] == json!(false) && !found["cure"].as_str().unwrap().is_empty(), "{found}");
    assert_eq!(lab.run(&["doctor"]).code, 1);
}

/// `/to?URL` sends on to the URL; workers ask for what their own address names, and say when they have.
fn ways_out(path: &str) -> Vec<u8> {
    if let Some(to) = path.strip_prefix("/to?") {
        return site::with("302 Found", "text/plain", &format!("Location: {to}\r\n"), "");
    }
    if let Some(to) = path.strip_prefix("/worker.js?") {
        let script = format!(
            "const done = new BroadcastChannel('done'); fetch('{to}', {{ mode: 'no-cors' }}).then(() => done.postMessage('reached'), () => done.postMessage('refused'))"
        );
        return site::with("200 OK", "text/javascript", "", &script);
    }
    site::with("200 OK", "text/html", "", &format!("<title>{path}</title><p>The page {path}"))
}

/// Over HTTP the port lists and closes everybody's tabs, and opens any address.
#[test]
fn no_page_gets_to_the_port_that_controls_the_browser() {
    let (lab, person) = (Lab::new(), Person::new(Shown::Headless));
    let (theirs, port, site) = (person.pages(), person.port, site::Site::answering(ways_out));
    let close = format!("http://127.0.0.1:{port}/json/close/{}", theirs[0].0);
    for isolation in ["window", "context"] {
        let client = client(&lab, &port.to_string());
        let home = format!("http://127.0.0.1:{}/home", site.port());
        client.ok("start_browser", &json!({"isolation": isolation, "navigationUrl": home}));
        for host in ["127.0.0.1", "localhost", "a.localhost.", "0.0.0.0", "127.1", "127.9.9.9", "2130706433", "[::1]", "[::ffff:127.0.0.1]"]
        {
            let text = client.fails("navigate", &json!({"url": format!("http://{host}:{port}/json/list")}), "policy_denied");
            assert!(text.contains("a port that controls a browser"), "{text}");
        }
        client.fails("navigate", &json!({"url": home.replace("/home", &format!("/to?{close}"))}), "policy_denied");
        client.ok("navigate", &json!({"url": home}));
        let worker = |made: &str| {
            format!("new Promise(done => {{ new BroadcastChannel('done').onmessage = told => done(told.data); globalThis.kept = {made} }})")
        };
        for (script, said) in [
            (format!("fetch('{close}', {{ mode: 'no-cors' }}).then(() => 'reached', () => 'refused')"), "refused"),
            (format!("fetch('/to?{close}', {{ mode: 'no-cors' }}).then(() => 'reached', () => 'refused')"), "refused"),
            (worker(&format!("new Worker('/worker.js?{close}')")), "refused"),
            (worker(&format!("new SharedWorker('/worker.js?{close}')")), "refused"),
            (worker(&format!("navigator.serviceWorker.register('/worker.js?{close}')")), "refused"),
            (format!("new Promise(done => Object.assign(new Image(), {{ onerror: () => done('asked'), src: '{close}' }}))"), "asked"),
            (
                format!(
                    "new Promise(done => document.body.append(Object.assign(document.createElement('iframe'), {{ onload: () => done('asked'), src: '{close}' }})))"
                ),
                "asked",
            ),
        ] {
            assert_eq!(eval(&client, &script), json!(said), "{script}");
            assert_eq!(person.pages().iter().filter(|page| theirs.contains(page)).count(), 1, "{script}");
        }
        client.ok("evaluate", &json!({"script": format!("open('{close}', '_blank', 'noopener'); 0")}));
        until("the page that it opened is there", SOON, || (pages(&client) == 2).then_some(()));
        client.ok("select_page", &json!({"pageIdx": 1}));
        client.ok("wait_for", &json!({"url": "/json/close"}));
        client.ok("close_session", &json!({}));
        await_only(&person, &theirs);
    }
}

/// Whoever is attached to it, and whichever browser came first; the next daemon keeps it so.
#[test]
fn no_page_of_a_browser_of_our_own_gets_to_that_port_either() {
    for attached_first in [false, true] {
        let (lab, person) = (Lab::real(), Person::new(Shown::Headless));
        let list = format!("http://127.0.0.1:{}/json/list", person.port);
        let (own, attached) = (lab.ready_client(), client(&lab, &person.port.to_string()));
        let mut clients = [&own, &attached];
        if attached_first {
            clients.reverse();
        }
        for client in clients {
            client.ok("navigate", &json!({"url": "data:text/html,mine"}));
        }
        let is_refused = || {
            let text = own.fails("navigate", &json!({"url": list}), "policy_denied");
            assert!(text.contains("a port that controls a browser"), "{text}");
        };
        is_refused();
        support::process::kill(lab.daemon_pid());
        for client in clients {
            client.ok("list_pages", &json!({}));
        }
        is_refused();
    }
}

/// Where the person's own files go stays as it was; what an agent's page downloads is brought from there to its session.
#[test]
fn what_an_agent_downloads_in_somebodys_browser_is_told_and_is_its_sessions() {
    let (lab, person) = (Lab::new(), Person::new(Shown::Headless));
    let site = site::Site::answering(|path| match path {
        "/home" => site::with("200 OK", "text/html", "", "<a id=get href=/file>Get</a>"),
        _ => site::with("200 OK", "application/octet-stream", "Content-Disposition: attachment; filename=agents.bin\r\n", "12345"),
    });
    for isolation in ["window", "tab"] {
        let client = client(&lab, &person.port.to_string());
        let home = format!("http://127.0.0.1:{}/home", site.port());
        client.ok("start_browser", &json!({"isolation": isolation, "navigationUrl": home}));
        client.ok("click_element", &json!({"selector": "#get"}));
        let listed = client.ok("downloads", &json!({"wait": true})).structured()["downloads"].clone();
        let path = std::path::PathBuf::from(listed[0]["path"].as_str().unwrap_or_else(|| panic!("{listed}")));
        assert!(path.starts_with(lab.state_dir().join("downloads")) && std::fs::read(&path).unwrap() == b"12345", "{listed}");
        client.ok("close_session", &json!({}));
    }
}
