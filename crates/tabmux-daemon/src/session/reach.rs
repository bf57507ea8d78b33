//! How far a call that came by a grant reaches within its session: whether it may change anything, and which sites it may see.
//! The grant was checked when the call was admitted; this is what can only be known at the page.

use std::sync::Arc;

use tabmux_core::{Code, Fault, Grant, Right};
use tabmux_driver::{Domain, Domains};
use url::Url;

/// Without a grant everything is within reach.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    grant: Option<Arc<Grant>>,
    /// A page must be allowed by each.
    domains: Vec<Domains>,
}

impl Reach {
    pub(crate) fn of(grant: Option<Arc<Grant>>) -> Self {
        let lists = grant.iter().flat_map(|grant| &grant.domains);
        let domains = lists.map(|list| Domains::new(list.iter().filter_map(|text| Domain::parse(text)).collect(), Vec::new()));
        // A list that nobody can read lets nobody in.
        let domains = domains.map(|list| list.ok().filter(|list| !list.allowed().is_empty()).unwrap_or_else(nowhere)).collect();
        Self { grant, domains }
    }

    /// Whether the call must leave even the session's current tab, and what has been told, as they are.
    pub(crate) fn only_looks(&self) -> bool {
        self.grant.as_ref().is_some_and(|grant| grant.right == Right::Read)
    }

    /// Whether a page at this address is within reach. An empty page is.
    pub(crate) fn covers(&self, address: &str) -> bool {
        if self.domains.is_empty() || address == "about:blank" {
            return true;
        }
        let Ok(url) = Url::parse(address) else { return false };
        let web = matches!(url.scheme(), "http" | "https" | "blob");
        web && self.domains.iter().all(|list| list.permit(&url)) && host(&url).is_some()
    }

    /// Refuses a page that is somewhere else; its address is not told, its host is.
    pub(crate) fn check(&self, address: &str) -> Result<(), Fault> {
        if self.covers(address) { Ok(()) } else { Err(self.beyond(&format!("The page is at {}", shown(address)))) }
    }

    pub(crate) fn check_target(&self, address: &str) -> Result<(), Fault> {
        if self.covers(address) { Ok(()) } else { Err(self.beyond(&format!("The page would go to {}", shown(address)))) }
    }

    /// Refuses what belongs to all sites of a session at once.
    pub(crate) fn check_whole(&self) -> Result<(), Fault> {
        if self.domains.is_empty() { Ok(()) } else { Err(self.beyond("This is about all sites of the session")) }
    }

    fn beyond(&self, what: &str) -> Fault {
        let grant = self.grant.as_ref().map(|grant| grant.id().to_string()).unwrap_or_default();
        let allowed: Vec<String> = self.domains.iter().flat_map(Domains::allowed).map(ToString::to_string).collect();
        let message = format!("{what}, and the grant {grant} is only for {}.", allowed.join(", "));
        Fault::new(Code::PolicyDenied, message, "Go to one of these with navigate or new_page, or ask for another grant.")
    }
}

/// Nobody's name: RFC 2606 keeps it out of use.
fn nowhere() -> Domains {
    Domains::new(Domain::parse("grant.invalid").into_iter().collect(), Vec::new()).unwrap_or_default()
}

fn host(url: &Url) -> Option<String> {
    match url.scheme() {
        "blob" => Url::parse(url.path()).ok()?.host_str().map(str::to_owned),
        _ => url.host_str().map(str::to_owned),
    }
}

fn shown(address: &str) -> String {
    let url = Url::parse(address).ok();
    let host = url.as_ref().and_then(host);
    let place = host.unwrap_or_else(|| url.map_or_else(|| "an unknown place".to_owned(), |url| format!("a {}: address", url.scheme())));
    tabmux_tools::visible_line(&place)
}

#[cfg(test)]
mod tests {
    use tabmux_core::{GrantKey, Identity, SessionId, Uses};

    use super::*;

    fn reach(domains: &[&[&str]]) -> Reach {
        Reach::of(Some(Arc::new(Grant {
            key: GrantKey([1; 32]),
            session: SessionId(1),
            giver: Identity::Operator,
            parent: None,
            right: Right::Act,
            tools: None,
            domains: domains.iter().map(|list| list.iter().map(ToString::to_string).collect()).collect(),
            uses: Uses::Many,
            taken_by: None,
            created_unix_ms: 0,
        })))
    }

    #[test]
    fn a_page_is_within_reach_where_every_list_has_its_site() {
        let both = reach(&[&["a.test", "b.test"], &["*.a.test"]]);
        for (address, within) in [
            ("http://x.a.test/", true),
            ("blob:https://x.a.test/1", true),
            ("about:blank", true),
            ("https://a.test/", false),
            ("https://b.test/", false),
            ("https://c.test/?a.test", false),
            ("blob:null/1", false),
            ("data:text/html,x", false),
            ("file:///etc/passwd", false),
            ("chrome-error://chromewebdata/", false),
            ("", false),
        ] {
            assert_eq!(both.covers(address), within, "{address}");
        }
        assert!(both.check_whole().is_err() && reach(&[]).check_whole().is_ok() && reach(&[]).covers("data:,x"));
        assert!(!reach(&[&["no host at all!"]]).covers("http://a.test/"), "what cannot be read allows nothing");
    }

    #[test]
    fn a_refusal_tells_the_host_and_not_the_address() {
        let fault = reach(&[&["a.test"]]).check("https://bank.test/?token=s3cret").unwrap_err();
        assert_eq!(fault.message, "The page is at bank.test, and the grant g_01010101 is only for a.test.");
    }
}
