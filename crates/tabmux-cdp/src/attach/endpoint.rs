//! How a running browser is named: its WebSocket, an HTTP address, a port, or `auto`.

use std::fmt;
use std::str::FromStr;

use url::Url;

use super::AttachError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The one that is found in the usual places.
    Auto,
    WebSocket {
        url: String,
        address: Address,
    },
    /// Asked at `base` + `/json/version`.
    Http {
        address: Address,
        base: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
}

impl FromStr for Endpoint {
    type Err = AttachError;

    fn from_str(text: &str) -> Result<Self, AttachError> {
        let unreadable = || AttachError::Unreadable { text: shown(text) };
        let text = text.trim();
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let full = match text.parse::<u16>() {
            Ok(port) => format!("http://127.0.0.1:{port}"),
            Err(_) if text.contains("://") => text.to_owned(),
            // A bare host without a port would be port 80, which nobody means.
            Err(_) if text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => format!("http://{text}"),
            Err(_) => return Err(unreadable()),
        };
        let url = Url::parse(&full).map_err(|_| unreadable())?;
        if matches!(url.scheme(), "wss" | "https") {
            return Err(AttachError::Tls { text: shown(text) });
        }
        let host = url.host_str().ok_or_else(unreadable)?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let address = Address { host, port: url.port_or_known_default().filter(|port| *port != 0).ok_or_else(unreadable)? };
        let path = url.path().trim_end_matches('/');
        match url.scheme() {
            _ if path.starts_with("/devtools/page/") => Err(AttachError::OfPage { text: shown(text) }),
            "ws" if !path.is_empty() => Ok(Self::WebSocket { url: full, address }),
            "http" | "ws" if url.query().is_none() && url.username().is_empty() => {
                Ok(Self::Http { address, base: path.trim_end_matches("/json/version").to_owned() })
            }
            _ => Err(unreadable()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') { write!(f, "[{}]:{}", self.host, self.port) } else { write!(f, "{}:{}", self.host, self.port) }
    }
}

/// An address as people and logs may see it: what stands in its query, or before its host, may be a secret.
pub(super) fn shown(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or(url);
    match bare.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split('/').next().unwrap_or(rest);
            let credentials = host.rfind('@').map_or(0, |at| at + 1);
            format!("{scheme}://{}", &rest[credentials..])
        }
        None => bare.to_owned(),
    }
}

/// The same for every connection to one running browser, another for every other: its uuid, or a number made of its address.
pub(super) fn id_of(url: &str) -> String {
    let last = url.rsplit_once("/devtools/browser/").map(|(_, id)| id);
    match last.filter(|id| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')) {
        Some(id) => id.to_owned(),
        // FNV-1a, because it must be the same in every build.
        None => format!(
            "{:016x}",
            url.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        ),
    }
}
