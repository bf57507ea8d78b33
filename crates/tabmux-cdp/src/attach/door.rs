//! The port through which a browser that was attached to is controlled. It is no place for pages: over HTTP it lists, opens and closes
//! everybody's tabs. So every browser of ours asks us about each request that may be meant for it, whoever makes it (page, frame, popup,
//! redirect, worker), and about no other.
//!
//! Measured on Chromium 148, both builds: asked for on the browser itself, `Fetch` also sees what shared and service workers ask for,
//! and the first document of a page that nobody is attached to yet. It sees no WebSockets; those Chromium refuses to pages itself,
//! and where it was told not to, their address is a secret that only this port tells.

use std::net::{IpAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::value::RawValue;
use tabmux_driver::HOUSEKEEPING;
use url::{Host, Url};

use crate::CdpError;
use crate::connection::{Connection, WeakConnection};
use crate::paused::Paused;
use crate::protocol::fetch::{ContinueRequest, Enable, FailRequest, RequestPattern};

/// What a page is told that wants to go there.
const REFUSED: &str = "BlockedByClient";

/// The doors that are shut to all pages of one browser.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    shut: Mutex<Vec<Shut>>,
    connection: OnceLock<WeakConnection>,
}

/// By the address it was reached at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Door(Url);

#[derive(Debug)]
struct Shut {
    door: Door,
    /// Whether the browser need not be told of it: it took the rule, or is being asked to.
    is_told: bool,
}

impl Doors {
    fn shut(&self) -> MutexGuard<'_, Vec<Shut>> {
        self.shut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on no page of this browser gets to the port that `endpoint` names.
    pub(crate) async fn keep_shut(&self, connection: &Connection, endpoint: &str) -> crate::Result<()> {
        let Ok(door) = Url::parse(endpoint).map(Door) else { return Ok(()) };
        self.connection.get_or_init(|| connection.downgrade());
        let patterns = {
            let mut shut = self.shut();
            match shut.iter_mut().find(|shut| shut.door == door) {
                Some(shut) if shut.is_told => return Ok(()),
                Some(shut) => shut.is_told = true,
                None => shut.push(Shut { door: door.clone(), is_told: true }),
            }
            shut.iter().map(|shut| shut.door.pattern()).collect()
        };
        match connection.call_in(None, &Enable { patterns: Some(patterns), handle_auth_requests: None }, HOUSEKEEPING).await {
            Err(CdpError::Refused { message, .. }) => {
                tracing::warn!(message, "pages of a browser cannot be kept from a debugging port");
                Ok(())
            }
            Err(error) => {
                // Whoever comes next tries again. Refused it is all the same: a browser that is late takes the rule when it wakes.
                self.shut().iter_mut().filter(|shut| shut.door == door).for_each(|shut| shut.is_told = false);
                Err(error)
            }
            Ok(_) => Ok(()),
        }
    }

    /// Says whether a request may go on. Called by the reader: nothing is waited for.
    pub(crate) fn paused(&self, params: &RawValue) {
        let Some(Paused { request_id, url, .. }) = Paused::read(params) else { return };
        let Some(connection) = self.connection.get().and_then(WeakConnection::upgrade) else { return };
        let refused = self.shut().iter().any(|shut| shut.door.is_at(&url));
        // Queued by now; refused, whoever asked has gone.
        if refused {
            drop(connection.send(None, &FailRequest { request_id, error_reason: REFUSED.into() }));
        } else {
            drop(connection.send(None, &ContinueRequest { request_id, ..ContinueRequest::default() }));
        }
    }
}

impl Door {
    fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or_default()
    }

    /// All that may be meant for it, and little else.
    fn pattern(&self) -> RequestPattern {
        // Where a port need not be written it is not.
        let url = if self.port() == 80 { "http://*".to_owned() } else { format!("*:{}/*", self.port()) };
        RequestPattern { url_pattern: Some(url), ..RequestPattern::default() }
    }

    /// Whether this address leads there, however it is written. One that cannot be read may.
    fn is_at(&self, address: &str) -> bool {
        let Ok(url) = Url::parse(address) else { return true };
        let here = match url.host() {
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                // Other names that lead here are refused by Chromium.
                name == "localhost" || name.ends_with(".localhost")
            }
            Some(Host::Ipv4(ip)) => is_this_machines(ip.into()),
            Some(Host::Ipv6(ip)) => is_this_machines(ip.into()),
            None => false,
        };
        url.port_or_known_default() == Some(self.port()) && (here || url.host() == self.0.host())
    }
}

/// An address is this machine's if one can be there.
fn is_this_machines(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_is_known_however_its_address_is_written() {
        let door = Door(Url::parse("ws://chrome.test:9222/devtools/browser/1").unwrap());
        for host in [
            "127.0.0.1",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "0.0.0.0",
            "127.1",
            "2130706433",
            "0x7f.1",
            "127.8.9.10",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::]",
            "chrome.test",
            "user:secret@127.0.0.1",
        ] {
            assert!(door.is_at(&format!("http://{host}:9222/json/list")), "{host}");
        }
        assert!(door.is_at(""), "one that is too long to be told of");
        for elsewhere in ["http://127.0.0.1:9223/", "http://localhost/", "http://a.test:9222/", "http://192.0.2.1:9222/?localhost:9222/"] {
            assert!(!door.is_at(elsewhere), "{elsewhere}");
        }
        assert_eq!(door.pattern().url_pattern.unwrap(), "*:9222/*");
        let plain = Door(Url::parse("ws://127.0.0.1/devtools/browser/1").unwrap());
        assert!(plain.is_at("http://localhost/json/list") && plain.pattern().url_pattern.unwrap() == "http://*");
    }
}
