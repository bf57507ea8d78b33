//! A small site of the test's own, and short words for what the tests here do with pages and processes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::support::{Lab, Mcp, SOON, process, until};

/// Serves a page for every path until the test ends, and remembers what was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
    /// Whether the last byte of `/big` may be sent.
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Site {
    pub(crate) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let site = Self { url: format!("http://{}", listener.local_addr().unwrap()), asked: Arc::default(), gate: Arc::default() };
        let serving = site.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let site = serving.clone();
                std::thread::spawn(move || site.answer(stream));
            }
        });
        site
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// The same under another name of this machine: another origin.
    pub(crate) fn of(&self, host: &str, path: &str) -> String {
        format!("{}{path}", self.url.replace("127.0.0.1", host))
    }

    /// `/big` may be sent whole.
    pub(crate) fn let_go(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }

    pub(crate) fn await_visit(&self, path: &str) {
        until(&format!("{path} is asked for"), SOON, || self.asked.lock().unwrap().iter().any(|asked| asked == path).then_some(()));
    }

    fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let mut request = Vec::new();
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut chunk = [0; 4096];
            let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
            request.extend_from_slice(&chunk[..read]);
        }
        let request = String::from_utf8_lossy(&request);
        let path = request.split(' ').nth(1)?.to_owned();
        let sent = request.lines().find_map(|line| line.strip_prefix("Cookie: ")).unwrap_or_default();
        if path == "/big" {
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100000000\r\n\r\n").ok()?;
            (0..99).try_for_each(|_| stream.write_all(&[b'x'; 1_000_000]).ok())?;
            stream.write_all(&[b'x'; 999_999]).ok()?;
            drop(self.gate.1.wait_while(self.gate.0.lock().unwrap(), |open| !*open).unwrap());
            return stream.write_all(b"x").ok();
        }
        let page = format!("<!doctype html><title>{path}</title><h1>The page {path}</h1><pre>{sent}</pre>");
        let cookie = if path == "/login" { "Set-Cookie: sid=s1; HttpOnly; Path=/\r\n" } else { "" };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{cookie}Connection: close\r\nContent-Length: ");
        stream.write_all(format!("{head}{}\r\n\r\n{page}", page.len()).as_bytes()).ok()?;
        self.asked.lock().unwrap().push(path);
        Some(())
    }
}

pub(crate) fn eval(client: &Mcp, script: &str) -> Value {
    client.ok("evaluate", &json!({"script": script})).result()["value"].clone()
}

/// The one browser and its keeper.
pub(crate) fn browser_and_keeper(lab: &Lab) -> (u32, u32) {
    let browsers = lab.status()["browsers"].clone();
    assert_eq!(browsers.as_array().map(Vec::len), Some(1), "{browsers}");
    let pid = |key: &str| u32::try_from(browsers[0][key].as_u64().unwrap()).unwrap();
    (pid("pid"), pid("keeper_pid"))
}

/// A call that is on its way when its daemon dies is told so; who asks once it is dead is served by the next one.
pub(crate) fn kill(pid: u32) {
    process::kill(pid);
    until("it is dead", SOON, || (!process::is_alive(pid)).then_some(()));
}

/// The processes that draw this browser's pages.
pub(crate) fn renderers(browser: u32) -> Vec<u32> {
    process::below(browser).into_iter().filter(|pid| process::command_line(*pid).contains("--type=renderer")).collect()
}
