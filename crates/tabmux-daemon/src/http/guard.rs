//! What every request must pass, whatever its path: `Host` against DNS rebinding, `Origin` against web pages,
//! and a bearer token in the header. Nothing here ever answers with a CORS header, so no page can read an answer.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tabmux_core::{Code, Fault};
use tokio::time::Instant;

use super::Behind;
use super::refusal::Refusal;
use crate::tokens::TokenHolder;

const FAILURES: usize = 10;
const FAILURE_WINDOW: Duration = Duration::from_secs(10);

/// Remembers wrong tokens, so that guessing is slow. A right token is never held up.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<VecDeque<Instant>>);

/// The checks that need no token. `local` is the address the request came in at.
pub(super) fn check_source(head: &Parts, local: SocketAddr) -> Result<(), Refusal> {
    check_host(head, local)?;
    check_origin(&head.headers, local)?;
    if head.method == Method::OPTIONS {
        let message = "OPTIONS is not answered: no web page may call tabmux.";
        let hint = "Call from a program, with the token in the Authorization header.";
        return Err(
            Refusal::with_status(StatusCode::METHOD_NOT_ALLOWED, Code::Unsupported, message, hint).header("allow", "GET, POST, DELETE")
        );
    }
    check_query(head)
}

fn check_host(head: &Parts, local: SocketAddr) -> Result<(), Refusal> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        let message = "The request has no Host header, or more than one.";
        return Err(Fault::new(Code::BadArgument, message, format!("Send Host: {local}.")).into());
    };
    // A request line may name a host too (`GET http://…`); both must be us.
    let named = [host.to_str().ok(), head.uri.authority().map_or(host.to_str().ok(), |authority| Some(authority.as_str()))];
    if named.into_iter().all(|name| name.is_some_and(|name| is_us(name, local))) {
        return Ok(());
    }
    let message = format!("The Host header '{}' is not this daemon's address.", shown(host));
    Err(Fault::new(Code::PolicyDenied, message, format!("Use http://{local} as it is; names of other hosts are refused.")).into())
}

/// Whether `authority` names this listener: a loopback name and our port.
fn is_us(authority: &str, local: SocketAddr) -> bool {
    let Ok(authority) = authority.parse::<Authority>() else { return false };
    let host = authority.host();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = ["127.0.0.1", "::1"].contains(&bare) || host.eq_ignore_ascii_case("localhost") || bare == local.ip().to_string();
    is_loopback && authority.port_u16().unwrap_or(80) == local.port() && !authority.as_str().contains('@')
}

fn check_origin(headers: &HeaderMap, local: SocketAddr) -> Result<(), Refusal> {
    let stranger = headers.get_all(ORIGIN).iter().find(|origin| {
        let authority = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        !authority.is_some_and(|authority| is_us(authority, local))
    });
    let Some(origin) = stranger else { return Ok(()) };
    let message = format!("The Origin '{}' may not call tabmux.", shown(origin));
    Err(Fault::new(Code::PolicyDenied, message, "Call from a program without an Origin header; web pages are refused.").into())
}

fn check_query(head: &Parts) -> Result<(), Refusal> {
    let is_token = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        ["token", "access_token", "bearer"].iter().any(|name| key.eq_ignore_ascii_case(name)) || value.starts_with("tmx_")
    };
    if !head.uri.query().unwrap_or("").split('&').any(is_token) {
        return Ok(());
    }
    let message = "A token in the query string is never accepted, because addresses end up in logs.";
    Err(Fault::new(Code::BadArgument, message, "Send it as Authorization: Bearer TOKEN, and revoke one that was sent this way.").into())
}

impl Failures {
    /// Whose token, or which capability, the request carries in its one `Authorization` header.
    pub(super) fn authenticate(&self, headers: &HeaderMap, behind: &Behind) -> Result<TokenHolder, Refusal> {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let presented = match (given.next(), given.next()) {
            (Some(only), None) => only.to_str().ok().and_then(bearer),
            _ => None,
        };
        let known = |token: &str| behind.tokens.check(token).or_else(|| behind.backend.holder(token).map(TokenHolder::Grant));
        if let Some(holder) = presented.and_then(known) {
            return Ok(holder);
        }
        let what = if presented.is_some() { "The token is not one of this daemon's." } else { "The request carries no bearer token." };
        let hint =
            "Send Authorization: Bearer TOKEN, with the token in the state directory's file 'token' or one made by tabmux token new NAME.";
        if self.too_many() {
            let message = format!("{what} There were too many such requests in the last seconds.");
            let refusal = Refusal::with_status(StatusCode::TOO_MANY_REQUESTS, Code::Unauthorized, message, hint);
            return Err(refusal.header("retry-after", "10"));
        }
        Err(Refusal::new(Fault::new(Code::Unauthorized, what, hint)).header("www-authenticate", "Bearer realm=\"tabmux\""))
    }

    /// Counts one failure; those over the limit are not counted, so that waiting helps.
    fn too_many(&self) -> bool {
        let now = Instant::now();
        let mut failures = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while failures.front().is_some_and(|at| now.duration_since(*at) >= FAILURE_WINDOW) {
            failures.pop_front();
        }
        let too_many = failures.len() >= FAILURES;
        if !too_many {
            failures.push_back(now);
        }
        too_many
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A header of a stranger, cut to a length that is safe to show.
fn shown(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).chars().take(100).collect()
}

/// The one value of a header; `Err` when it stands twice or is no text.
pub(super) fn only(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(HeaderValue::to_str), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value.to_owned())),
        _ => {
            let message = format!("The header {name} stands twice or is no plain text.");
            Err(Fault::new(Code::BadArgument, message, "Send it once, in ASCII.").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_failures_over_the_limit_wait_and_waiting_helps() {
        let failures = Failures::default();
        for _ in 0..FAILURES {
            assert!(!failures.too_many());
        }
        assert!(failures.too_many());
        tokio::time::advance(FAILURE_WINDOW).await;
        assert!(!failures.too_many());
    }

    #[test]
    fn only_loopback_names_with_our_port_are_us() {
        let local = "127.0.0.1:3026".parse().unwrap();
        for name in ["127.0.0.1:3026", "localhost:3026", "LOCALHOST:3026", "[::1]:3026"] {
            assert!(is_us(name, local), "{name}");
        }
        for name in ["127.0.0.1", "127.0.0.1:80", "localhost.evil.com:3026", "evil.com:3026", "0.0.0.0:3026", "a@127.0.0.1:3026", ""] {
            assert!(!is_us(name, local), "{name}");
        }
        assert!(is_us("localhost", "127.0.0.1:80".parse().unwrap()));
    }
}
