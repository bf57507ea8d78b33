//! Where a request goes once it has passed the guard.

use std::net::SocketAddr;

use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tabmux_core::Code;

use super::backend::HealthReport;
use super::guard::{self, Failures};
use super::refusal::{Refusal, json_response};
use super::{Behind, Bounds, ResponseBody, body};
use crate::tokens::TokenHolder;

/// What all connections share.
pub(super) struct Door {
    pub(super) behind: Behind,
    pub(super) bounds: Bounds,
    pub(super) failures: Failures,
}

/// What an admitted request asks for.
enum Admitted {
    Health,
    Mcp { holder: TokenHolder, path: Option<String> },
    Commands { holder: TokenHolder },
}

const PATHS: &str = "POST, GET or DELETE /mcp and /mcp/NAME, POST /commands, GET /health";

impl Door {
    /// Answers one request. It is cancelled by being dropped, when the peer goes away.
    pub(super) async fn answer(&self, request: Request<Incoming>, local: SocketAddr) -> Response<ResponseBody> {
        let (head, mut body) = request.into_parts();
        let refused = match self.admit(&head, local) {
            Err(refusal) => refusal.into_response(),
            Ok(Admitted::Health) => return json_response(StatusCode::OK, &HealthReport::from(self.behind.backend.health())),
            Ok(Admitted::Mcp { holder, path }) => match self.mcp(&head, &mut body, &holder, path).await {
                Ok(response) => return response,
                Err(refusal) => refusal.into_rpc_response(),
            },
            Ok(Admitted::Commands { holder }) => match self.commands(&head, &mut body, &holder).await {
                Ok(response) => return response,
                Err(refusal) => refusal.into_response(),
            },
        };
        if refused.status() != StatusCode::REQUEST_TIMEOUT {
            body::drain(&head, &mut body).await;
        }
        refused
    }

    /// The order matters: a stranger learns nothing, not even which paths there are.
    fn admit(&self, head: &Parts, local: SocketAddr) -> Result<Admitted, Refusal> {
        guard::check_source(head, local)?;
        let path = head.uri.path();
        if path == "/health" && [Method::GET, Method::HEAD].contains(&head.method) {
            return Ok(Admitted::Health);
        }
        let holder = self.failures.authenticate(&head.headers, &self.behind)?;
        match path {
            "/health" => Err(wrong_method(head, "GET, HEAD")),
            "/commands" if head.method == Method::POST => Ok(Admitted::Commands { holder }),
            "/commands" => Err(wrong_method(head, "POST")),
            _ => {
                let path = match path.strip_prefix("/mcp") {
                    Some("") => None,
                    Some(rest) if rest.starts_with('/') => Some(rest[1..].to_owned()),
                    _ => return Err(no_such_path(path)),
                };
                if [Method::POST, Method::GET, Method::DELETE].contains(&head.method) {
                    Ok(Admitted::Mcp { holder, path })
                } else {
                    Err(wrong_method(head, "GET, POST, DELETE"))
                }
            }
        }
    }
}

fn wrong_method(head: &Parts, allowed: &'static str) -> Refusal {
    let message = format!("{} does not take {}.", head.uri.path(), head.method);
    let hint = format!("Use {allowed}.");
    Refusal::with_status(StatusCode::METHOD_NOT_ALLOWED, Code::Unsupported, message, hint).header("allow", allowed)
}

fn no_such_path(path: &str) -> Refusal {
    let shown: String = path.chars().take(100).collect();
    let hint = format!("The paths are: {PATHS}.");
    Refusal::with_status(StatusCode::NOT_FOUND, Code::BadArgument, format!("There is nothing at {shown}."), hint)
}
