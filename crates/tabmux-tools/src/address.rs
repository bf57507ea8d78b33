//! Which addresses a tool may send a page to: schemes, and the operator's domains. Read by the same rules as browsers
//! read them, and what was checked is what is used.

use tabmux_core::{Code, Fault};
use tabmux_driver::{Domains, DriverError, Page, is_for_pages};
use url::Url;

use crate::reply::failed;
use crate::visible;

const WAY_OUT: &str = "Use http, https, data, blob or about:blank.";

const ASK: &str = "Only the operator can change this.";

/// The address in its normal form, if a page may go there.
pub fn allowed_url(address: &str, domains: &Domains) -> Result<String, Fault> {
    let Ok(url) = Url::parse(address) else { return Err(no_url(address)) };
    if is_host(url.scheme()) {
        return Err(no_url(address));
    }
    if is_for_pages(&url) {
        return if domains.permit(&url) { Ok(url.into()) } else { Err(forbidden(&url, domains)) };
    }
    let scheme = visible::line(url.scheme());
    let message = format!("Pages may not go to {scheme}: addresses: \"{}\".", visible::line(address));
    Err(Fault::new(Code::PolicyDenied, message, WAY_OUT))
}

/// Why a navigation failed. A browser says of a host it may not reach that there is none, also where a page was sent on to it.
pub(crate) fn failed_at(error: DriverError, page: &dyn Page, domains: &Domains) -> Fault {
    let denied = error.is_unreached().then(|| denied_url(&page.url(), domains)).flatten();
    denied.unwrap_or_else(|| failed(error))
}

/// Why the operator lets no page go there, if that is so.
pub fn denied_url(address: &str, domains: &Domains) -> Option<Fault> {
    Url::parse(address).ok().filter(|url| !domains.permit(url)).map(|url| forbidden(&url, domains))
}

fn forbidden(url: &Url, domains: &Domains) -> Fault {
    const MOST: usize = 20;
    let host = visible::line(url.host_str().unwrap_or_default());
    let listed: Vec<String> = domains.allowed().iter().take(MOST).map(ToString::to_string).collect();
    let more = if domains.allowed().len() > MOST { ", …" } else { "" };
    let (why, hint) = match listed.is_empty() {
        true => ("policy.deny_domains forbids it".to_owned(), ASK.to_owned()),
        false => ("it is not among policy.allow_domains".to_owned(), format!("Allowed are {}{more}. {ASK}", listed.join(", "))),
    };
    Fault::new(Code::PolicyDenied, format!("Pages may not reach {host}: {why}."), hint)
}

/// `localhost:8080` reads as scheme and path; no scheme in use looks like a host.
fn is_host(scheme: &str) -> bool {
    scheme == "localhost" || scheme.contains('.')
}

fn no_url(address: &str) -> Fault {
    let message = format!("\"{}\" is not a whole URL.", visible::line(address));
    Fault::new(Code::BadArgument, message, "Write it with its scheme, for example https://example.com/.")
}

#[cfg(test)]
mod tests {
    use tabmux_driver::Domain;

    use super::*;

    fn allowed_url(address: &str) -> Result<String, Fault> {
        super::allowed_url(address, &Domains::default())
    }

    #[test]
    fn the_operators_domains_are_kept_and_named() {
        let list = |text: &str| vec![Domain::parse(text).unwrap()];
        let (only, without) = (Domains::new(list("a.test"), vec![]).unwrap(), Domains::new(vec![], list("evil.test")).unwrap());
        for address in ["https://www.a.test/", "data:,hi", "about:blank", "blob:https://a.test/1"] {
            assert!(super::allowed_url(address, &only).is_ok() && super::allowed_url(address, &without).is_ok(), "{address}");
        }
        insta::assert_snapshot!(super::allowed_url("http://b.test/x", &only).unwrap_err(), @"[policy_denied] Pages may not reach b.test: it is not among policy.allow_domains. Allowed are a.test. Only the operator can change this.");
        insta::assert_snapshot!(super::allowed_url("http://www.EVIL.test./", &without).unwrap_err(), @"[policy_denied] Pages may not reach www.evil.test.: policy.deny_domains forbids it. Only the operator can change this.");
        assert!(super::allowed_url("blob:https://b.test/1", &only).is_err());
    }

    #[test]
    fn web_addresses_come_back_in_their_normal_form() {
        let cases = [
            ("https://Example.com", "https://example.com/"),
            ("http://127.0.0.1:8080/a b", "http://127.0.0.1:8080/a%20b"),
            (" about:blank ", "about:blank"),
            ("data:text/html,hi", "data:text/html,hi"),
            ("blob:https://a.test/1-2", "blob:https://a.test/1-2"),
        ];
        for (address, normal) in cases {
            assert_eq!(allowed_url(address), Ok(normal.to_owned()));
        }
    }

    #[test]
    fn other_schemes_are_denied_however_they_are_written() {
        let addresses = [
            "chrome://settings",
            "CHROME://settings",
            "edge://flags",
            "devtools://devtools",
            "file:///etc/passwd",
            "view-source:file:///etc/passwd",
            "java\nscript:alert(1)",
            "about:srcdoc",
            "blob:chrome://settings/1",
            "\u{0}chrome://settings",
        ];
        for address in addresses {
            let fault = allowed_url(address).unwrap_err();
            assert_eq!(fault.code, Code::PolicyDenied, "{fault}");
        }
        insta::assert_snapshot!(allowed_url("chrome://settings").unwrap_err(), @r#"[policy_denied] Pages may not go to chrome: addresses: "chrome://settings". Use http, https, data, blob or about:blank."#);
    }

    #[test]
    fn an_address_without_its_scheme_says_how_to_write_it() {
        for address in ["example.com", "localhost:8080", "example.com:80/x", "", "/path", "http://"] {
            assert_eq!(allowed_url(address).unwrap_err().code, Code::BadArgument, "{address}");
        }
        insta::assert_snapshot!(allowed_url("localhost:8080").unwrap_err(), @r#"[bad_argument] "localhost:8080" is not a whole URL. Write it with its scheme, for example https://example.com/."#);
    }
}
