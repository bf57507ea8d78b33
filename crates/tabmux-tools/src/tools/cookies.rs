//! Lists, sets and forgets the cookies of the session, whatever their site. What is listed can be set again as it is, but
//! for characters nobody can see, which are written out: a site chooses its cookies, and an agent reads them.

use std::time::SystemTime;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tabmux_core::{Code, Fault};
use tabmux_driver::{Context, Cookie, SameSite};
use url::{Host, Url};

use crate::arguments::{Object, of_page, own_schema};
use crate::reply::{counted, failed};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "cookies",
    group: Group::State,
    level: Level::Full,
    description: "List the session's cookies, or set or clear them.",
    effect: Effect::Write,
    own_schema: own_schema::<Cookies>,
    run: Run::Page(&Keep),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cookies {
    /// {name, value, domain or url, path?, expires? (s), httpOnly?, secure?, sameSite?}
    #[schemars(with = "Option<Vec<Object>>")]
    set: Option<Vec<NewCookie>>,
    /// Forget all first
    clear: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NewCookie {
    name: String,
    value: String,
    domain: Option<String>,
    url: Option<String>,
    path: Option<String>,
    expires: Option<f64>,
    http_only: Option<bool>,
    secure: Option<bool>,
    same_site: Option<SameSite>,
    partition_key: Option<String>,
}

/// How much of a value one line shows; programs get all of it.
const MAX_VALUE_BYTES: usize = 200;

/// How many of those that are refused are named.
const MAX_NAMED: usize = 10;

struct Keep;

#[async_trait]
impl PageTool for Keep {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let args: Cookies = of_page(&args)?;
        let set = args.set.map(|set| set.into_iter().map(NewCookie::whole).collect::<Result<Vec<_>, _>>()).transpose()?;
        let clear = args.clear.unwrap_or_default();
        let context = cx.context().await?;
        // Only the browser knows what it takes, so it is asked before anything is lost.
        if let Some(set) = &set {
            put(&*context, set, if clear { "Nothing was cleared." } else { "" }).await?;
        }
        if clear {
            context.clear_cookies().await.map_err(|error| {
                let fault = failed(error);
                let set = if set.is_some() { " The cookies given are set." } else { "" };
                Fault { message: format!("{}{set}", fault.message), ..fault }
            })?;
            put(&*context, set.as_deref().unwrap_or_default(), "All others were cleared.").await?;
        }
        match set {
            None if !clear => {
                let cookies = context.cookies().await.map_err(failed)?;
                let text = listed(&cookies);
                let cookies: Vec<_> = cookies.into_iter().map(shown).collect();
                Ok(Reply::text(text).structured(json!({ "cookies": cookies })))
            }
            None => Ok(Reply::text("Cleared all cookies.")),
            Some(set) => {
                let cleared = if clear { "Cleared all cookies, then set" } else { "Set" };
                // A browser takes them and forgets what had their name.
                let now = SystemTime::now();
                let over: Vec<_> = set.iter().filter(|cookie| cookie.is_over(now)).collect();
                let kept = set.len() - over.len();
                let gone = match over.is_empty() {
                    true => String::new(),
                    false => format!(" No cookie any more, because it expires in the past: {}.", listed_names(&over)),
                };
                Ok(Reply::text(format!("{cleared} {}.{gone}", counted(kept, "cookie"))).with("set", kept))
            }
        }
    }
}

/// Sets them all, or says which are not set; `else_done` is what else became of the cookies.
async fn put(context: &dyn Context, set: &[Cookie], else_done: &str) -> Result<(), Fault> {
    let after = |message: String| format!("{message} {else_done}").trim_end().to_owned();
    let refused = context.set_cookies(set).await.map_err(|error| {
        let fault = failed(error);
        Fault { message: after(fault.message), ..fault }
    })?;
    if refused.is_empty() {
        return Ok(());
    }
    let names = listed_names(&refused.iter().map(|place| &set[*place]).collect::<Vec<_>>());
    let taken = match set.len() - refused.len() {
        0 => String::new(),
        1 => " The other one is set.".to_owned(),
        others => format!(" The {others} others are set."),
    };
    let message = after(format!("The browser does not take the cookie {names}.{taken}"));
    Err(Fault::new(Code::BadArgument, message, "Give it a name, a value and a domain that fit together."))
}

fn listed_names(cookies: &[&Cookie]) -> String {
    let short = |text: &str| visible::short(text, MAX_VALUE_BYTES);
    let more = cookies.len().saturating_sub(MAX_NAMED);
    let mut names: Vec<_> =
        cookies.iter().take(MAX_NAMED).map(|cookie| format!("{:?} of {:?}", short(&cookie.name), short(&cookie.domain))).collect();
    names.extend((more > 0).then(|| format!("{more} more")));
    names.join(", ")
}

impl NewCookie {
    /// As Playwright reads it: a URL stands for its host, its directory and its scheme.
    fn whole(self) -> Result<Cookie, Fault> {
        let (domain, path, secure) = match (self.domain, self.url) {
            (Some(domain), None) if has_port(&domain) => {
                return Err(wrong(&self.name, "its domain has a port, and cookies are for all ports of a host"));
            }
            (Some(domain), None) => match host(&domain) {
                Some(host) => (host, "/".to_owned(), false),
                None => return Err(wrong(&self.name, "its domain is no host")),
            },
            (None, Some(url)) => place(&url).ok_or_else(|| wrong(&self.name, "its url is no http or https URL"))?,
            (None, None) => return Err(wrong(&self.name, "it has neither domain nor url")),
            (Some(_), Some(_)) => return Err(wrong(&self.name, "it has both domain and url")),
        };
        Ok(Cookie {
            name: self.name,
            value: self.value,
            domain,
            path: self.path.unwrap_or(path),
            // Playwright writes -1 for a cookie that ends with its session.
            expires: self.expires.filter(|seconds| *seconds >= 0.0),
            http_only: self.http_only.unwrap_or_default(),
            secure: self.secure.unwrap_or(secure),
            same_site: self.same_site,
            partition_key: self.partition_key,
            ..Cookie::default()
        })
    }
}

/// As the browser writes it: it takes what is no host too, and keeps it under a name of its own.
fn host(domain: &str) -> Option<String> {
    let (dot, name) = domain.strip_prefix('.').map_or(("", domain), |name| (".", name));
    // An IPv6 address.
    if name.contains(':') {
        return Some(domain.to_owned()).filter(|domain| !domain.contains('/'));
    }
    Host::parse(name).ok().map(|host| format!("{dot}{host}"))
}

fn has_port(domain: &str) -> bool {
    let Some((host, port)) = domain.rsplit_once(':') else { return false };
    // Other colons are those of an IPv6 address.
    (!host.contains(':') || host.ends_with(']')) && port.bytes().all(|byte| byte.is_ascii_digit())
}

fn place(url: &str) -> Option<(String, String, bool)> {
    let url = Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()))?;
    let directory = url.path().rsplit_once('/').map_or("", |(directory, _)| directory);
    Some((url.host_str()?.to_owned(), format!("{directory}/"), url.scheme() == "https"))
}

fn wrong(name: &str, why: &str) -> Fault {
    let message = format!("The cookie \"{}\" cannot be set: {why}.", visible::short(name, MAX_VALUE_BYTES));
    Fault::new(Code::BadArgument, message, "Give either domain, a host such as example.com, or the url of a page that gets it.")
}

fn listed(cookies: &[Cookie]) -> String {
    if cookies.is_empty() {
        return "No cookies.".to_owned();
    }
    let lines: Vec<_> = cookies.iter().map(line).collect();
    format!("{}\n{}", counted(cookies.len(), "cookie"), lines.join("\n"))
}

fn shown(mut cookie: Cookie) -> Cookie {
    for words in [&mut cookie.name, &mut cookie.value, &mut cookie.domain, &mut cookie.path] {
        *words = visible::text(words);
    }
    // What only a browser asks for.
    Cookie { cross_site_ancestor: None, priority: None, source_scheme: None, source_port: None, ..cookie }
}

/// As a server would write it.
fn line(cookie: &Cookie) -> String {
    let mut parts = vec![format!("{}={}", cookie.name, visible::short(&cookie.value, MAX_VALUE_BYTES))];
    parts.push(format!("Domain={}", cookie.domain));
    parts.push(format!("Path={}", cookie.path));
    parts.extend(cookie.expires.map(|seconds| format!("Expires={}", date(seconds))));
    parts.extend(cookie.http_only.then(|| "HttpOnly".to_owned()));
    parts.extend(cookie.secure.then(|| "Secure".to_owned()));
    parts.extend(cookie.same_site.map(|same_site| format!("SameSite={}", same_site.name())));
    parts.extend(cookie.partition_key.as_ref().map(|site| format!("Partitioned={site}")));
    visible::line(&parts.join("; "))
}

/// The day and time, where there is one: a cookie may name any number of seconds. The cast saturates.
fn date(seconds: f64) -> String {
    jiff::Timestamp::from_second(seconds as i64).map_or_else(|_| format!("{seconds:e}"), |date| date.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn cookies_are_set_listed_and_cleared() {
        let pages = TestPages::new().await;
        let reply = pages.call("cookies", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"No cookies.");
        let set = json!([
            { "name": "sid", "value": "a\u{202e}b", "domain": "a.test", "expires": 1_800_000_000, "httpOnly": true, "sameSite": "Lax" },
            { "name": "theme", "value": "x".repeat(300), "url": "https://b.test/shop/cart?x=1" },
        ]);
        let reply = pages.call("cookies", json!({ "set": set })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Set 2 cookies.");
        let reply = pages.call("cookies", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply).replace("xxxxxxxxxx", ""), @r"
        2 cookies
        sid=a\u202eb; Domain=a.test; Path=/; Expires=2027-01-15T08:00:00Z; HttpOnly; SameSite=Lax
        theme=… [300 bytes]; Domain=b.test; Path=/shop/; Secure
        ");
        let listed = reply.structured.unwrap()["cookies"].clone();
        assert_eq!((&listed[0]["value"], listed[1]["value"].as_str().unwrap().len()), (&json!("a\\u202eb"), 300));
        let reply = pages.call("cookies", json!({ "clear": true })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Cleared all cookies.");
        assert_eq!(pages.call("cookies", json!({})).await.unwrap().structured, Some(json!({ "cookies": [] })));
        let reply = pages.call("cookies", json!({ "set": listed, "clear": true })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Cleared all cookies, then set 2 cookies.");
        assert_eq!(pages.call("cookies", json!({})).await.unwrap().structured, Some(json!({ "cookies": listed })));
    }

    #[tokio::test]
    async fn a_cookie_that_cannot_be_set_is_named_and_nothing_is_changed() {
        let pages = TestPages::new().await;
        pages.call("cookies", json!({ "set": [{ "name": "kept", "value": "1", "domain": "a.test" }] })).await.unwrap();
        for cookie in [
            json!({ "name": "a", "value": "1" }),
            json!({ "name": "a", "value": "1", "url": "file:///etc/passwd" }),
            json!({ "name": "a", "value": "1", "url": "http://a.test/", "domain": "a.test" }),
            json!({ "name": "a", "domain": "a.test" }),
            json!({ "name": "a", "value": "1", "domain": "127.0.0.1:8080" }),
            json!({ "name": "a", "value": "1", "domain": "[::1]:80" }),
            json!({ "name": "a", "value": "1", "domain": "http://a.test" }),
            json!({ "name": "a", "value": "1", "domain": "bad domain" }),
            json!({ "name": "a", "value": "1", "domain": "a.test/x" }),
            json!({ "name": "a", "value": "1", "domain": "" }),
            json!({ "name": "a", "value": "1", "domain": "a.test", "sameSite": "maybe" }),
            json!({ "name": "a", "value": "1", "domain": "a.test", "size": 1 }),
        ] {
            let fault = pages.call("cookies", json!({ "set": [cookie], "clear": true })).await.unwrap_err();
            assert_eq!(fault.code, Code::BadArgument, "{fault}");
        }
        let fault = pages.call("cookies", json!({ "set": [{ "name": "a", "value": "1" }] })).await.unwrap_err();
        insta::assert_snapshot!(fault, @r#"[bad_argument] The cookie "a" cannot be set: it has neither domain nor url. Give either domain, a host such as example.com, or the url of a page that gets it."#);
        assert!(text(&pages.call("cookies", json!({})).await.unwrap()).contains("kept=1"));
    }

    #[test]
    fn a_domain_is_written_as_the_browser_writes_it() {
        assert_eq!(
            ["A.test", ".b.TEST", "bücher.test", "[::1]", "127.0.0.1"].map(host).map(Option::unwrap),
            ["a.test", ".b.test", "xn--bcher-kva.test", "[::1]", "127.0.0.1"]
        );
        assert_eq!(["a b", "", "http://a.test", "a.test/"].map(host), [const { None }; 4]);
    }

    /// An error says what was done; what only the browser refuses is found out before anything is cleared.
    #[tokio::test]
    async fn a_cookie_that_is_over_when_it_is_set_is_not_told_as_set() {
        let pages = TestPages::new().await;
        let cookie = |name: &str, expires: f64| json!({ "name": name, "value": "1", "domain": "a.test", "expires": expires });
        let set = json!({ "set": [cookie("old", 1.0), cookie("session", -1.0), cookie("new", 4e9)] });
        let reply = pages.call("cookies", set).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"Set 2 cookies. No cookie any more, because it expires in the past: "old" of "a.test"."#);
        assert_eq!(reply.result["set"], 2);
    }

    #[tokio::test]
    async fn a_cookie_that_the_browser_refuses_loses_itself_only() {
        let pages = TestPages::new().await;
        let cookie = |name: &str, value: String| json!({ "name": name, "value": value, "domain": "a.test" });
        let (bad, good) = (cookie("big", "x".repeat(5000)), |name: &str| cookie(name, "1".to_owned()));
        pages.call("cookies", json!({ "set": [good("kept"), good("big")] })).await.unwrap();
        let refused = async |args| pages.call("cookies", args).await.unwrap_err().to_string();
        insta::assert_snapshot!(refused(json!({ "set": [good("one"), bad, good("two")] })).await,
            @r#"[bad_argument] The browser does not take the cookie "big" of "a.test". The 2 others are set. Give it a name, a value and a domain that fit together."#);
        insta::assert_snapshot!(refused(json!({ "set": [bad], "clear": true })).await,
            @r#"[bad_argument] The browser does not take the cookie "big" of "a.test". Nothing was cleared. Give it a name, a value and a domain that fit together."#);
        let listed = text(&pages.call("cookies", json!({})).await.unwrap()).to_owned();
        for name in ["kept=1", "big=1", "one=1", "two=1"] {
            assert!(listed.contains(name), "{listed}");
        }
        let many: Vec<_> = (0..12).map(|number| cookie(&format!("c{number}"), "x".repeat(5000))).collect();
        assert!(refused(json!({ "set": many })).await.contains("\"c9\" of \"a.test\", 2 more."));
    }

    #[test]
    fn any_number_of_seconds_can_be_shown() {
        assert_eq!([0.0, 1.8e9, 1e300, -1.5].map(date), ["1970-01-01T00:00:00Z", "2027-01-15T08:00:00Z", "1e300", "1969-12-31T23:59:59Z"]);
    }
}
