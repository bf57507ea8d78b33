//! Lists, sets and forgets what the page's origin keeps in `localStorage` or `sessionStorage`. What is listed can be set
//! again as it is, but for characters nobody can see, which are written out: a site chooses them, and an agent reads them.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tabmux_core::Fault;
use tabmux_driver::{StorageArea, StorageItem};

use crate::arguments::{Object, of_page, own_schema, wrong};
use crate::reply::{counted, failed};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "storage",
    group: Group::State,
    level: Level::Full,
    description: "List the page's localStorage, or set or clear it.",
    effect: Effect::Write,
    own_schema: own_schema::<Storage>,
    run: Run::Page(&Keep),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Storage {
    /// Default: local
    area: Option<Area>,
    /// Only this item
    key: Option<String>,
    /// Items by key; null removes
    #[schemars(with = "Option<Object>")]
    set: Option<Map<String, Value>>,
    /// Forget all first
    clear: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Area {
    Local,
    Session,
}

/// How much of a value one line of a list shows; `key` shows all of it.
const MAX_VALUE_BYTES: usize = 200;

/// How much is given as data; what is more is read item by item.
const MAX_DATA_BYTES: usize = 64 * 1024;

struct Keep;

#[async_trait]
impl PageTool for Keep {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let args: Storage = of_page(&args)?;
        let (area, name) = match args.area.unwrap_or(Area::Local) {
            Area::Local => (StorageArea::Local, "localStorage"),
            Area::Session => (StorageArea::Session, "sessionStorage"),
        };
        let set = args.set.as_ref().map(items).transpose()?;
        if let (Some(key), Some(_)) = (&args.key, &set) {
            return Err(wrong("key", &json!(key), "left out with set, which names its items itself"));
        }
        let clear = args.clear.unwrap_or_default();
        let (tab, page) = cx.page().await?;
        let text = match (clear, &args.key, &set) {
            (false, key, None) => {
                let kept = page.storage(area).await.map_err(failed)?;
                return Ok(shown(name, key.as_deref(), &kept).about(tab, &page));
            }
            (true, Some(key), _) => {
                let was_there = page.storage(area).await.map_err(failed)?.iter().any(|item| item.name == *key);
                page.set_storage(area, &[(key.clone(), None)]).await.map_err(failed)?;
                let key = visible::short(key, MAX_VALUE_BYTES);
                if was_there { format!("Removed \"{key}\" from {name}.") } else { format!("No item \"{key}\" in {name}.") }
            }
            (_, _, set) => {
                if clear {
                    page.clear_storage(area).await.map_err(failed)?;
                }
                if let Some(set) = set {
                    page.set_storage(area, set).await.map_err(failed)?;
                }
                changed(name, clear, set.as_deref().unwrap_or_default())
            }
        };
        Ok(Reply::text(text).about(tab, &page))
    }
}

fn changed(area: &str, clear: bool, set: &[(String, Option<String>)]) -> String {
    let removed = set.iter().filter(|(_, value)| value.is_none()).count();
    let done = [("set", set.len() - removed), ("removed", removed)].into_iter().filter(|(_, count)| *count > 0);
    let done: Vec<String> = done.map(|(verb, count)| format!("{verb} {}", counted(count, "item"))).collect();
    let cleared = clear.then(|| format!("cleared {area}"));
    let text = cleared.into_iter().chain((!done.is_empty()).then(|| done.join(" and "))).collect::<Vec<_>>().join(", then ");
    let within = if clear { String::new() } else { format!(" of {area}") };
    format!("{}{}{within}.", text[..1].to_uppercase(), &text[1..])
}

/// A text is kept as it is, anything else as its JSON; pages keep texts only.
fn items(set: &Map<String, Value>) -> Result<Vec<(String, Option<String>)>, Fault> {
    if set.is_empty() {
        return Err(wrong("set", &json!({}), "items by key, for example {\"token\": \"abc\"}"));
    }
    let value = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    Ok(set.iter().map(|(name, item)| (name.clone(), value(item))).collect())
}

fn shown(area: &str, key: Option<&str>, kept: &[StorageItem]) -> Reply {
    if let Some(key) = key {
        return match kept.iter().find(|item| item.name == key) {
            Some(item) => Reply::text(visible::flat(&item.value)),
            None => Reply::text(format!("No item \"{}\" in {area}.", visible::short(key, MAX_VALUE_BYTES))),
        };
    }
    if kept.is_empty() {
        return Reply::text(format!("No items in {area}.")).structured(json!({ "items": [] }));
    }
    let line =
        |item: &StorageItem| format!("{}={}", visible::short(&item.name, MAX_VALUE_BYTES), visible::short(&item.value, MAX_VALUE_BYTES));
    let lines: Vec<_> = kept.iter().map(line).collect();
    let reply = Reply::text(format!("{} in {area}\n{}", counted(kept.len(), "item"), lines.join("\n")));
    let bytes: usize = kept.iter().map(|item| item.name.len() + item.value.len()).sum();
    if bytes > MAX_DATA_BYTES {
        return reply;
    }
    let items: Vec<_> =
        kept.iter().map(|item| StorageItem { name: visible::text(&item.name), value: visible::text(&item.value) }).collect();
    reply.structured(json!({ "items": items }))
}

#[cfg(test)]
mod tests {
    use tabmux_core::Code;

    use super::*;
    use crate::testing::{TestPages, text};

    async fn told(pages: &TestPages, args: Value) -> String {
        text(&pages.call("storage", args).await.unwrap()).to_owned()
    }

    #[tokio::test]
    async fn items_are_set_listed_removed_and_cleared() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        assert_eq!(told(&pages, json!({})).await, "No items in localStorage.");
        let set = json!({ "token": "a\u{202e}b", "cart": { "n": 1 }, "long": "x".repeat(300), "gone": "1" });
        assert_eq!(told(&pages, json!({ "set": set })).await, "Set 4 items of localStorage.");
        assert_eq!(told(&pages, json!({ "set": { "gone": null } })).await, "Removed 1 item of localStorage.");
        insta::assert_snapshot!(told(&pages, json!({})).await.replace("xxxxxxxxxx", ""), @r#"
        3 items in localStorage
        cart={"n":1}
        long=… [300 bytes]
        token=a\u202eb
        "#);
        assert_eq!(told(&pages, json!({ "key": "long" })).await, "x".repeat(300));
        assert_eq!(told(&pages, json!({ "key": "gone" })).await, "No item \"gone\" in localStorage.");
        assert_eq!(told(&pages, json!({ "area": "session" })).await, "No items in sessionStorage.");
        let listed = pages.call("storage", json!({})).await.unwrap().structured.unwrap();
        assert_eq!(listed["items"][0], json!({ "name": "cart", "value": "{\"n\":1}" }));
        assert_eq!(told(&pages, json!({ "clear": true, "key": "cart" })).await, "Removed \"cart\" from localStorage.");
        assert_eq!(told(&pages, json!({ "clear": true, "key": "cart" })).await, "No item \"cart\" in localStorage.");
        assert!(told(&pages, json!({})).await.starts_with("2 items in localStorage\nlong="), "the others stay");
        assert_eq!(told(&pages, json!({ "set": { "b": "1", "long": null } })).await, "Set 1 item and removed 1 item of localStorage.");
        assert_eq!(told(&pages, json!({ "clear": true, "set": { "a": "1" } })).await, "Cleared localStorage, then set 1 item.");
        assert_eq!(told(&pages, json!({ "clear": true })).await, "Cleared localStorage.");
        assert_eq!(told(&pages, json!({})).await, "No items in localStorage.");
    }

    #[tokio::test]
    async fn a_page_without_storage_and_too_much_are_refused_with_the_reason() {
        let pages = TestPages::new().await;
        let fault = pages.call("storage", json!({})).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] The page's storage cannot be used: about:blank has none. Only http and https pages have one, of 5 MB: navigate to one, or set less.");
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        let fault = pages.call("storage", json!({ "set": { "big": "x".repeat(6_000_000) } })).await.unwrap_err();
        assert!(fault.message.contains("it is full"), "{fault}");
        for args in [json!({ "set": {} }), json!({ "set": { "a": "1" }, "key": "a" }), json!({ "area": "cookies" }), json!({ "set": [] })] {
            assert_eq!(pages.call("storage", args).await.unwrap_err().code, Code::BadArgument);
        }
    }

    #[tokio::test]
    async fn a_great_deal_is_listed_shortened_and_without_the_data() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        let set: Map<String, Value> = (0..20).map(|n| (format!("k{n}"), "y".repeat(10_000).into())).collect();
        pages.call("storage", json!({ "set": set })).await.unwrap();
        let reply = pages.call("storage", json!({})).await.unwrap();
        assert!(text(&reply).len() < 6_000 && reply.structured.is_none());
    }
}
