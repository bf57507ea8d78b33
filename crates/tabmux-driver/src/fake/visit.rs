//! What the fake browser finds at an address: whether it can be reached, how long that takes, and its title. Pure.

use std::time::Duration;

use url::Url;

use crate::{DriverError, Result};

pub(super) const BLANK: &str = "about:blank";

/// A page keeps its URLs in its history, so each is bounded (Chromium's own bound is 2 MB).
const MAX_URL_BYTES: usize = 64 * 1024;

/// The longest `?delay=`.
const MAX_DELAY: Duration = Duration::from_secs(600);

/// One address that may be visited.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) url: String,
    pub(super) delay: Duration,
    /// What its page says in a dialog as soon as it is there.
    pub(super) alert: Option<String>,
}

impl Visit {
    pub(super) fn to(address: &str) -> Result<Self> {
        let failed = |text: String| Err(DriverError::NavigationFailed(text));
        if address.len() > MAX_URL_BYTES {
            return failed(format!("The URL has {} bytes; the fake browser takes {MAX_URL_BYTES}.", address.len()));
        }
        let Ok(url) = Url::parse(address) else { return failed(format!("{address:?} is not a URL.")) };
        match url.scheme() {
            "http" | "https" if matches!(url.host_str(), Some("fail.test" | "unreachable.test")) => {
                failed(format!("net::ERR_NAME_NOT_RESOLVED at {url}"))
            }
            "http" | "https" | "data" => Ok(Self { delay: delay(&url), alert: query(&url, "alert"), url: url.into() }),
            "about" if url.path() == "blank" => Ok(Self { delay: Duration::ZERO, alert: None, url: url.into() }),
            _ => failed(format!("The fake browser opens http, https, data and about:blank, not {address:?}.")),
        }
    }
}

/// `?title=` of a web page, `<title>` of a data URL.
pub(super) fn title(address: &str) -> String {
    let Ok(url) = Url::parse(address) else { return String::new() };
    match url.scheme() {
        "http" | "https" => {
            query(&url, "title").unwrap_or_else(|| format!("Fake page at {}{}", url.host_str().unwrap_or_default(), url.path()))
        }
        "data" => title_element(url.path()),
        _ => String::new(),
    }
}

/// What a page never gets.
pub(super) fn awaits(address: &str) -> Option<String> {
    query(&Url::parse(address).ok()?, "awaits")
}

/// Empty for an address without one.
pub(super) fn host(address: &str) -> String {
    Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

pub(super) fn is_download(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| url.path().ends_with("/download"))
}

fn delay(url: &Url) -> Duration {
    let milliseconds = query(url, "delay").and_then(|text| text.parse().ok()).unwrap_or_default();
    Duration::from_millis(milliseconds).min(MAX_DELAY)
}

fn query(url: &Url, key: &str) -> Option<String> {
    url.query_pairs().find(|(known, _)| known == key).map(|(_, value)| value.into_owned())
}

/// The text between `<title>` and `</title>`; a data URL writes them with or without escapes.
fn title_element(path: &str) -> String {
    let plain = path.replace("%3C", "<").replace("%3c", "<").replace("%3E", ">").replace("%3e", ">").replace("%20", " ");
    let inside = plain.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    inside.map(|(title, _)| title.to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_data_and_the_blank_page_open() {
        for url in ["http://a.test/", "https://a.test/x?y#z", "data:text/html,hi", "about:blank"] {
            assert_eq!(Visit::to(url).unwrap().url, url);
        }
        for url in ["file:///etc/passwd", "chrome://settings", "javascript:1", "about:srcdoc", "blob:https://a.test/1", "a.test", ""] {
            assert!(matches!(Visit::to(url), Err(DriverError::NavigationFailed(text)) if text.contains(&format!("{url:?}"))), "{url}");
        }
        assert!(Visit::to(&format!("data:,{}", "x".repeat(MAX_URL_BYTES))).is_err());
    }

    #[test]
    fn unreachable_hosts_fail_as_in_chromium() {
        for url in ["http://fail.test/x", "https://unreachable.test/"] {
            let expected = DriverError::NavigationFailed(format!("net::ERR_NAME_NOT_RESOLVED at {url}"));
            assert_eq!(Visit::to(url).unwrap_err(), expected);
        }
    }

    #[test]
    fn titles_come_from_the_address() {
        assert_eq!(title("https://a.test/x?title=Hello%20you"), "Hello you");
        assert_eq!(title("https://a.test/x"), "Fake page at a.test/x");
        assert_eq!(title(&Visit::to("data:text/html,<title>One two</title>hi").unwrap().url), "One two");
        assert_eq!(title(BLANK), "");
    }

    #[test]
    fn a_delay_is_bounded_and_nonsense_is_none() {
        assert_eq!(Visit::to("http://a.test/?delay=250").unwrap().delay, Duration::from_millis(250));
        assert_eq!(Visit::to("http://a.test/?delay=99999999999").unwrap().delay, MAX_DELAY);
        assert_eq!(Visit::to("http://a.test/?delay=soon").unwrap().delay, Duration::ZERO);
    }
}
