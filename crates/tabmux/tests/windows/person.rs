//! The person at the browser, played by an extension of the test's: it asks a small server of the test's what to do next,
//! and does it with the hands that people have: windows, tabs, dragging, closing.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{SOON, until};

/// Chromium ends a worker that waits for anything for half a minute.
const AWAKE: Duration = Duration::from_secs(5);

const MANIFEST: &str = r#"{"manifest_version":3,"name":"a person","version":"1","permissions":["tabs"],
    "host_permissions":["http://127.0.0.1/*"],"background":{"service_worker":"hands.js"}}"#;

const HANDS: &str = r#"
const tabAt = async (url) => (await chrome.tabs.query({})).find((tab) => (tab.pendingUrl ?? tab.url).endsWith(url));
const does = {
  window: async ({ url }) => (await chrome.windows.create({ url, focused: true })).id,
  // Windows with the paths of their tabs, in order.
  windows: async () => (await chrome.windows.getAll({ populate: true })).map(({ id, type, left, top, width, height, tabs }) =>
    ({ id, type, bounds: [left, top, width, height], tabs: tabs.map((tab) => tab.pendingUrl || tab.url) })),
  drag: async ({ url, beside }) => {
    const [tab, target] = [await tabAt(url), await tabAt(beside)];
    await chrome.tabs.move(tab.id, { windowId: target.windowId, index: -1 });
  },
  tear: async ({ url }) => { await chrome.windows.create({ tabId: (await tabAt(url)).id }); },
  close: async ({ url }) => { await chrome.tabs.remove((await tabAt(url)).id); },
  closeWindow: async ({ url }) => { await chrome.windows.remove((await tabAt(url)).windowId); },
  tab: async ({ url, beside }) => { await chrome.tabs.create({ url, windowId: (await tabAt(beside)).windowId }); },
  active: async () => (await chrome.tabs.query({ active: true, lastFocusedWindow: true })).map((tab) => tab.pendingUrl || tab.url),
};
(async () => {
  for (;;) {
    const order = await (await fetch("SERVER/next")).json();
    await chrome.runtime.getPlatformInfo();
    if (order.what === "nothing") continue;
    let done;
    try { done = { value: (await does[order.what](order)) ?? null }; } catch (error) { done = { error: String(error) }; }
    await fetch("SERVER/done", { method: "POST", body: JSON.stringify(done) });
  }
})();
"#;

pub(crate) struct Person {
    orders: Sender<Value>,
    done: Mutex<Receiver<Value>>,
}

impl Person {
    /// The person, and the browser's argument that seats them before it.
    pub(crate) fn new(place: &Path) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let extension = place.join("person");
        fs::create_dir_all(&extension).unwrap();
        fs::write(extension.join("manifest.json"), MANIFEST).unwrap();
        fs::write(extension.join("hands.js"), HANDS.replace("SERVER", &server)).unwrap();
        let ((orders, ordered), (finished, done)) = (channel(), channel());
        std::thread::spawn(move || {
            let ordered = Arc::new(Mutex::new(ordered));
            for stream in listener.incoming().flatten() {
                let (ordered, finished) = (Arc::clone(&ordered), finished.clone());
                std::thread::spawn(move || serve(stream, &ordered, &finished));
            }
        });
        (Self { orders, done: Mutex::new(done) }, format!("--load-extension={}", extension.display()))
    }

    fn asked(&self, order: &Value) -> Value {
        self.orders.send(order.clone()).unwrap();
        let done = self.done.lock().unwrap().recv_timeout(SOON).unwrap_or_else(|_| panic!("the person does {order}"));
        assert!(done.get("error").is_none(), "{order}: {done}");
        done["value"].clone()
    }

    pub(crate) fn opens_window(&self, url: &str) {
        self.asked(&json!({"what": "window", "url": url}));
    }

    pub(crate) fn opens_tab(&self, url: &str, beside: &str) {
        self.asked(&json!({"what": "tab", "url": url, "beside": beside}));
    }

    /// Drags the tab at `url` into the window of the one at `beside`; both by the ends of their addresses.
    pub(crate) fn drags(&self, url: &str, beside: &str) {
        self.asked(&json!({"what": "drag", "url": url, "beside": beside}));
    }

    /// Drags a tab out into a window of its own.
    pub(crate) fn tears_off(&self, url: &str) {
        self.asked(&json!({"what": "tear", "url": url}));
    }

    pub(crate) fn closes(&self, url: &str) {
        self.asked(&json!({"what": "close", "url": url}));
    }

    pub(crate) fn closes_window_of(&self, url: &str) {
        self.asked(&json!({"what": "closeWindow", "url": url}));
        until("the window is closed", SOON, || self.find_window(url).is_none().then_some(()));
    }

    /// What the person looks at.
    pub(crate) fn looks_at(&self) -> Value {
        self.asked(&json!({"what": "active"}))
    }

    /// Every window there is: `{id, type, bounds, tabs}`.
    pub(crate) fn windows(&self) -> Vec<Value> {
        self.asked(&json!({"what": "windows"})).as_array().unwrap().clone()
    }

    /// The window in which a tab is at this address.
    pub(crate) fn window_of(&self, url: &str) -> Value {
        self.find_window(url).unwrap_or_else(|| panic!("{url} is in a window: {:?}", self.windows()))
    }

    pub(crate) fn find_window(&self, url: &str) -> Option<Value> {
        let has = |window: &Value| window["tabs"].as_array().unwrap().iter().any(|tab| tab.as_str().unwrap().ends_with(url));
        self.windows().into_iter().find(has)
    }
}

fn serve(mut stream: TcpStream, ordered: &Mutex<Receiver<Value>>, finished: &Sender<Value>) -> Option<()> {
    let mut request = Vec::new();
    let (head, length) = loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&chunk[..read]);
        let Some(end) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&request[..end]).to_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok()).unwrap_or(0);
        break (end + 4, length);
    };
    while request.len() < head + length {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&chunk[..read]);
    }
    let body = if request.starts_with(b"POST /done") {
        finished.send(serde_json::from_slice(&request[head..]).ok()?).ok()?;
        "{}".to_owned()
    } else {
        match ordered.lock().ok()?.recv_timeout(AWAKE) {
            Ok(order) => order.to_string(),
            Err(RecvTimeoutError::Timeout) => json!({"what": "nothing"}).to_string(),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    };
    let headers = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ";
    stream.write_all(format!("{headers}{}\r\n\r\n{body}", body.len()).as_bytes()).ok()
}
