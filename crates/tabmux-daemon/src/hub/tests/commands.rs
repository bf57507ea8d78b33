//! Seed 2's commands as they reach the hub: HTTP callers, and tabs by their number in the whole daemon.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tabmux_core::{Code, Identity, Link, TabNumber};
use tokio_util::sync::CancellationToken;

use crate::backend::HubBackend;
use crate::http::{Backend, Command, CommandAnswer, CommandRefusal, HttpIdentity};
use crate::testing::House;

fn token(name: &str) -> HttpIdentity {
    HttpIdentity::Token(name.to_owned())
}

async fn command(
    backend: &HubBackend,
    who: HttpIdentity,
    tool: &str,
    args: Value,
    tab: Option<TabNumber>,
) -> Result<CommandAnswer, CommandRefusal> {
    let client = backend.http_client(who);
    let command = Command { tool: tool.to_owned(), args: args.as_object().cloned().unwrap(), tab };
    backend.command(client, command, CancellationToken::new()).await
}

fn code(answer: Result<CommandAnswer, CommandRefusal>) -> Option<Code> {
    match answer {
        Err(CommandRefusal::Fault(fault)) => Some(fault.code),
        Ok(_) | Err(CommandRefusal::ForeignTab) => None,
    }
}

/// S2.14, S2.26
#[tokio::test]
async fn a_command_runs_in_the_tab_of_its_number_whichever_session_that_is_in() {
    let house = House::new();
    let backend = HubBackend::new(Arc::clone(&house.hub));
    let mut tabs = Vec::new();
    for name in ["one", "two"] {
        command(&backend, token("a"), "start_browser", json!({"sessionId": name}), None).await.unwrap();
        let url = format!("http://{name}.test/");
        tabs.push(command(&backend, token("a"), "navigate", json!({"sessionId": name, "url": url}), None).await.unwrap().tab);
        command(&backend, token("a"), "new_page", json!({"sessionId": name}), None).await.unwrap();
    }
    for (tab, url) in [(tabs[0], "http://one.test/"), (tabs[1], "http://two.test/")] {
        assert!(tab.is_some());
        let here = command(&backend, token("a"), "evaluate", json!({"script": "1", "tabId": "t2"}), tab).await.unwrap();
        assert_eq!((here.tab, here.url.as_deref()), (tab, Some(url)), "the envelope's tab wins");
    }
    let selected = command(&backend, token("a"), "select_page", json!({}), tabs[1]).await.unwrap();
    assert_eq!(selected.tab, tabs[1], "also where the tool itself takes a tab");
    let refused = command(&backend, token("a"), "list_sessions", json!({}), tabs[0]).await;
    assert_eq!(code(refused), Some(Code::BadArgument), "a list has no tab");
}

/// S2.14
#[tokio::test]
async fn the_tab_of_another_is_a_conflict_and_nothing_runs_or_is_made() {
    let house = House::new();
    let backend = HubBackend::new(Arc::clone(&house.hub));
    let tab = command(&backend, token("a"), "navigate", json!({"url": "http://a.test/"}), None).await.unwrap().tab;
    for (who, tab) in [(token("b"), tab), (HttpIdentity::Anonymous, tab), (token("b"), Some(TabNumber(99)))] {
        let refused = command(&backend, who, "navigate", json!({"url": "http://stolen.test/"}), tab).await;
        assert_eq!(refused.err(), Some(CommandRefusal::ForeignTab));
    }
    assert_eq!(house.sessions(), 1, "no session was made for it");
    let here = command(&backend, token("a"), "evaluate", json!({"script": "1"}), tab).await.unwrap();
    assert_eq!(here.url.as_deref(), Some("http://a.test/"));
    let denied = command(&backend, token("a"), "navigate", json!({"url": "file:///etc/passwd"}), tab).await;
    assert_eq!(code(denied), Some(Code::PolicyDenied), "what the rules do not allow is no conflict");
}

/// S2.26
#[tokio::test]
async fn a_list_of_tabs_says_where_the_session_is() {
    let house = House::new();
    let backend = HubBackend::new(Arc::clone(&house.hub));
    let tab = command(&backend, token("a"), "navigate", json!({"url": "http://a.test/"}), None).await.unwrap().tab;
    command(&backend, token("a"), "new_page", json!({"url": "http://b.test/"}), None).await.unwrap();
    command(&backend, token("a"), "select_page", json!({"pageIdx": 0}), None).await.unwrap();
    let listed = command(&backend, token("a"), "list_pages", json!({}), None).await.unwrap();
    assert_eq!((listed.tab, listed.url.as_deref()), (tab, Some("http://a.test/")));
}

/// S2.14: a conflict is for what is another's.
#[tokio::test]
async fn ones_own_closed_tab_is_gone_and_no_conflict() {
    let house = House::new();
    let backend = HubBackend::new(Arc::clone(&house.hub));
    let tab = command(&backend, token("a"), "navigate", json!({"url": "http://a.test/"}), None).await.unwrap().tab;
    command(&backend, token("a"), "close_page", json!({}), tab).await.unwrap();
    assert_eq!(code(command(&backend, token("a"), "snapshot", json!({}), tab).await), Some(Code::TabGone));
    assert_eq!(command(&backend, token("b"), "snapshot", json!({}), tab).await.err(), Some(CommandRefusal::ForeignTab));
}

/// S2.13
#[tokio::test]
async fn a_session_is_there_for_its_owner_only() {
    let house = House::new();
    let backend = HubBackend::new(Arc::clone(&house.hub));
    command(&backend, token("a"), "start_browser", json!({"sessionId": "web"}), None).await.unwrap();
    assert!(backend.has_session(&token("a"), "web"));
    assert!(!backend.has_session(&token("a"), "other"));
    for other in [token("b"), HttpIdentity::Path("a".into()), HttpIdentity::McpSession("a".into()), HttpIdentity::Anonymous] {
        assert!(!backend.has_session(&other, "web"), "{other:?}");
    }
}

/// S2.22, C7: DELETE by one client of a token that a shim shows as well.
#[tokio::test]
async fn a_goodbye_over_http_leaves_the_sessions_to_the_tokens_other_clients_and_does_not_wait() {
    let (house, browser) = House::stubborn();
    let backend = HubBackend::new(Arc::clone(&house.hub));
    let shim = house.agent_as(Identity::Token("a".into()), Link::Connection);
    command(&backend, token("a"), "start_browser", json!({"sessionId": "web"}), None).await.unwrap();
    house.on_disk().await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    backend.goodbye(token("a")).await;
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing closes");
    tokio::time::resume();
    assert_eq!(shim.eval("web", "1").await.unwrap(), "1");
    shim.lost();
    assert_eq!((house.hub.look(|registry| registry.counts().orphaned), house.sessions()), (0, 1));
    backend.goodbye(token("a")).await;
    assert_eq!((house.sessions(), browser.open()), (0, 0), "its last client took leave, and the close was awaited");
}
