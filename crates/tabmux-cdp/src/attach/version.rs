//! Asks what listens at an address which browser it is: one `GET /json/version`, small enough to be written out here.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::{Address, AttachError, Consent, knock};

/// More than any browser says about itself.
const MAX_ANSWER: usize = 64 * 1024;

pub(super) enum Answer {
    Browser {
        url: String,
    },
    /// A browser that keeps its address to itself, since its user is asked first.
    Withheld,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    web_socket_debugger_url: String,
}

pub(super) fn ask(address: &Address, base: &str, limit: Duration) -> Result<Answer, AttachError> {
    let other = |why: String| AttachError::NotABrowser { address: address.clone(), why };
    let (mut status, mut body) = exchange(address, base, &address.to_string(), limit)?;
    // Chromium serves nobody who names it by anything but an IP address or localhost, against rebinding pages.
    if status == 500 && address.host.parse::<std::net::IpAddr>().is_err() {
        let peer = knock(address)?.peer_addr().map_err(|error| other(error.to_string()))?;
        (status, body) = exchange(address, base, &peer.to_string(), limit)?;
    }
    match status {
        200 => match serde_json::from_slice::<Version>(&body) {
            Ok(version) => Ok(Answer::Browser { url: version.web_socket_debugger_url }),
            Err(_) => Err(other("its /json/version names no webSocketDebuggerUrl".into())),
        },
        404 => Ok(Answer::Withheld),
        status => Err(other(format!("it answered /json/version with HTTP status {status}"))),
    }
}

fn exchange(address: &Address, base: &str, host: &str, limit: Duration) -> Result<(u16, Vec<u8>), AttachError> {
    let other = |why: String| AttachError::NotABrowser { address: address.clone(), why };
    // Slow is not gone: whoever has pages there finds them when it answers.
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            AttachError::Late { url: address.to_string(), seconds: limit.as_secs(), consent: Consent::NotNeeded }
        }
        _ => other(error.to_string()),
    };
    let mut stream = knock(address)?;
    let deadline = Instant::now() + limit;
    let request = format!("GET {base}/json/version HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.set_write_timeout(Some(limit)).and_then(|()| stream.write_all(request.as_bytes())).map_err(failed)?;
    read_answer(&mut stream, deadline).map_err(failed)?.ok_or_else(|| other("it speaks no HTTP".into()))
}

/// Status and body; `None` for what is no HTTP. Chromium leaves the connection open, so the length that was announced counts.
fn read_answer(stream: &mut TcpStream, deadline: Instant) -> std::io::Result<Option<(u16, Vec<u8>)>> {
    let mut answer = Vec::new();
    loop {
        if let Some(parsed) = parse(&answer, End::Open) {
            return Ok(Some(parsed));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || answer.len() > MAX_ANSWER {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk)? {
            0 => return Ok(parse(&answer, End::Closed)),
            read => answer.extend_from_slice(&chunk[..read]),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Closed,
}

fn parse(answer: &[u8], end: End) -> Option<(u16, Vec<u8>)> {
    let split = memchr::memmem::find(answer, b"\r\n\r\n")?;
    let (head, body) = (std::str::from_utf8(&answer[..split]).ok()?, &answer[split + 4..]);
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let whole = length.map_or(end == End::Closed, |length| body.len() >= length);
    whole.then(|| (status, body[..length.unwrap_or(body.len())].to_vec()))
}
