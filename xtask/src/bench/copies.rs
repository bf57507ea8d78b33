//! `cargo xtask bench clone`: what a session costs that begins with a thousand cookies and what fifty origins keep, beside the bare
//! messages and an empty session in the same run; and what ten copies cost beside one. Real browser, through the daemon.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::client::{Home, Lines};
use super::peers::{Browsers, RawPipe};
use super::{Holds, Row, build_release, document, limited, memory, percentile, rows_table, timed};
use crate::workspace;

const ORIGINS: usize = 50;
const COOKIES: usize = 1000;
const ROUNDS: usize = 7;
const FORKS: usize = 10;
const CLONE_LIMIT: f64 = 2.0;
const FORK_LIMIT: f64 = 4.0;

/// Fifty sites on one port of loopback, each keeping a little in both of its stores.
struct Sites {
    port: u16,
}

const KEEP: &str = "new Promise((done, failed) => { localStorage.token = location.host; \
    const opening = indexedDB.open('kept', 1); opening.onerror = failed; \
    opening.onupgradeneeded = () => opening.result.createObjectStore('s').put({ who: location.host, when: new Date(1) }, 1); \
    opening.onsuccess = () => { opening.result.close(); done(location.host); }; })";

pub(super) fn run() -> Result<()> {
    build_release()?;
    let home = Home::with_real_browser(workspace::root().join("target/release/tabmux"))?;
    let sites = Sites::serve()?;
    let mut client = home.client()?;
    client.initialize()?;
    log_in(&mut client, &sites)?;
    let mut rows = clones(&mut client, &sites)?;
    rows.extend(forks(&home)?);
    let text = report(&rows);
    println!("{text}");
    document::write_part("copies", &text)?;
    let broken = rows.iter().filter(|row| row.holds == Holds::No).count();
    if broken == 0 { Ok(()) } else { bail!("{broken} limits are broken") }
}

/// The session that all copies begin with.
fn log_in(client: &mut Lines, sites: &Sites) -> Result<()> {
    client.call("start_browser", &json!({"sessionId": "source"}))?;
    for cookies in sites.cookies().chunks(100) {
        client.call("cookies", &json!({"sessionId": "source", "set": cookies}))?;
    }
    for site in 0..ORIGINS {
        client.call("navigate", &json!({"sessionId": "source", "url": sites.url(site)}))?;
        client.call("evaluate", &json!({"sessionId": "source", "script": KEEP}))?;
    }
    Ok(())
}

fn clones(client: &mut Lines, sites: &Sites) -> Result<Vec<Row>> {
    let profile = tempfile::tempdir()?;
    let mut raw = RawPipe::open(&Browsers::find()?.shell, profile.path(), &sites.url(0))?;
    let source = raw.browser("Target.createBrowserContext", &json!({}))?["browserContextId"].clone();
    raw.browser("Storage.setCookies", &json!({"browserContextId": source, "cookies": sites.cookies()}))?;
    let (mut bare, mut empty, mut copied) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        // Of an empty session there is one already.
        let context = raw.browser("Target.createBrowserContext", &json!({}))?["browserContextId"].clone();
        let messages = timed(|| {
            let cookies = raw.browser("Storage.getCookies", &json!({"browserContextId": source}))?["cookies"].take();
            ensure!(cookies.as_array().is_some_and(|cookies| cookies.len() == COOKIES), "the browser lost cookies");
            raw.browser("Storage.setCookies", &json!({"browserContextId": context, "cookies": params(cookies)})).map(drop)
        })?;
        raw.browser("Target.disposeBrowserContext", &json!({"browserContextId": context}))?;
        let url = sites.url(round % ORIGINS);
        let alone = timed(|| open(client, &json!({"sessionId": "alone", "navigationUrl": url})))?;
        client.call("close_session", &json!({"sessionId": "alone"}))?;
        let copy = timed(|| open(client, &json!({"sessionId": "copy", "navigationUrl": url, "from": "source"})))?;
        check(client, "copy", &url)?;
        client.call("close_session", &json!({"sessionId": "copy"}))?;
        // The first round warms caches up.
        if round > 0 {
            bare.push(messages);
            empty.push(alone);
            copied.push(copy);
        }
    }
    let (bare, empty, copied) = (percentile(&mut bare, 50), percentile(&mut empty, 50), percentile(&mut copied, 50));
    let ratio = copied.as_secs_f64() / (bare + empty).as_secs_f64();
    Ok(vec![
        milliseconds("bare `getCookies` and `setCookies`", bare),
        milliseconds("an empty session up to its first page", empty),
        milliseconds("a copy up to its first page, logged in", copied),
        limited("copy, times bare messages and empty session", ratio, CLONE_LIMIT),
    ])
}

fn open(client: &mut Lines, arguments: &Value) -> Result<()> {
    client.call("start_browser", arguments).map(drop)
}

/// What its origin keeps is there when the page is.
fn check(client: &mut Lines, session: &str, url: &str) -> Result<()> {
    let reply = client.call("evaluate", &json!({"sessionId": session, "script": "localStorage.token"}))?;
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    ensure!(reply["result"]["_meta"]["tabmux/result"]["value"] == host, "the copy is not logged in at {url}: {reply}");
    Ok(())
}

fn forks(home: &Home) -> Result<Vec<Row>> {
    // The operator asks for the copies, so they are the operator's.
    let fork = |count: usize| -> Result<Duration> {
        let began = Instant::now();
        let made = home.run(&["fork", "-t", "source", "-n", &count.to_string(), "--json"])?;
        let took = began.elapsed();
        let names: Vec<_> = made["sessions"].as_array().into_iter().flatten().filter_map(|session| session["sessionId"].as_str()).collect();
        ensure!(names.len() == count, "{count} copies were asked for: {made}");
        for name in names {
            home.run(&["kill-session", "-t", name, "--json"])?;
        }
        Ok(took)
    };
    let (mut one, mut ten) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (a, b) = (fork(1)?, fork(FORKS)?);
        if round > 0 {
            one.push(a);
            ten.push(b);
        }
    }
    let (one, ten) = (percentile(&mut one, 50), percentile(&mut ten, 50));
    Ok(vec![
        milliseconds("fork to 1, its page open and logged in", one),
        milliseconds(&format!("fork to {FORKS}"), ten),
        limited(&format!("fork to {FORKS}, times fork to 1"), ten.as_secs_f64() / one.as_secs_f64(), FORK_LIMIT),
    ])
}

/// As the browser takes back what it gave.
fn params(cookies: Value) -> Value {
    let known = ["name", "value", "domain", "path", "secure", "httpOnly", "sameSite", "priority", "sourceScheme", "sourcePort"];
    let one = |mut cookie: Value| {
        let members = cookie.as_object_mut().map(std::mem::take).unwrap_or_default();
        Value::Object(members.into_iter().filter(|(name, _)| known.contains(&name.as_str())).collect())
    };
    match cookies {
        Value::Array(cookies) => cookies.into_iter().map(one).collect(),
        other => other,
    }
}

fn milliseconds(what: &str, time: Duration) -> Row {
    Row { what: what.into(), measured: format!("p50 {:.0} ms", time.as_secs_f64() * 1e3), limit: "–".into(), holds: Holds::Unjudged }
}

fn report(rows: &[Row]) -> String {
    format!(
        "## Copies of a logged-in session\n\nWritten by `cargo xtask bench clone`; release build, real browser, {COOKIES} cookies and \
         {ORIGINS} origins that keep something in localStorage and IndexedDB. {}\n\nTimes are of a shared machine and are not judged; \
         ratios, of the same run, are. What origins keep follows in the background; the origin that the first page goes to is there \
         when that page is, which is checked. A fork waits, for at most five seconds, until all origins of its source are read, so that \
         the source may go: that is most of its time here.\n\n{}",
        memory::machine(),
        rows_table(rows)
    )
}

impl Sites {
    fn serve() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut request = BufReader::new(connection);
                    let mut line = String::new();
                    while request.read_line(&mut line).is_ok_and(|read| read > 2) {
                        line.clear();
                    }
                    let body = "<!doctype html><title>site</title><p>A page.";
                    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
                    // A browser that hangs up early is no error of ours.
                    let _ = write!(request.get_mut(), "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                });
            }
        });
        Ok(Self { port })
    }

    /// Each of these names is loopback, and a site of its own.
    fn host(site: usize) -> String {
        format!("s{site}.localhost")
    }

    fn url(&self, site: usize) -> String {
        format!("http://{}:{}/", Self::host(site), self.port)
    }

    fn cookies(&self) -> Vec<Value> {
        let each = COOKIES / ORIGINS;
        let cookie = |at: usize| json!({"name": format!("c{at}"), "value": format!("{:0>40}", at), "domain": Self::host(at / each), "path": "/", "httpOnly": at.is_multiple_of(2)});
        (0..COOKIES).map(cookie).collect()
    }
}

impl Home {
    /// What a command of the operator's prints.
    fn run(&self, arguments: &[&str]) -> Result<Value> {
        let output = self.command(arguments).output()?;
        ensure!(output.status.success(), "tabmux {arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        serde_json::from_slice(&output.stdout).context("--json prints one JSON document")
    }
}
