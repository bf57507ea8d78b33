//! What a page can be waited for. A driver listens for it; how long, the caller says by giving up.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// All that is given must hold at the same moment. Letters of either case and runs of white space count as equal.
#[derive(Clone, Debug, Default)]
pub struct Awaited {
    /// Text that can be seen on the page.
    pub text: Option<String>,
    /// CSS: an element that can be seen.
    pub selector: Option<String>,
    pub url: Option<UrlPattern>,
    /// A text or a CSS selector of which nothing can be seen any more.
    pub gone: Option<String>,
    /// Nothing was asked of the network for half a second, and every answer has come; streams that never end and the scripts of workers do not count.
    pub network_idle: bool,
    /// A script whose value holds: an expression, or a function that is called.
    pub function: Option<String>,
    /// Where it is written down how far it is.
    pub lacks: Lacks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    Text,
    Selector,
    Url,
    Gone,
    NetworkIdle,
    Function,
}

/// What did not hold when the page was looked at last, for who gives up waiting. Empty as long as nobody knows; what is not looked at before
/// something else holds is not in it.
#[derive(Clone, Debug, Default)]
pub struct Lacks(Arc<Mutex<BTreeSet<Condition>>>);

impl Lacks {
    /// Of these, the ones with `true`.
    pub fn are(&self, conditions: &[(Condition, bool)]) {
        let lacking = conditions.iter().filter(|(_, lacks)| *lacks).map(|(condition, _)| *condition);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = lacking.collect();
    }

    #[must_use]
    pub fn now(&self) -> BTreeSet<Condition> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How long nothing must have been asked of the network.
pub const NETWORK_QUIET: Duration = Duration::from_millis(500);

/// A part of an address, or with `*` in it all of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPattern(pub String);

impl Awaited {
    /// Whether the page itself must be looked at, and not only its address.
    pub fn needs_document(&self) -> bool {
        self.text.is_some() || self.selector.is_some() || self.gone.is_some()
    }
}

impl UrlPattern {
    pub fn matches(&self, url: &str) -> bool {
        if !self.0.contains('*') {
            return url.contains(&self.0);
        }
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let last = parts.next_back().unwrap_or_default();
        let inner = url.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
        let found = |rest, part: &str| Some(str::split_once(rest, part)?.1);
        inner.is_some_and(|inner| parts.filter(|part| !part.is_empty()).try_fold(inner, found).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_part_of_an_address_or_with_stars_all_of_it() {
        let url = "https://a.test/shop/cart?x=1";
        for pattern in ["/cart", "https://a.test", "x=1", "*", "**/cart*", "https://*.test/*/cart?x=*", "*shop*x=1", url] {
            assert!(UrlPattern(pattern.into()).matches(url), "{pattern}");
        }
        for pattern in ["/Cart", "*/cart", "http://*", "*cart*shop*", "https://a.test/shop/cart?x=1*x=1", "*cart?x=1?x=1"] {
            assert!(!UrlPattern(pattern.into()).matches(url), "{pattern}");
        }
    }
}
