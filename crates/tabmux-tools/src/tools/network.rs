//! Lists what the page asked the network for. A read: nothing is taken away. Bodies and headers are deliberately absent.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tabmux_driver::{Domains, Request};

use crate::arguments::{of_page, own_schema};
use crate::reply::{counted, sized};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, address, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "network",
    group: Group::See,
    level: Level::Full,
    description: "List the page's requests, newest last.",
    effect: Effect::Read,
    own_schema: own_schema::<Network>,
    run: Run::Page(&ListRequests),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Network {
    /// Part of the URL
    filter: Option<String>,
    /// Only failures
    failed: Option<bool>,
    /// Default: 50
    limit: Option<NonZeroUsize>,
}

const DEFAULT_LIMIT: usize = 50;

/// How much of a URL one line shows.
const MAX_URL_BYTES: usize = 300;

struct ListRequests;

#[async_trait]
impl PageTool for ListRequests {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let args: Network = of_page(&args)?;
        let (tab, page) = cx.page_on_record().await?;
        let (mut requests, lost) = page.requests();
        let known = requests.len();
        requests.retain(|request| cx.may_see(&request.url));
        let elsewhere = known - requests.len();
        requests.retain(|request| args.wants(request));
        let hidden = requests.len().saturating_sub(args.limit.map_or(DEFAULT_LIMIT, NonZeroUsize::get));
        requests.drain(..hidden);
        requests.iter_mut().for_each(|request| name_policy(request, cx.domains()));
        let text = listed(&requests, Missing { lost, elsewhere, hidden });
        for request in &mut requests {
            for words in [&mut request.url, &mut request.method].into_iter().chain(&mut request.failure).chain(&mut request.mime) {
                *words = visible::line(words);
            }
        }
        Ok(Reply::text(text).about(tab, &page).structured(json!({ "requests": requests, "hidden": hidden, "lost": lost })))
    }
}

impl Network {
    fn wants(&self, request: &Request) -> bool {
        let fits = self.filter.as_ref().is_none_or(|part| request.url.contains(part));
        fits && (!self.failed.unwrap_or_default() || is_failure(request))
    }
}

/// The browser calls a site that the operator forbids one that cannot be resolved, which sends people looking for their name server.
fn name_policy(request: &mut Request, domains: &Domains) {
    if request.failure.is_some() && address::denied_url(&request.url, domains).is_some() {
        request.failure = Some("policy_denied: the operator's policy.allow_domains or policy.deny_domains".to_owned());
    }
}

fn is_failure(request: &Request) -> bool {
    request.failure.is_some() || request.status.is_some_and(|status| status >= 400)
}

/// What is not listed: no longer kept, not the caller's to see, or too much at once.
struct Missing {
    lost: u64,
    elsewhere: usize,
    hidden: usize,
}

fn listed(requests: &[Request], Missing { lost, elsewhere, hidden }: Missing) -> String {
    let mut lines = Vec::with_capacity(requests.len() + 3);
    if elsewhere > 0 {
        lines.push(format!("({} to sites that the grant is not for.)", counted(elsewhere, "request")));
    }
    if lost > 0 {
        lines.push(format!("({lost} older requests were lost: the page keeps the newest.)"));
    }
    if hidden > 0 {
        lines.push(format!("({} not shown: raise limit, or filter.)", counted(hidden, "older request")));
    }
    if requests.is_empty() {
        lines.push("No such requests.".to_owned());
    }
    lines.extend(requests.iter().map(line));
    lines.join("\n")
}

/// `#3 GET 200 document 1.2 kB 35 ms https://a.test/`, as far as it is known.
fn line(request: &Request) -> String {
    let outcome = match (&request.failure, request.status) {
        (Some(failure), _) => format!("failed ({failure})"),
        (None, Some(status)) => status.to_string(),
        // Of a worker that came from a script at hand.
        (None, None) if request.duration_ms.is_some() => "loaded".to_owned(),
        (None, None) => "pending".to_owned(),
    };
    let mut parts = vec![format!("#{}", request.id), request.method.clone(), outcome, request.kind.clone()];
    parts.extend(request.bytes.map(sized));
    parts.extend(request.duration_ms.map(|duration_ms| format!("{duration_ms} ms")));
    parts.extend(request.from_cache.then(|| "cached".to_owned()));
    parts.push(visible::short(&request.url, MAX_URL_BYTES));
    visible::line(&parts.join(" "))
}

#[cfg(test)]
mod tests {
    use tabmux_driver::Domain;

    use super::*;
    use crate::testing::{TestPages, text};

    fn request(id: u64, url: &str) -> Request {
        Request { id, method: "GET".into(), url: url.into(), kind: "document".into(), ..Request::default() }
    }

    #[test]
    fn what_the_operator_forbids_is_not_told_as_a_name_that_is_not_found() {
        let domains = Domains::new(Vec::new(), vec![Domain::parse("b.test").unwrap()]).unwrap();
        let failed = |url: &str| {
            let mut request = Request { failure: Some("net::ERR_NAME_NOT_RESOLVED".into()), ..request(1, url) };
            name_policy(&mut request, &domains);
            line(&request)
        };
        assert!(failed("http://www.b.test/").contains("failed (policy_denied: "));
        assert!(failed("http://a.test/").contains("failed (net::ERR_NAME_NOT_RESOLVED)"));
        let mut fine = request(1, "http://b.test/");
        name_policy(&mut fine, &domains);
        assert_eq!(fine.failure, None);
    }

    #[tokio::test]
    async fn the_newest_requests_are_listed_and_stay() {
        let pages = TestPages::new().await;
        for url in ["http://a.test/1", "http://b.test/2", "http://a.test/3"] {
            pages.call("navigate", json!({ "url": url })).await.unwrap();
        }
        let newest = pages.call("network", json!({ "limit": 2 })).await.unwrap();
        insta::assert_snapshot!(text(&newest), @r"
        (1 older request not shown: raise limit, or filter.)
        #2 GET 200 document http://b.test/2
        #3 GET 200 document http://a.test/3
        ");
        let again = pages.call("network", json!({ "limit": 2 })).await.unwrap();
        assert_eq!(text(&again), text(&newest));
        let reply = pages.call("network", json!({ "filter": "a.test" })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r"
        #1 GET 200 document http://a.test/1
        #3 GET 200 document http://a.test/3
        ");
        let structured = reply.structured.unwrap();
        assert_eq!(
            (&structured["requests"][1]["url"], &structured["hidden"], &structured["lost"]),
            (&json!("http://a.test/3"), &json!(0), &json!(0))
        );
        let reply = pages.call("network", json!({ "failed": true })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"No such requests.");
        let fault = pages.call("network", json!({ "limit": 0 })).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] Argument limit is 0. It must be an integer of at least 1.");
    }

    #[test]
    fn a_line_says_what_is_known_and_cannot_be_broken() {
        let whole = Request { status: Some(200), bytes: Some(1234), duration_ms: Some(35), ..request(3, "https://a.test/") };
        let failed = Request { failure: Some("net::ERR_FAILED".into()), kind: "fetch".into(), ..request(4, "https://a.test/\n#5 GET") };
        let cached = Request { status: Some(304), from_cache: true, ..request(5, &format!("data:,{}", "x".repeat(1000))) };
        let text = listed(&[whole, failed, cached, request(6, "http://a.test/")], Missing { lost: 2, elsewhere: 3, hidden: 1 });
        insta::assert_snapshot!(text.replace('x', ""), @r"
        (3 requests to sites that the grant is not for.)
        (2 older requests were lost: the page keeps the newest.)
        (1 older request not shown: raise limit, or filter.)
        #3 GET 200 document 1.2 kB 35 ms https://a.test/
        #4 GET failed (net::ERR_FAILED) fetch https://a.test/\n#5 GET
        #5 GET 304 document cached data:,… [1006 bytes]
        #6 GET pending document http://a.test/
        ");
    }

    #[test]
    fn a_failure_is_a_broken_request_or_an_error_status() {
        let wanted = Network { filter: None, failed: Some(true), limit: None };
        let with = |status, failure: Option<&str>| Request { status, failure: failure.map(Into::into), ..request(1, "x") };
        assert!(wanted.wants(&with(None, Some("no"))) && wanted.wants(&with(Some(404), None)) && wanted.wants(&with(Some(500), None)));
        assert!(!wanted.wants(&with(Some(399), None)) && !wanted.wants(&with(None, None)));
    }
}
