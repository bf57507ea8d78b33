//! Which sites pages may reach. The operator's, for all sessions of a daemon. Pure: whoever asks, asks the same rules.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Without any allowed domain all are allowed, but for the denied ones; those win.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Domains {
    allow: Vec<Domain>,
    deny: Vec<Domain>,
}

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// `example.com`: it and everything below it.
    Site(String),
    /// `*.example.com`: only what is below it.
    Below(String),
    /// An address that is written as one. What names stand for is not looked at.
    Address(IpAddr),
}

/// Hosts that one pattern can say. A list in these words is what browsers understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    Exactly(String),
    Below(String),
    Address(IpAddr),
}

/// How a list is to be kept by whoever resolves names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    Everything,
    AllBut(Vec<Hosts>),
    Only(Vec<Hosts>),
}

impl Domains {
    /// Refuses what no browser can be told: a site that is allowed, with something below it that is not.
    pub fn new(allow: Vec<Domain>, deny: Vec<Domain>) -> Result<Self, String> {
        for (allowed, denied) in allow.iter().flat_map(|allowed| deny.iter().map(move |denied| (allowed, denied))) {
            let inside = |wide: &Hosts| denied.hosts().iter().any(|narrow| wide.covers(narrow) && !narrow.covers(wide));
            if allowed.hosts().iter().any(|wide| inside(wide) && !deny.iter().any(|other| other.covers(wide))) {
                return Err(format!("{denied} is denied within {allowed}, which is allowed; allow the sites below it one by one"));
            }
        }
        Ok(Self { allow, deny })
    }

    pub fn is_open(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// Whether a page may reach this address. One without a host reaches nobody.
    pub fn permit(&self, url: &Url) -> bool {
        let inner = (url.scheme() == "blob").then(|| Url::parse(url.path()).ok()).flatten();
        let Some(host) = inner.as_ref().unwrap_or(url).host().as_ref().map(Hosts::of) else { return true };
        let among = |list: &[Domain]| list.iter().any(|domain| domain.covers(&host));
        !among(&self.deny) && (self.allow.is_empty() || among(&self.allow))
    }

    pub fn allowed(&self) -> &[Domain] {
        &self.allow
    }

    pub fn reach(&self) -> Reach {
        if self.is_open() {
            return Reach::Everything;
        }
        if self.allow.is_empty() {
            return Reach::AllBut(self.deny.iter().flat_map(Domain::hosts).collect());
        }
        let denied = |hosts: &Hosts| self.deny.iter().any(|domain| domain.covers(hosts));
        Reach::Only(self.allow.iter().flat_map(Domain::hosts).filter(|hosts| !denied(hosts)).collect())
    }
}

impl Domain {
    /// `example.com`, `*.example.com` or an IP address; none of them with a port.
    pub fn parse(text: &str) -> Option<Self> {
        let bare = text.trim().trim_end_matches('.');
        if let Ok(address) = bare.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical()));
        }
        let (below, name) = bare.strip_prefix("*.").map_or((false, bare), |name| (true, name));
        let Ok(Host::Domain(name)) = Host::parse(name) else { return None };
        // A URL's host may hold more, but no site has it: a quote or a semicolon is a slip, and such a rule would be in force for nobody.
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return None;
        }
        Some(if below { Self::Below(name) } else { Self::Site(name) })
    }

    fn hosts(&self) -> Vec<Hosts> {
        match self {
            Self::Site(name) => vec![Hosts::Exactly(name.clone()), Hosts::Below(name.clone())],
            Self::Below(name) => vec![Hosts::Below(name.clone())],
            Self::Address(address) => vec![Hosts::Address(*address)],
        }
    }

    fn covers(&self, hosts: &Hosts) -> bool {
        self.hosts().iter().any(|own| own.covers(hosts))
    }
}

impl Hosts {
    fn of(host: &Host<&str>) -> Self {
        match host {
            Host::Domain(name) => Self::Exactly(name.trim_end_matches('.').to_owned()),
            Host::Ipv4(address) => Self::Address((*address).into()),
            // `[::ffff:127.0.0.1]` is 127.0.0.1.
            Host::Ipv6(address) => Self::Address(IpAddr::from(*address).to_canonical()),
        }
    }

    fn covers(&self, other: &Self) -> bool {
        let below = |name: &str, of: &str| name.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
        match (self, other) {
            (Self::Below(of), Self::Exactly(name)) => below(name, of),
            (Self::Below(of), Self::Below(name)) => name == of || below(name, of),
            (own, other) => own == other,
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Site(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Whether an address is of a kind that pages of a session may be at. An allow-list, because `chrome://settings` in a context crashes the
/// whole browser and `view-source:file:///…` passes deny-lists (FACTS §1).
pub fn is_for_pages(url: &Url) -> bool {
    match url.scheme() {
        "http" | "https" | "data" => true,
        "about" => url.path() == "blank",
        "blob" => ["http://", "https://", "null/"].iter().any(|origin| url.path().starts_with(origin)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<Domain> {
        text.split_whitespace().map(|domain| Domain::parse(domain).unwrap_or_else(|| panic!("{domain}"))).collect()
    }

    fn domains(allow: &str, deny: &str) -> Domains {
        Domains::new(list(allow), list(deny)).unwrap()
    }

    fn permits(domains: &Domains, url: &str) -> bool {
        domains.permit(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_site_is_allowed_with_everything_below_it_and_nothing_else() {
        let domains = domains("example.com *.b.test 127.0.0.1 [::1] bücher.test", "");
        for url in [
            "https://example.com/",
            "http://a.b.example.com:8080/x",
            "https://EXAMPLE.com./",
            "https://x.b.test/",
            "http://127.1/",
            "http://[::ffff:127.0.0.1]/",
            "http://[0:0::1]/",
            "https://xn--bcher-kva.test/",
            "data:text/html,hi",
            "about:blank",
            "blob:https://example.com/1",
        ] {
            assert!(permits(&domains, url), "{url}");
        }
        for url in [
            "https://badexample.com/",
            "https://example.com.evil.test/",
            "https://b.test/",
            "http://127.0.0.2/",
            "blob:https://evil.test/1",
        ] {
            assert!(!permits(&domains, url), "{url}");
        }
    }

    #[test]
    fn what_is_denied_is_denied_even_where_it_is_allowed() {
        let only_denied = domains("", "evil.test 10.0.0.1");
        assert!(permits(&only_denied, "https://example.com/") && !permits(&only_denied, "https://www.evil.test./"));
        assert!(!permits(&only_denied, "http://[::ffff:a00:1]/"));
        let both = domains("example.com good.test", "*.example.com good.test");
        assert!(
            permits(&both, "https://example.com/") && !permits(&both, "https://a.example.com/") && !permits(&both, "https://good.test/")
        );
        assert_eq!(both.reach(), Reach::Only(vec![Hosts::Exactly("example.com".into())]));
    }

    #[test]
    fn a_hole_in_what_is_allowed_is_refused() {
        let complaint = Domains::new(list("example.com"), list("admin.example.com")).unwrap_err();
        assert_eq!(complaint, "admin.example.com is denied within example.com, which is allowed; allow the sites below it one by one");
        assert!(Domains::new(list("*.example.com"), list("*.a.example.com")).is_err());
        assert!(Domains::new(list("example.com"), list("example.com *.a.example.com other.test")).is_ok());
    }

    #[test]
    fn only_names_and_addresses_are_domains() {
        for text in [
            "",
            "*",
            "*.",
            "https://a.test",
            "a.test:80",
            "a.test/x",
            "a*.test",
            "[::1]:80",
            "a b",
            "*.*.test",
            "user@a.test",
            "\"a.test\"",
            "'a.test'",
            "a.test;b.test",
            "a!",
        ] {
            assert_eq!(Domain::parse(text), None, "{text:?}");
        }
        assert!(Domains::default().is_open() && permits(&Domains::default(), "https://any.test/"));
    }
}
