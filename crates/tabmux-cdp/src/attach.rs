//! A browser that somebody else started: where it listens, and one connection to it. Its own tabs, windows and contexts
//! are never attached to, and it is never ended from here. TLS is deliberately absent.

mod door;
mod endpoint;
mod error;
mod profiles;
#[cfg(test)]
mod tests;
mod version;

use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tabmux_driver::{Browser, BrowserInfo, DriverError, HOUSEKEEPING};

pub(crate) use door::Doors;
pub use endpoint::{Address, Endpoint};
pub use error::AttachError;
pub use profiles::{Profiles, usual_profiles};

use crate::transport::Handshake;
use crate::{CdpBrowser, Transport};
use profiles::ActivePort;
use version::Answer;

/// How long a browser may take to say which it is.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a browser may take to take us in, where it asks nobody.
const WELCOME: Duration = Duration::from_secs(30);
/// How long a person may take to answer the browser's question.
const CONSENT: Duration = Duration::from_secs(300);

/// A browser that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Its own WebSocket.
    pub url: String,
    pub consent: Consent,
}

/// Whether the browser asks its user before it lets anybody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    NotNeeded,
    /// An everyday browser, in which remote debugging was allowed at chrome://inspect: each new connection is asked about.
    Asked,
}

impl Located {
    /// The same however its address is written.
    #[must_use]
    pub fn id(&self) -> String {
        endpoint::id_of(&self.url)
    }

    /// What is known of it before there is a connection.
    #[must_use]
    pub fn unconnected(&self) -> BrowserInfo {
        BrowserInfo {
            id: self.id(),
            kind: "attached".into(),
            endpoint: Some(endpoint::shown(&self.url)),
            waits_for: Some("its user, who must allow the connection".into()),
            ..BrowserInfo::default()
        }
    }
}

/// Finds the browser of an endpoint without connecting to its debugger, so that nobody is asked anything.
/// Blocks, but never for long.
pub fn locate(endpoint: &Endpoint, profiles: &Profiles) -> Result<Located, AttachError> {
    match endpoint {
        Endpoint::Auto => sole(profiles),
        Endpoint::WebSocket { url, address } => {
            knock(address)?;
            Ok(Located { url: url.clone(), consent: Consent::NotNeeded })
        }
        Endpoint::Http { address, base } => match version::ask(address, base, ANSWER)? {
            Answer::Browser { url } => Ok(Located { url, consent: Consent::NotNeeded }),
            Answer::Withheld => {
                profiles.dirs.iter().filter_map(|dir| ActivePort::read(dir)).find(|active| active.is_at(address)).map_or_else(
                    || Err(AttachError::Withheld { address: address.clone() }),
                    |active| Ok(Located { url: active.url(), consent: Consent::Asked }),
                )
            }
        },
    }
}

/// The one browser that listens on this machine.
fn sole(profiles: &Profiles) -> Result<Located, AttachError> {
    let mut found: Vec<(PathBuf, Located)> = Vec::new();
    for active in profiles.dirs.iter().filter_map(|dir| ActivePort::read(dir)) {
        // The file stays when a browser is killed, and the port may be another's by now.
        let consent = match version::ask(&active.address(), "", ANSWER) {
            Ok(Answer::Browser { url }) if url.ends_with(&active.path) => Consent::NotNeeded,
            Ok(Answer::Withheld) => Consent::Asked,
            Ok(Answer::Browser { .. }) | Err(_) => continue,
        };
        found.push((active.profile.clone(), Located { url: active.url(), consent }));
    }
    if found.is_empty()
        && let Some(address) = &profiles.else_at
        && let Ok(Answer::Browser { url }) = version::ask(address, "", ANSWER)
    {
        return Ok(Located { url, consent: Consent::NotNeeded });
    }
    match <[_; 1]>::try_from(found) {
        Ok([(_, located)]) => Ok(located),
        Err(none) if none.is_empty() => Err(AttachError::NoneFound),
        Err(several) => Err(AttachError::Several(several.into_iter().map(|(profile, located)| (profile, located.url)).collect())),
    }
}

/// Whether anything listens there.
fn knock(address: &Address) -> Result<TcpStream, AttachError> {
    let deaf = |why: std::io::Error| AttachError::NotListening { address: address.clone(), why: why.to_string() };
    let mut last = std::io::Error::other("the name has no address");
    for at in (address.host.as_str(), address.port).to_socket_addrs().map_err(deaf)? {
        match TcpStream::connect_timeout(&at, ANSWER) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(deaf(last))
}

impl CdpBrowser {
    /// Connects to a browser that was located. Where it asks its user, this waits for minutes.
    pub async fn attach(located: &Located) -> Result<Arc<Self>, AttachError> {
        let limit = match located.consent {
            Consent::NotNeeded => WELCOME,
            Consent::Asked => CONSENT,
        };
        let url = endpoint::shown(&located.url);
        let transport = Transport::handshake(&located.url, limit).await.map_err(|error| match error {
            Handshake::Answered(403) => AttachError::Refused { url: url.clone() },
            Handshake::Answered(404) => AttachError::Gone { url: url.clone() },
            Handshake::Answered(status) => {
                AttachError::Unwelcome { url: url.clone(), why: format!("it answered with HTTP status {status}") }
            }
            Handshake::Late => AttachError::Late { url: url.clone(), seconds: limit.as_secs(), consent: located.consent },
            Handshake::Failed(why) => AttachError::Unwelcome { url: url.clone(), why },
        })?;
        let info = BrowserInfo { waits_for: None, ..located.unconnected() };
        let connected = async {
            let browser = Self::connect(transport, 1, info).await?;
            browser.shut_door(&located.url).await?;
            Ok(browser)
        };
        connected.await.map_err(|error: DriverError| match error {
            DriverError::Late(_) => AttachError::Late { url, seconds: HOUSEKEEPING.as_secs(), consent: Consent::NotNeeded },
            other => AttachError::Unwelcome { url, why: other.to_string() },
        })
    }
}
