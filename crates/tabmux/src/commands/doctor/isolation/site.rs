//! The canaries' web site: a server on a free loopback port, which remembers who asked for what. What a browser
//! keeps (its cache, its logins) shows in the requests that do not come.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// For reading a request and writing its answer.
const EXCHANGE: Duration = Duration::from_secs(5);
/// For a request that must come.
const ARRIVAL: Duration = Duration::from_secs(10);
const MAX_REQUEST_BYTES: usize = 64 * 1024;
/// Connections at once; a browser opens six to one host.
const MAX_CONNECTIONS: usize = 64;

pub(super) struct Site {
    address: SocketAddr,
    visits: Arc<Visits>,
}

/// Who came with a login and who without, by path.
#[derive(Default)]
struct Visits {
    book: Mutex<Book>,
    arrived: Condvar,
}

#[derive(Default)]
struct Book {
    paths: HashMap<String, Vec<Login>>,
    connections: usize,
    closed: bool,
}

/// Whether a request carried one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Login {
    Shown,
    Absent,
}

struct Request {
    path: String,
    cookies: String,
    login: Login,
}

impl Site {
    pub(super) fn open() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let visits = Arc::<Visits>::default();
        let book = Arc::clone(&visits);
        std::thread::Builder::new().name("site".into()).spawn(move || serve(&listener, &book))?;
        Ok(Self { address, visits })
    }

    pub(super) fn home(&self) -> String {
        self.url("/home")
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The same with a name and a password in front.
    pub(super) fn url_with_login(&self, path: &str, name: &str) -> String {
        format!("http://{name}:secret@{}{path}", self.address)
    }

    pub(super) fn visits(&self, path: &str) -> Vec<Login> {
        self.visits.book().paths.get(path).cloned().unwrap_or_default()
    }

    /// Waits until somebody has asked for the path; `false` when nobody does.
    pub(super) fn is_visited(&self, path: &str) -> bool {
        let waited = self.visits.arrived.wait_timeout_while(self.visits.book(), ARRIVAL, |book| !book.paths.contains_key(path));
        waited.is_ok_and(|(book, _)| book.paths.contains_key(path))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.visits.book().closed = true;
        // Wakes the listener.
        TcpStream::connect_timeout(&self.address, EXCHANGE).ok();
    }
}

impl Visits {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) -> bool {
        let mut book = self.book();
        let free = book.connections < MAX_CONNECTIONS;
        book.connections += usize::from(free);
        free
    }
}

fn serve(listener: &TcpListener, visits: &Arc<Visits>) {
    for stream in listener.incoming() {
        if visits.book().closed {
            return;
        }
        let Ok(stream) = stream else { continue };
        if !visits.enter() {
            continue;
        }
        let visitor = Arc::clone(visits);
        let answered = std::thread::Builder::new().name("visit".into()).spawn(move || {
            // A browser that hangs up early has got what it wanted.
            answer(stream, &visitor).ok();
            visitor.book().connections -= 1;
        });
        if answered.is_err() {
            visits.book().connections -= 1;
        }
    }
}

fn answer(mut stream: TcpStream, visits: &Visits) -> io::Result<()> {
    stream.set_read_timeout(Some(EXCHANGE))?;
    stream.set_write_timeout(Some(EXCHANGE))?;
    let Some(request) = Request::read(&mut stream)? else { return Ok(()) };
    visits.book().paths.entry(request.path.clone()).or_default().push(request.login);
    visits.arrived.notify_all();
    let (head, body) = page(&request);
    let answer = format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes())
}

impl Request {
    fn read(stream: &mut TcpStream) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut chunk = [0; 4096];
            let read = stream.read(&mut chunk)?;
            bytes.extend_from_slice(&chunk[..read]);
            if read == 0 || bytes.len() > MAX_REQUEST_BYTES {
                return Ok(None);
            }
        }
        Ok(Self::parse(&String::from_utf8_lossy(&bytes)))
    }

    fn parse(text: &str) -> Option<Self> {
        let path = text.split(' ').nth(1)?.to_owned();
        let header = |wanted: &str| {
            let fields = text.lines().filter_map(|line| line.split_once(':'));
            fields.filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim().to_owned()).next()
        };
        let login = if header("authorization").is_some() { Login::Shown } else { Login::Absent };
        Some(Self { path, cookies: header("cookie").unwrap_or_default(), login })
    }
}

/// Status and headers, and the body. The first part of a path says what is wanted, the second is the canary's mark.
fn page(request: &Request) -> (String, String) {
    let mut parts = request.path.trim_start_matches('/').split(['/', '?']);
    let (kind, mark) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let plain = "Content-Type: text/plain\r\nCache-Control: no-store";
    let script = "200 OK\r\nContent-Type: text/javascript\r\nCache-Control: no-store".to_owned();
    match kind {
        "cookie" => (format!("200 OK\r\n{plain}\r\nSet-Cookie: {mark}=1; Path=/; HttpOnly"), String::new()),
        "cookies" => (format!("200 OK\r\n{plain}"), request.cookies.clone()),
        "cached" => ("200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=3600".to_owned(), mark.to_owned()),
        "auth" if request.login == Login::Absent => {
            (format!("401 Unauthorized\r\n{plain}\r\nWWW-Authenticate: Basic realm=\"{mark}\""), "who are you?".to_owned())
        }
        "auth" | "scope" => (format!("200 OK\r\n{plain}"), "from the server".to_owned()),
        "download" => (format!("200 OK\r\n{plain}\r\nContent-Disposition: attachment; filename=\"{mark}.txt\""), mark.to_owned()),
        "service-worker.js" => (script, SERVICE_WORKER.to_owned()),
        "shared-worker.js" => (script, SHARED_WORKER.to_owned()),
        _ => {
            let html = "200 OK\r\nContent-Type: text/html\r\nCache-Control: no-store".to_owned();
            (html, format!("<!doctype html><meta charset=utf-8><title>{kind}</title><h1>{kind}</h1>"))
        }
    }
}

/// Answers every request in its scope itself.
const SERVICE_WORKER: &str = "
addEventListener('install', () => skipWaiting());
addEventListener('fetch', event => event.respondWith(new Response('from the worker')));
";

/// Keeps what it is told, and says all of it.
const SHARED_WORKER: &str = "
const told = [];
onconnect = ({ports: [port]}) => {
  port.onmessage = ({data}) => { if (data) told.push(data); port.postMessage(told); };
};
";

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(site: &Site, request: &str) -> String {
        let mut stream = TcpStream::connect(site.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn it_remembers_who_came_with_a_login_and_who_without() {
        let site = Site::open().unwrap();
        assert!(ask(&site, "GET /auth/m/x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 401 "));
        assert!(ask(&site, "GET /auth/m/x HTTP/1.1\r\nauthorization: Basic eA==\r\n\r\n").starts_with("HTTP/1.1 200 "));
        assert_eq!(site.visits("/auth/m/x"), [Login::Absent, Login::Shown]);
        assert!(site.is_visited("/auth/m/x") && site.visits("/auth/m").is_empty());
    }

    #[test]
    fn it_says_the_cookies_it_was_sent_and_survives_nonsense() {
        let site = Site::open().unwrap();
        assert!(ask(&site, "GET /cookies HTTP/1.1\r\nCookie: a=1\r\n\r\n").ends_with("\r\n\r\na=1"));
        assert_eq!(ask(&site, "\r\n\r\n"), "");
        assert!(ask(&site, "GET /home HTTP/1.1\r\n\r\n").contains("<h1>home</h1>"));
    }
}
