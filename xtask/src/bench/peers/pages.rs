//! The pages all contenders visit: small, and each one different, so that every answer can be told from its neighbour's.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::Result;

/// A server on loopback that answers for as long as the process lives.
pub(super) struct Pages {
    origin: String,
}

/// One agent's page at one visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) agent: usize,
    pub(super) visit: usize,
}

impl Pages {
    pub(super) fn serve() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let origin = format!("http://{}", listener.local_addr()?);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // A browser that hangs up early is no error of ours.
                std::thread::spawn(move || answer(connection).ok());
            }
        });
        Ok(Self { origin })
    }

    pub(super) fn url(&self, page: Page) -> String {
        format!("{}{}", self.origin, page.path())
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

fn answer(connection: TcpStream) -> Result<()> {
    let mut request = BufReader::new(connection);
    loop {
        let mut line = String::new();
        if request.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut header = String::new();
        while request.read_line(&mut header)? > 2 {
            header.clear();
        }
        let page = line.split(' ').nth(1).and_then(Page::of);
        let (status, body) = page.map_or(("404 Not Found", String::new()), |page| ("200 OK", html(page)));
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n", body.len());
        request.get_mut().write_all(format!("{head}{body}").as_bytes())?;
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
    use std::io::Read;

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
