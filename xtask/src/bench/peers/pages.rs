//! The pages all contenders visit: small, and each one different, so that every answer can be told from its neighbour's.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};

use super::reading::{Orders, Shelf};

const MAX_BODY: usize = 64 * 1024;

/// A server on loopback that answers for as long as the process lives.
pub(super) struct Pages {
    origin: String,
    site: Arc<Site>,
    next_task: AtomicUsize,
}

/// What there is beside the agents' own pages.
#[derive(Default)]
struct Site {
    orders: Orders,
    shelf: Shelf,
}

/// One agent's page at one visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) agent: usize,
    pub(super) visit: usize,
}

impl Pages {
    pub(super) fn serve() -> Result<Self> {
        Self::with(Shelf::default())
    }

    pub(super) fn with(shelf: Shelf) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let origin = format!("http://{}", listener.local_addr()?);
        let site = Arc::new(Site { shelf, ..Site::default() });
        let served = Arc::clone(&site);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let site = Arc::clone(&served);
                // A browser that hangs up early is no error of ours.
                std::thread::spawn(move || answer(connection, &site).ok());
            }
        });
        Ok(Self { origin, site, next_task: AtomicUsize::new(0) })
    }

    pub(super) fn url(&self, page: Page) -> String {
        self.at(&page.path())
    }

    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    pub(super) fn orders(&self) -> &Orders {
        &self.site.orders
    }

    pub(super) fn shelf(&self) -> &Shelf {
        &self.site.shelf
    }

    /// The number of a form that nobody has filled in.
    pub(super) fn next_task(&self) -> usize {
        self.next_task.fetch_add(1, Ordering::Relaxed)
    }
}

impl Page {
    pub(super) fn path(self) -> String {
        format!("/agent-{}/visit-{}.html", self.agent, self.visit)
    }

    fn of(path: &str) -> Option<Self> {
        let (agent, visit) = path.strip_prefix("/agent-")?.strip_suffix(".html")?.split_once("/visit-")?;
        Some(Self { agent: agent.parse().ok()?, visit: visit.parse().ok()? })
    }
}

/// Its title.
impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent-{} visit-{}", self.agent, self.visit)
    }
}

fn answer(connection: TcpStream, site: &Site) -> Result<()> {
    let mut request = BufReader::new(connection);
    loop {
        let mut line = String::new();
        if request.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let (mut header, mut length) = (String::new(), 0);
        while request.read_line(&mut header)? > 2 {
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
            header.clear();
        }
        ensure!(length <= MAX_BODY, "a form is not that long");
        let mut body = vec![0; length];
        request.read_exact(&mut body)?;
        let sent = line.starts_with("POST ").then(|| String::from_utf8_lossy(&body).into_owned());
        let found = line.split(' ').nth(1).and_then(|path| site.get(path, sent.as_deref()));
        let (status, (body, kind)) = found.map_or(("404 Not Found", (Vec::new(), "text/html")), |found| ("200 OK", found));
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nCache-Control: no-store\r\nContent-Length: {length}\r\n\r\n");
        request.get_mut().write_all(&[head.into_bytes(), body].concat())?;
    }
}

impl Site {
    fn get(&self, path: &str, sent: Option<&str>) -> Option<(Vec<u8>, &'static str)> {
        let text = Page::of(path).map(html).or_else(|| self.orders.answer(path, sent));
        text.map(|text| (text.into_bytes(), "text/html")).or_else(|| self.shelf.get(path))
    }
}

fn html(page: Page) -> String {
    let rows: String = (0..20).map(|row| format!("<li><a href=\"#{row}\">row {row} of {page}</a></li>")).collect();
    format!(
        "<!doctype html><title>{page}</title><link rel=icon href=\"data:,\"><h1>{page}</h1>\
         <form><label>Name <input name=name></label><button>Send</button></form><ul>{rows}</ul>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_served_under_its_own_path_and_title() {
        let pages = Pages::serve().unwrap();
        let page = Page { agent: 3, visit: 17 };
        let address = pages.origin.strip_prefix("http://").unwrap();
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", page.path()).as_bytes()).unwrap();
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = String::new();
        connection.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200 OK") && said.contains("<title>agent-3 visit-17</title>"), "{said}");
        assert_eq!(Page::of(&page.path()), Some(page));
        assert_eq!(Page::of("/favicon.ico"), None);
    }
}
