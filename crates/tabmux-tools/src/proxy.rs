//! How a caller writes a proxy.

use serde::Deserialize;
use tabmux_core::{Code, Fault};
use tabmux_driver::{Credentials, Proxy};
use url::Url;

/// An address, with the name and password in it, or as Playwright writes it.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum ProxyWord {
    Address(String),
    Parts(Parts),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parts {
    server: String,
    bypass: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

impl ProxyWord {
    pub(crate) fn read(self) -> Result<Proxy, Fault> {
        let parts = match self {
            Self::Address(server) => Parts { server, bypass: None, username: None, password: None },
            Self::Parts(parts) => parts,
        };
        let url = Url::parse(&parts.server).ok().filter(|url| ["http", "https", "socks4", "socks5"].contains(&url.scheme()));
        let (Some(url), Some(host)) = (&url, url.as_ref().and_then(Url::host_str)) else {
            return Err(refused("The proxy is no address of one."));
        };
        let default = match url.scheme() {
            "http" => 80,
            "https" => 443,
            _ => 1080,
        };
        let server = format!("{}://{host}:{}", url.scheme(), url.port().unwrap_or(default));
        let decoded = |text: &str| {
            url::form_urlencoded::parse(format!("x={}", text.replace('+', "%2B")).as_bytes()).next().map(|(_, value)| value.into_owned())
        };
        let username = parts.username.or_else(|| decoded(url.username())).filter(|name| !name.is_empty());
        let password = parts.password.or_else(|| url.password().and_then(decoded)).unwrap_or_default();
        let credentials = username.map(|username| Credentials { username, password, origin: None });
        if credentials.is_some() && url.scheme().starts_with("socks") {
            let message = "Chromium knows no user and password for a SOCKS proxy.";
            return Err(Fault::new(Code::Unsupported, message, "Use an http proxy, or a SOCKS proxy that asks for none."));
        }
        Ok(Proxy { server, bypass: parts.bypass, credentials })
    }
}

/// Without the address: it may have a password in it.
fn refused(message: &str) -> Fault {
    Fault::new(Code::BadArgument, message, "Give http://host:port or socks5://host:port, with user:password@ before the host if it asks.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Proxy, Fault> {
        ProxyWord::Address(text.to_owned()).read()
    }

    #[test]
    fn an_address_is_taken_apart() {
        let proxy = read("http://ann:p%40ss+@proxy.test:3128").unwrap();
        assert_eq!(proxy.server, "http://proxy.test:3128");
        let known = proxy.credentials.unwrap();
        assert_eq!((known.username.as_str(), known.password.as_str()), ("ann", "p@ss+"));
        assert_eq!(
            read("socks5://127.0.0.1").unwrap(),
            Proxy { server: "socks5://127.0.0.1:1080".into(), bypass: None, credentials: None }
        );
        assert_eq!(read("http://[::1]:80").unwrap().server, "http://[::1]:80");
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_repeating_it() {
        for text in ["proxy.test:3128", "ftp://ann:secret@a.test", "", "file:///ann:secret"] {
            let fault = read(text).unwrap_err();
            assert!(fault.code == Code::BadArgument && !fault.to_string().contains("secret"), "{fault}");
        }
        assert_eq!(read("socks5://ann:secret@a.test").unwrap_err().code, Code::Unsupported);
    }
}
