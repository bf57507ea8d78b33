//! A web server of the test's own on loopback: every path is a page, and what was asked for is remembered.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

/// A whole answer, head and body.
pub type Answer = Vec<u8>;

impl Site {
    /// Every path is the HTML that `page` gives for it.
    pub fn start(page: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::answering(move |path| html(&page(path)))
    }

    /// Every path is what `answer` gives for it.
    pub fn answering(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        Self::hearing(move |path, _| answer(path))
    }

    /// Also what the browser says of itself, headers and all, decides the answer.
    pub fn hearing(answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, answer) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(answer));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                std::thread::spawn(move || serve(stream, &*answer, &log));
            }
        });
        Self { address, asked }
    }

    pub fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The paths asked for since the last time, without the icons that browsers ask for by themselves.
    pub fn asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.into_iter().filter(|path| path != "/favicon.ico").collect()
    }
}

fn serve(mut stream: TcpStream, answer: &(dyn Fn(&str, &str) -> Answer + Send + Sync), log: &Mutex<Vec<String>>) -> Option<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&chunk[..read]);
    }
    let request = String::from_utf8_lossy(&request);
    let path = request.split(' ').nth(1)?;
    log.lock().unwrap().push(path.to_owned());
    stream.write_all(&answer(path, &request)).ok()
}

pub fn html(body: &str) -> Answer {
    with("200 OK", "text/html; charset=utf-8", "", body)
}

/// An answer of any kind; `more` are further header lines, each with its end.
pub fn with(status: &str, kind: &str, more: &str, body: &str) -> Answer {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Connection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body.as_bytes()].concat()
}
