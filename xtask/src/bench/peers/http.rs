//! A small MCP client over streamable HTTP: one connection, one call at a time, answers as JSON or as an event stream.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::bench::client;

/// A server that says on stderr or stdout where it listens.
pub(super) struct HttpServer {
    child: Child,
    address: String,
}

pub(super) struct HttpLine {
    server: Arc<HttpServer>,
    connection: Option<BufReader<TcpStream>>,
    session: Option<String>,
    next_id: u64,
}

/// One HTTP answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    session: Option<String>,
    body: String,
}

impl HttpServer {
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let mut said = BufReader::new(child.stderr.take().context("stderr is piped")?);
        let mut line = String::new();
        let address = loop {
            line.clear();
            if said.read_line(&mut line)? == 0 {
                bail!("the HTTP server ended before it listened");
            }
            if let Some(address) = listening(&line) {
                break address;
            }
        };
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Ok(Self { child, address })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // It has no input whose end would end it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl HttpLine {
    pub(super) fn new(server: Arc<HttpServer>) -> Self {
        Self { server, connection: None, session: None, next_id: 0 }
    }

    pub(super) fn initialize(&mut self) -> Result<()> {
        self.round_trip("initialize", &client::initialize_parameters())?;
        self.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).map(drop)
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.round_trip("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    fn round_trip(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.next_id += 1;
        let answer = self.post(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": parameters}))?;
        if let Some(session) = answer.session {
            self.session = Some(session);
        }
        message(&answer.body, self.next_id).with_context(|| format!("{method}: HTTP {}: {}", answer.status, answer.body))
    }

    fn post(&mut self, message: &Value) -> Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let stream = TcpStream::connect(&self.server.address)?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        let body = message.to_string();
        let session = self.session.as_ref().map(|session| format!("Mcp-Session-Id: {session}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             {session}Content-Length: {}\r\n\r\n",
            self.server.address,
            body.len()
        );
        connection.get_mut().write_all(format!("{head}{body}").as_bytes())?;
        let answer = read_answer(&mut connection)?;
        self.connection = Some(connection);
        if answer.status >= 400 {
            bail!("HTTP {}: {}", answer.status, answer.body);
        }
        Ok(answer)
    }
}

/// `Listening on http://127.0.0.1:8931` → `127.0.0.1:8931`.
fn listening(line: &str) -> Option<String> {
    let (_, address) = line.split_once("http://")?;
    Some(address.trim().trim_end_matches('/').to_owned())
}

fn read_answer(from: &mut impl BufRead) -> Result<Answer> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).with_context(|| format!("no HTTP status in {line:?}"))?;
    let (mut session, mut length, mut chunked) = (None, 0, false);
    loop {
        line.clear();
        if from.read_line(&mut line)? == 0 {
            bail!("the connection ended inside the headers");
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "mcp-session-id" => session = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse()?,
            "transfer-encoding" => chunked = value.trim().eq_ignore_ascii_case("chunked"),
            _ => (),
        }
    }
    let body = if chunked { read_chunks(from)? } else { read_exactly(from, length)? };
    Ok(Answer { status, session, body: String::from_utf8(body)? })
}

fn read_chunks(from: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        from.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16).with_context(|| format!("no chunk size in {size:?}"))?;
        body.extend(read_exactly(from, size)?);
        read_exactly(from, 2)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn read_exactly(from: &mut impl Read, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The message with this id: the body itself, or the data of one of its events.
fn message(body: &str, id: u64) -> Option<Value> {
    let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
    events.chain([body]).filter_map(|text| serde_json::from_str::<Value>(text.trim()).ok()).find(|message| message["id"] == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As @playwright/mcp 0.0.83 sends it, shortened.
    fn plain() -> String {
        let body = "event: message\ndata: {\"result\":{},\"id\":7}\n\n";
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nmcp-session-id: ce37\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    fn chunked() -> String {
        let chunks = ["data: {\"id\":1}\n\nda", "ta: {\"id\":7,\"a\":1}\n", ""].map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len()));
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}", chunks.concat())
    }

    #[test]
    fn answers_are_read_whole_and_leave_the_connection_at_the_next_one() {
        let bytes = [plain(), chunked(), plain()].concat();
        let mut bytes = bytes.as_bytes();
        let answer = read_answer(&mut bytes).unwrap();
        assert_eq!((answer.status, answer.session.as_deref()), (200, Some("ce37")));
        assert_eq!(message(&answer.body, 7).unwrap()["result"], json!({}));
        assert_eq!(message(&answer.body, 8), None);
        assert_eq!(message(&read_answer(&mut bytes).unwrap().body, 7).unwrap()["a"], 1);
        assert_eq!(read_answer(&mut bytes).unwrap(), answer);
        assert!(bytes.is_empty());
    }

    #[test]
    fn the_address_is_read_from_what_the_server_says() {
        assert_eq!(listening("Listening on http://127.0.0.1:8931\n").as_deref(), Some("127.0.0.1:8931"));
        assert_eq!(listening("Put this in your client config:\n"), None);
    }
}
