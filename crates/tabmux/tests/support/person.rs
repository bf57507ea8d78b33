//! A person's own browser, with pages of theirs in it, and what they notice: a page that loses the focus or is hidden
//! says so to the person's site. Also a gate in front of its port, which counts who comes and can keep them waiting.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::Value;

use super::display::Display;
use super::{SOON, until};

/// A full Chromium that was started by hand.
pub struct Person {
    child: Child,
    profile: PathBuf,
    pub port: u16,
    pub url: String,
    pub site: Site,
    _display: Option<Display>,
    _directory: tempfile::TempDir,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Headless,
    /// With windows, on a display of its own.
    Windows,
}

impl Person {
    pub fn new(shown: Shown) -> Self {
        let directory = tempfile::Builder::new().prefix("person").tempdir_in("/tmp").unwrap();
        let profile = directory.path().join("profile");
        Self::start(shown, &profile, directory)
    }

    /// Where `auto` looks for it.
    pub fn at_home(home: &Path, browser: &str) -> Self {
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        Self::start(Shown::Headless, &home.join(".config").join(browser), directory)
    }

    fn start(shown: Shown, profile: &Path, directory: tempfile::TempDir) -> Self {
        let display = (shown == Shown::Windows).then(Display::new);
        let site = Site::new();
        std::fs::create_dir_all(profile).unwrap();
        let said = profile.join("DevToolsActivePort");
        std::fs::remove_file(&said).ok();
        let mut command = Command::new("/usr/lib/chromium/chromium");
        command.args(["--remote-debugging-port=0", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--password-store=basic"]);
        command.arg(format!("--user-data-dir={}", profile.display())).arg(site.page("first"));
        // Its user kills it, and then it removes nothing itself.
        command.env("TMPDIR", directory.path());
        match &display {
            Some(display) => command.env("DISPLAY", &display.name),
            None => command.arg("--headless=new"),
        };
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the package chromium");
        let (port, path) = until("the browser listens", SOON, || {
            let text = std::fs::read_to_string(&said).ok()?;
            let (port, path) = text.split_once('\n')?;
            Some((port.parse::<u16>().ok()?, path.trim().to_owned()))
        });
        let url = format!("ws://127.0.0.1:{port}{path}");
        let person = Self { child, profile: profile.to_owned(), port, url, site, _display: display, _directory: directory };
        until("their first page is there", SOON, || (person.pages().len() == 1).then_some(()));
        person
    }

    /// Opens a tab of theirs, which they then look at.
    pub fn open(&self, name: &str) -> String {
        let target = self.ask("PUT", &format!("/json/new?{}", self.site.page(name))).expect("their browser runs");
        until("their page has loaded", SOON, || self.site.seen().contains(&format!("/loaded-{name}")).then_some(()));
        target["id"].as_str().unwrap().to_owned()
    }

    /// Ids and addresses of every page in their browser.
    pub fn pages(&self) -> Vec<(String, String)> {
        let Some(list) = self.ask("GET", "/json/list") else { return Vec::new() };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pages = list.as_array().unwrap().iter().filter(|target| target["type"] == "page");
        let mut pages: Vec<_> = pages.map(|target| (text(&target["id"]), text(&target["url"]))).collect();
        pages.sort();
        pages
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The browser is closed by its user; gives its profile.
    pub fn quit(&mut self) -> PathBuf {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.profile.clone()
    }

    /// Asks the browser itself, as a person with `curl` would. It leaves connections open, so its word of the length counts.
    fn ask(&self, method: &str, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.write_all(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).ok()?;
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line).ok()?;
            match line.trim_end().to_ascii_lowercase().split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().unwrap(),
                _ if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        answer.read_exact(&mut body).ok()?;
        Some(serde_json::from_slice(&body).unwrap())
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // Gone already is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A site whose pages tell when they have loaded, and when they are no longer looked at.
pub struct Site {
    pub base: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                std::thread::spawn(move || answer(stream, &log));
            }
        });
        Self { base, seen }
    }

    pub fn page(&self, name: &str) -> String {
        format!("{}/page-{name}", self.base)
    }

    /// Every path that was asked for, in order.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, log: &Mutex<Vec<String>>) -> Option<()> {
    let head = read_head(&mut stream)?;
    let path = head.split(' ').nth(1)?.to_owned();
    log.lock().unwrap().push(path.clone());
    let name = path.strip_prefix("/page-").unwrap_or_default();
    let page = format!(
        "<!doctype html><title>{path}</title><h1>The page {path}</h1><script>
        addEventListener('load', () => fetch('/loaded-{name}'));
        addEventListener('blur', () => fetch('/blurred-{name}'));
        document.addEventListener('visibilitychange', () => fetch('/' + document.visibilityState + '-{name}'));
        </script>"
    );
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: ";
    stream.write_all(format!("{head}{}\r\n\r\n{page}", page.len()).as_bytes()).ok()
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&chunk[..read]);
    }
    Some(String::from_utf8_lossy(&request).into_owned())
}

/// Stands in front of a browser's port. An everyday browser's gate says nothing of the browser and asks before it opens.
pub struct Gate {
    pub port: u16,
    websockets: Arc<AtomicUsize>,
    passing: Arc<Mutex<Vec<TcpStream>>>,
    consent: Arc<(Mutex<Option<Said>>, Condvar)>,
    heard: Arc<Mutex<Vec<Heard>>>,
}

/// What one connection brought to the browser.
type Heard = Arc<Mutex<Vec<u8>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Allow,
    Cancel,
}

impl Gate {
    /// Lets everybody through.
    pub fn open(to: u16) -> Self {
        Self::new(to, Some(Said::Allow))
    }

    /// Asks first.
    pub fn asking(to: u16) -> Self {
        Self::new(to, None)
    }

    fn new(to: u16, said: Option<Said>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let everyday = said.is_none();
        let (websockets, consent) = (Arc::<AtomicUsize>::default(), Arc::new((Mutex::new(said), Condvar::new())));
        let passing = Arc::<Mutex<Vec<TcpStream>>>::default();
        let all_heard = Arc::<Mutex<Vec<Heard>>>::default();
        let gate = Self {
            port,
            websockets: Arc::clone(&websockets),
            passing: Arc::clone(&passing),
            consent: Arc::clone(&consent),
            heard: Arc::clone(&all_heard),
        };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                passing.lock().unwrap().push(stream.try_clone().unwrap());
                let (websockets, consent, heard) = (Arc::clone(&websockets), Arc::clone(&consent), Heard::default());
                all_heard.lock().unwrap().push(Arc::clone(&heard));
                std::thread::spawn(move || pass(stream, to, everyday, &websockets, &consent, &heard));
            }
        });
        gate
    }

    /// How many WebSockets came so far.
    pub fn websockets(&self) -> usize {
        self.websockets.load(Ordering::SeqCst)
    }

    /// Every CDP message that was sent to the browser.
    pub fn messages(&self) -> Vec<Value> {
        self.heard.lock().unwrap().iter().flat_map(|heard| messages(&heard.lock().unwrap())).collect()
    }

    /// Breaks every connection that goes through it.
    pub fn cut(&self) {
        for stream in self.passing.lock().unwrap().drain(..) {
            // Closed already is as good.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn say(&self, said: Said) {
        *self.consent.0.lock().unwrap() = Some(said);
        self.consent.1.notify_all();
    }
}

/// What a client's WebSocket frames say; those it sends are masked, and whole.
fn messages(mut bytes: &[u8]) -> Vec<Value> {
    let mut messages = Vec::new();
    while let [head, length, rest @ ..] = bytes {
        let (length, rest) = match length & 0x7f {
            126 => (usize::from(u16::from_be_bytes(rest[..2].try_into().unwrap())), &rest[2..]),
            127 => (usize::try_from(u64::from_be_bytes(rest[..8].try_into().unwrap())).unwrap(), &rest[8..]),
            short => (usize::from(short), rest),
        };
        let Some((mask, rest)) = rest.split_first_chunk::<4>() else { break };
        let Some((masked, rest)) = rest.split_at_checked(length) else { break };
        let text: Vec<u8> = masked.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        if head & 0x0f == 1 {
            messages.push(serde_json::from_slice(&text).unwrap());
        }
        bytes = rest;
    }
    messages
}

fn pass(
    mut client: TcpStream,
    to: u16,
    everyday: bool,
    websockets: &AtomicUsize,
    consent: &(Mutex<Option<Said>>, Condvar),
    heard: &Heard,
) -> Option<()> {
    let head = read_head(&mut client)?;
    let is_websocket = head.to_ascii_lowercase().contains("upgrade: websocket");
    if is_websocket {
        websockets.fetch_add(1, Ordering::SeqCst);
        let said = *consent.1.wait_while(consent.0.lock().unwrap(), |said| said.is_none()).unwrap();
        if said == Some(Said::Cancel) {
            return client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").ok();
        }
    } else if everyday {
        return client.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").ok();
    }
    let mut browser = TcpStream::connect(("127.0.0.1", to)).ok()?;
    browser.write_all(head.as_bytes()).ok()?;
    let (mut from, mut into) = (browser.try_clone().ok()?, client.try_clone().ok()?);
    std::thread::spawn(move || {
        std::io::copy(&mut from, &mut into).ok();
        into.shutdown(Shutdown::Both).ok();
    });
    let mut part = [0; 1 << 16];
    while let Ok(count @ 1..) = client.read(&mut part) {
        if is_websocket {
            heard.lock().unwrap().extend_from_slice(&part[..count]);
        }
        if browser.write_all(&part[..count]).is_err() {
            break;
        }
    }
    browser.shutdown(Shutdown::Both).ok()
}
