//! A small HTTP/1.1 client for the daemon's door: one request per connection, every read with a deadline. It
//! can send what a good client would not (wrong Host, no token, no content type).

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::SOON;

#[derive(Clone, Debug)]
pub struct Http {
    pub port: u16,
    pub token: String,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Http {
    pub fn new(port: u16, token: &str) -> Self {
        Self { port, token: token.to_owned() }
    }

    /// A JSON POST with the token and further headers; a header given here replaces the usual one, an empty value leaves it out.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.request("POST", path, headers, body.to_string().as_bytes())
    }

    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.request("GET", path, headers, b"")
    }

    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_request(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub fn try_request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> std::io::Result<Answer> {
        let mut all = vec![
            ("Host".to_owned(), format!("127.0.0.1:{}", self.port)),
            ("Authorization".to_owned(), format!("Bearer {}", self.token)),
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
            ("Content-Length".to_owned(), body.len().to_string()),
            ("Connection".to_owned(), "close".to_owned()),
        ];
        for (name, value) in headers {
            all.retain(|(present, _)| !present.eq_ignore_ascii_case(name));
            all.push(((*name).to_owned(), (*value).to_owned()));
        }
        let lines: String = all.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(SOON))?;
        stream.set_write_timeout(Some(SOON))?;
        stream.write_all(format!("{method} {path} HTTP/1.1\r\n{lines}\r\n").as_bytes())?;
        // The daemon may answer and hang up before it has read a body it will not take.
        let _ = stream.write_all(body);
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            Err(error) if bytes.is_empty() => return Err(error),
            _ => {}
        }
        parse(&bytes).ok_or_else(|| std::io::Error::other(format!("no HTTP answer: {}", String::from_utf8_lossy(&bytes))))
    }

    /// MCP `initialize` of the old era; gives the `mcp-session-id`.
    pub fn initialize(&self, path: &str) -> String {
        let parameters = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "0"}});
        let answer = self.post(path, &[], &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": parameters}));
        assert_eq!(answer.status, 200, "{answer:?}");
        let session = answer.header("mcp-session-id").unwrap_or_else(|| panic!("an mcp-session-id: {answer:?}")).to_owned();
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let noted = self.post(path, &[("mcp-session-id", &session), ("mcp-protocol-version", "2025-11-25")], &note);
        assert_eq!(noted.status, 202, "{noted:?}");
        session
    }

    /// A tool call of the old era.
    pub fn call(&self, path: &str, session: &str, tool: &str, arguments: &Value) -> super::Reply {
        let headers = [("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")];
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let answer = self.post(path, &headers, &body);
        assert_eq!(answer.status, 200, "{tool}: {answer:?}");
        super::Reply(answer.message())
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(present, _)| present.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("a JSON body: {error}: {self:?}"))
    }

    /// The JSON-RPC reply, from a plain body or from an event stream.
    pub fn message(&self) -> Value {
        if !self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return self.json();
        }
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut messages = events.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
        messages.rfind(|message| message.get("id").is_some()).unwrap_or_else(|| panic!("a reply in the stream: {self:?}"))
    }
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let split = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..split]).ok()?;
    let mut lines = head.lines();
    let status = lines.next()?.split_whitespace().nth(1)?.parse().ok()?;
    let headers: Vec<_> =
        lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
    let chunked =
        headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked"));
    let body = &bytes[split + 4..];
    let body = if chunked { unchunk(body) } else { body.to_vec() };
    Some(Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(line_end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line_end]).ok().and_then(|text| usize::from_str_radix(text.trim(), 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else { break };
        let chunk = &rest[line_end + 2..];
        body.extend_from_slice(&chunk[..size.min(chunk.len())]);
        rest = chunk.get(size + 2..).unwrap_or_default();
    }
    body
}
