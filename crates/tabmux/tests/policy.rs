//! The operator's domains on a real Chromium, one test per way out. `a.localhost` is allowed, `b.localhost` is not, and the
//! one server behind both remembers who was asked for.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::net::UdpSocket;
use std::time::Duration;

use serde_json::{Value, json};
use support::site::{self, Site};
use support::{Lab, Mcp, SOON, until};

/// A world with a policy: a daemon, its client at the allowed site, and the server.
struct World {
    client: Mcp,
    site: Site,
    lab: Lab,
}

const ONLY_A: (&str, &str) = ("TABMUX_ALLOW_DOMAINS", "a.localhost");
const NOT_B: (&str, &str) = ("TABMUX_DENY_DOMAINS", "b.localhost");

impl World {
    fn new(policy: (&str, &str)) -> Self {
        let lab = Lab::with(&[("TABMUX_BROWSER", ""), policy]);
        let site = Site::answering(answer);
        let client = lab.ready_client();
        client.ok("navigate", &json!({"url": Self::url_at(&site, "a", "/start")}));
        site.asked();
        Self { client, site, lab }
    }

    fn url_at(site: &Site, host: &str, path: &str) -> String {
        format!("http://{host}.localhost:{}{path}", site.port())
    }

    fn url(&self, host: &str, path: &str) -> String {
        Self::url_at(&self.site, host, path)
    }

    fn eval(&self, script: &str) -> Value {
        self.client.ok("evaluate", &json!({"script": script})).result()["value"].clone()
    }

    /// The way `script` takes, with `URL` in its place: open to the allowed site, closed to the other one.
    fn holds(&self, script: &str) {
        let run = |host| self.eval(&script.replace("URL", &self.url(host, &format!("/{host}-reached"))));
        run("a");
        until("the allowed site is reached", SOON, || self.site.asked().contains(&"/a-reached".to_owned()).then_some(()));
        run("b");
        // What the first way needed, and a little more.
        self.eval("new Promise(done => setTimeout(done, 500))");
        assert_eq!(self.site.asked().iter().filter(|path| *path == "/b-reached").count(), 0, "{script}");
    }
}

/// `/to?URL` sends on to the URL; scripts fetch what their own address names.
fn answer(path: &str) -> Vec<u8> {
    let any = "Access-Control-Allow-Origin: *\r\nService-Worker-Allowed: /\r\n";
    if let Some(to) = path.strip_prefix("/to?") {
        return site::with("302 Found", "text/plain", &format!("Location: {to}\r\n"), "");
    }
    if let Some(to) = path.strip_prefix("/worker.js?") {
        let script =
            format!("fetch('{to}', {{ mode: 'no-cors' }}).catch(() => 0); self.addEventListener('install', () => self.skipWaiting())");
        return site::with("200 OK", "text/javascript", any, &script);
    }
    site::with("200 OK", "text/html", any, &format!("<title>{path}</title><p>The page {path}"))
}

#[test]
fn an_agent_is_told_at_once_where_pages_may_not_go() {
    let world = World::new(ONLY_A);
    for (tool, args) in [
        ("navigate", json!({"url": world.url("b", "/")})),
        ("new_page", json!({"url": world.url("b", "/")})),
        ("start_browser", json!({"sessionId": "x", "navigationUrl": world.url("b", "/")})),
        ("navigate", json!({"url": format!("http://127.0.0.1:{}/", world.site.port())})),
        ("navigate", json!({"url": format!("http://localhost:{}/", world.site.port())})),
    ] {
        let text = world.client.fails(tool, &args, "policy_denied");
        assert!(text.contains("it is not among policy.allow_domains. Allowed are a.localhost."), "{text}");
    }
    assert_eq!(world.site.asked(), Vec::<String>::new());
    assert_eq!(world.client.sessions().len(), 1);
    world.client.ok("navigate", &json!({"url": world.url("sub.a", "/below")}));
    let door = world.lab.run(&["agent-session", "open", "--url", &world.url("b", "/")]);
    assert!(door.code == 1 && door.stderr.contains("[policy_denied]"), "{door:?}");
}

#[test]
fn a_redirect_ends_at_the_border_and_says_so() {
    for policy in [ONLY_A, NOT_B] {
        let world = World::new(policy);
        let text = world.client.fails(
            "navigate",
            &json!({"url": world.url("a", &format!("/to?{}", world.url("b", "/reached")))}),
            "policy_denied",
        );
        assert!(text.contains("Pages may not reach b.localhost"), "{text}");
        let text = world.client.fails(
            "new_page",
            &json!({"url": world.url("a", &format!("/to?{}", world.url("b", "/reached")))}),
            "policy_denied",
        );
        assert!(text.contains("Pages may not reach b.localhost"), "{text}");
        assert!(world.site.asked().iter().all(|path| path != "/reached"));
        world.client.ok("navigate", &json!({"url": world.url("a", "/after")}));
    }
}

#[test]
fn an_act_that_leads_over_the_border_says_who_forbids_it() {
    let world = World::new(ONLY_A);
    let away = world.url("b", "/b-reached");
    world.client.ok("navigate", &json!({"url": world.url("a", "/start")}));
    let text = world.client.fails("evaluate", &json!({"script": format!("location.href = '{away}'; 5")}), "policy_denied");
    let expected = "The value is 5. But the page could not go where that leads: Pages may not reach b.localhost: it is not among";
    assert!(text.contains(expected), "{text}");
    world.client.ok("navigate", &json!({"url": world.url("a", "/start")}));
    let link = format!("document.body.innerHTML = '<a href=\"{away}\">away</a>'; 0");
    world.client.ok("evaluate", &json!({"script": link}));
    let text = world.client.fails("click_element", &json!({"selector": "text=away"}), "policy_denied");
    assert!(text.contains("Pages may not reach b.localhost"), "{text}");
    assert!(world.site.asked().iter().all(|path| path != "/b-reached"));
}

#[test]
fn popups_are_kept_in() {
    World::new(ONLY_A).holds("window.open('URL'); 0");
    World::new(NOT_B).holds("window.open('URL', '_blank', 'noopener'); 0");
}

#[test]
fn a_page_that_goes_by_itself_is_kept_in() {
    let world = World::new(ONLY_A);
    let script = format!("setTimeout(() => location = '{}', 0); 0", world.url("b", "/b-reached"));
    // Whether the page has tried by the time of the answer, which then says so, is the page's affair.
    world.client.call("evaluate", &json!({"script": script}));
    world.client.ok("wait_for", &json!({"url": "b.localhost"}));
    assert!(world.site.asked().iter().all(|path| path != "/b-reached"));
}

#[test]
fn fetch_and_what_pages_load_are_kept_in() {
    for policy in [ONLY_A, NOT_B] {
        let world = World::new(policy);
        world.holds("fetch('URL').catch(() => 0).then(() => 0)");
        world.holds(
            "new Promise(done => { const ask = new XMLHttpRequest(); ask.open('GET', 'URL'); ask.onloadend = () => done(0); ask.send() })",
        );
        world.holds("new Image().src = 'URL'; 0");
        world.holds("navigator.sendBeacon('URL', 'x'); 0");
        world.holds("document.head.append(Object.assign(document.createElement('link'), { rel: 'prefetch', href: 'URL' })); 0");
        world.holds("document.head.append(Object.assign(document.createElement('link'), { rel: 'stylesheet', href: 'URL' })); 0");
    }
}

#[test]
fn iframes_are_kept_in() {
    let world = World::new(ONLY_A);
    world.holds("document.body.append(Object.assign(document.createElement('iframe'), { src: 'URL' })); 0");
    world.holds("document.body.append(Object.assign(document.createElement('iframe'), { srcdoc: '<img src=URL>' })); 0");
}

#[test]
fn dedicated_workers_are_kept_in() {
    World::new(ONLY_A).holds("globalThis.kept = new Worker('/worker.js?URL'); 0");
}

#[test]
fn shared_workers_are_kept_in() {
    World::new(NOT_B).holds("globalThis.kept = new SharedWorker('/worker.js?URL'); 0");
}

#[test]
fn service_workers_are_kept_in() {
    World::new(ONLY_A).holds("navigator.serviceWorker.register('/worker.js?URL').then(() => 0)");
}

#[test]
fn web_sockets_are_kept_in() {
    for policy in [ONLY_A, NOT_B] {
        World::new(policy)
            .holds("new Promise(done => { const s = new WebSocket('URL'.replace('http', 'ws')); s.onerror = s.onopen = () => done(0) })");
    }
}

/// Hosts that are written as addresses, and names with their last dot.
#[test]
fn another_way_of_writing_a_host_is_no_way_out() {
    let world = World::new(ONLY_A);
    let port = world.site.port();
    for host in ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost", "0.0.0.0"] {
        world.eval(&format!("fetch('http://{host}:{port}/b-reached', {{ mode: 'no-cors' }}).catch(() => 0).then(() => 0)"));
    }
    let denied = World::new(NOT_B);
    denied.eval(&format!(
        "fetch('http://b.localhost.:{}/b-reached', {{ mode: 'no-cors' }}).catch(() => 0).then(() => 0)",
        denied.site.port()
    ));
    assert!(world.site.asked().is_empty() && denied.site.asked().is_empty());
    let address = World::new(("TABMUX_DENY_DOMAINS", "127.0.0.1"));
    for host in ["127.1", "[::ffff:127.0.0.1]"] {
        address
            .eval(&format!("fetch('http://{host}:{}/b-reached', {{ mode: 'no-cors' }}).catch(() => 0).then(() => 0)", address.site.port()));
    }
    assert!(address.site.asked().is_empty());
}

/// WebRTC resolves nothing, so it is what could go around the rules.
#[test]
fn datagrams_reach_nobody_either() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let world = World::new(ONLY_A);
    let script = format!(
        "(async () => {{ const one = new RTCPeerConnection({{ iceServers: [{{ urls: 'stun:127.0.0.1:{}' }}] }}); one.createDataChannel('x'); \
         await one.setLocalDescription(await one.createOffer()); await new Promise(done => setTimeout(done, 1000)); one.close() }})()",
        socket.local_addr().unwrap().port()
    );
    world.eval(&script);
    assert!(socket.recv(&mut [0; 64]).is_err(), "a datagram came out");
}

/// It would resolve the hosts that the browser must not.
#[test]
fn a_proxy_that_the_environment_names_is_not_used() {
    for browser in ["", "/usr/lib/chromium/chromium"] {
        let (site, proxy) = (Site::answering(answer), Site::answering(answer));
        let to_proxy = proxy.at("");
        let named = ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"].map(|name| (name, to_proxy.as_str()));
        let lab = Lab::with(&[&[("TABMUX_BROWSER", browser), ("TABMUX_DENY_DOMAINS", "evil.test")], &named[..]].concat());
        let client = lab.ready_client();
        client.ok("navigate", &json!({"url": site.at("/start")}));
        let script = "Promise.allSettled(['http://evil.test/', 'http://good.test/', 'https://evil.test/'].map(url => fetch(url, { mode: 'no-cors' })))";
        client.ok("evaluate", &json!({"script": script}));
        assert_eq!(proxy.asked(), Vec::<String>::new(), "{browser}");
    }
}

/// A browser that was started under other rules does not serve the next daemon.
#[test]
fn a_new_daemon_with_other_rules_takes_no_old_browser() {
    let World { client, site, lab } = World::new(NOT_B);
    // Its shim would start the next daemon, with the rules it knows.
    drop(client);
    let url = |host: &str, path: &str| World::url_at(&site, host, path);
    let opened = lab.run(&["open", &url("c", "/")]);
    assert_eq!(opened.code, 0, "{opened:?}");
    let daemon = lab.daemon_pid();
    support::process::kill(daemon);
    until("it is dead", SOON, || (!support::process::is_alive(daemon)).then_some(()));
    let strict = |url: &str| lab.run_command(lab.command(&["open", url]).env("TABMUX_DENY_DOMAINS", "c.localhost")).stderr;
    site.asked();
    let around = url("a", &format!("/to?{}", url("c", "/c-reached")));
    let said = [strict(&url("c", "/")), strict(&url("c", "/")), strict(&around)];
    assert!(said[0].contains("[browser_crashed]"), "{said:?}");
    assert!(said[1].contains("[policy_denied]") && said[2].contains("[policy_denied]"), "{said:?}");
    assert!(site.asked().iter().all(|path| path != "/c-reached"));
}

#[test]
fn rules_that_cannot_be_kept_are_refused_at_the_start() {
    for (variables, said) in [
        (vec![("TABMUX_ALLOW_DOMAINS", "https://a.test")], "policy.allow_domains = \"https://a.test\""),
        (vec![("TABMUX_DENY_DOMAINS", "a.test:80")], "without ports"),
        (
            vec![("TABMUX_ALLOW_DOMAINS", "a.test"), ("TABMUX_DENY_DOMAINS", "x.a.test")],
            "contradict each other: x.a.test is denied within a.test",
        ),
        (vec![("TABMUX_ALLOW_DOMAINS", "a.test"), ("TABMUX_BROWSER_ARGS", "--proxy-server=127.0.0.1:1")], "cannot be kept"),
    ] {
        let printed = Lab::with(&variables).run(&["call", "list_sessions"]);
        assert!(printed.code == 78 && printed.stderr.contains(said), "{printed:?}");
    }
}

/// Only a browser that tabmux starts is kept to the rules, so no session begins in another one.
#[test]
fn with_rules_no_session_begins_in_a_browser_that_somebody_else_started() {
    let lab = Lab::with(&[ONLY_A]);
    let client = lab.client_with(&["mcp", "--cdp-endpoint", "127.0.0.1:9"]);
    client.initialize();
    let text = client.fails("navigate", &json!({"url": "http://a.localhost/"}), "policy_denied");
    assert!(text.contains("somebody else started") && text.contains("--cdp-endpoint"), "{text}");
    assert_eq!(client.sessions(), Vec::<String>::new());
}
