//! A session that moves into another context, and one that comes back after its browser was lost.

use std::time::Duration;

use serde_json::{Value, json};
use tabmux_core::Code;
use tabmux_driver::{Copied, Isolation};

use crate::testing::{Agent, House, eventually};

/// Saved as soon as it rests.
fn saving() -> House {
    House::with(|settings| settings.clocks.session_save = Some(Duration::from_millis(1)))
}

fn saved(house: &House, ending: &str) -> usize {
    let entries = std::fs::read_dir(house.dir.path().join("state/saved")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(ending)).count()
}

/// What is saved; not what is being written.
fn texts(house: &House) -> String {
    let entries = std::fs::read_dir(house.dir.path().join("state/saved")).into_iter().flatten().flatten();
    let whole = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".json"));
    whole.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect()
}

/// Two pages, the first one current, with logins and what each keeps for itself.
async fn busy(agent: &Agent) {
    agent.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/one"})).await;
    agent.eval("web", "document.cookie = \"token=1\"").await.unwrap();
    agent.ok("storage", json!({"set": {"user": "ann"}})).await;
    agent.ok("storage", json!({"area": "session", "set": {"step": "one"}})).await;
    agent.ok("new_page", json!({"url": "http://b.test/two"})).await;
    agent.ok("select_page", json!({"pageIdx": 0})).await;
}

async fn pages(agent: &Agent) -> Vec<(String, bool)> {
    let pages = agent.ok("list_pages", json!({"sessionId": "web"})).await.structured.unwrap()["pages"].clone();
    pages.as_array().unwrap().iter().map(|page| (page["url"].as_str().unwrap().to_owned(), page["current"] == json!(true))).collect()
}

async fn kept(agent: &Agent, area: &str) -> Value {
    agent.ok("storage", json!({"sessionId": "web", "area": area})).await.structured.unwrap()["items"][0]["value"].clone()
}

async fn assert_whole(agent: &Agent) {
    assert_eq!(pages(agent).await, [("http://a.test/one".to_owned(), true), ("http://b.test/two".to_owned(), false)]);
    assert_eq!(agent.eval("web", "document.cookie").await.unwrap().trim_matches('"'), "token=1");
    assert_eq!((kept(agent, "local").await, kept(agent, "session").await), (json!("ann"), json!("one")));
}

/// S1.43: the session goes on in other tabs, with its name, pages and logins; the old tabs are gone for good.
#[tokio::test]
async fn a_session_moves_with_its_pages_and_logins() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    let said = agent.ok("migrate", json!({"sessionId": "web", "isolation": "browser"})).await.text;
    assert_eq!(said, "Moved 2 pages.\nt3 http://a.test/one (current)\nt4 http://b.test/two");
    assert_whole(&agent).await;
    assert_eq!(agent.code("evaluate", json!({"tabId": "t1", "script": "1"})).await, Code::TabGone);
    let listed = agent.ok("list_sessions", json!({})).await.structured.unwrap();
    assert_eq!(listed["sessions"][0]["isolation"], json!("browser"));
    assert_eq!((house.sessions(), browser.open()), (1, 1), "it left the context that it was in");
    agent.ok("select_page", json!({"pageIdx": 1})).await;
    let said = agent.ok("migrate", json!({"sessionId": "web", "isolation": "context"})).await.text;
    assert_eq!(said, "Moved 2 pages.\nt5 http://a.test/one\nt6 http://b.test/two (current)");
    agent.ok("select_page", json!({"pageIdx": 0})).await;
    let next = house.killed_and_started_beside(&browser).await;
    let back = next.agent("a");
    assert_whole(&back).await;
    back.ok("close_session", json!({})).await;
    eventually("nothing is left", || browser.open() == 0 && next.sessions() == 0).await;
}

/// Its tabs have other ids then, and nobody can answer what the old ones asked.
#[tokio::test]
async fn a_session_that_moved_says_nothing_of_tabs_that_are_gone() {
    let house = House::new();
    let agent = house.agent("a");
    busy(&agent).await;
    let page = house.session().page(tabmux_core::TabId(2)).unwrap();
    let _asking = tokio::spawn(async move { page.evaluate("alert(\"late\")").await });
    let session = house.session();
    eventually("its next reply would say so", || session.waiting().1 == 1).await;
    let said = agent.ok("migrate", json!({"sessionId": "web", "isolation": "browser"})).await.text;
    assert!(said.contains("Moved 2 pages.") && !said.contains("dialog"), "{said}");
}

/// What it is brought from ends with the move.
#[tokio::test]
async fn a_session_leaves_when_all_of_it_has_arrived() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    let copied = browser.tells_copied(Copied { pending: 1, ..Copied::default() });
    let moving = agent.begin("migrate", json!({"sessionId": "web", "isolation": "browser", "headless": false})).await;
    eventually("it waits for the rest", || copied.receiver_count() > 0).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!moving.is_finished() && browser.open() == 2);
    copied.send_replace(Copied::default());
    moving.await.unwrap().unwrap();
    let spec = browser.specs().pop().unwrap();
    assert_eq!((browser.open(), spec.isolation, spec.headless), (1, Isolation::Browser, Some(false)));
    agent.ok("migrate", json!({"sessionId": "web", "headless": true})).await;
    let spec = browser.specs().pop().unwrap();
    assert_eq!((spec.isolation, spec.headless), (Isolation::Browser, Some(true)), "what is not said stays as it is where it lives now");
}

/// It lives where it moved to: with that browser it is lost, and then it begins without what it brought along.
#[tokio::test]
async fn a_session_that_moved_is_lost_with_its_new_browser() {
    let house = House::with(|settings| settings.clocks.session_save = None);
    let agent = house.agent("a");
    busy(&agent).await;
    agent.ok("migrate", json!({"sessionId": "web", "isolation": "browser"})).await;
    assert_eq!(agent.eval("web", "endBrowser()").await.unwrap_err().code, Code::BrowserCrashed);
    assert_eq!(agent.eval("web", "1").await.unwrap_err().code, Code::BrowserCrashed, "said once");
    agent.ok("navigate", json!({"sessionId": "web", "url": "http://a.test/one"})).await;
    assert_eq!(agent.eval("web", "document.cookie").await.unwrap().trim_matches('"'), "");
}

#[tokio::test]
async fn a_session_that_cannot_move_stays_where_it_is() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    for unit in ["window", "tab"] {
        assert_eq!(agent.code("migrate", json!({"isolation": unit})).await, Code::Unsupported, "its logins would be everybody's");
    }
    browser.opens(&[crate::testing::Mood::Fail]);
    assert_eq!(agent.code("migrate", json!({"isolation": "browser"})).await, Code::BrowserCrashed);
    assert_whole(&agent).await;
}

/// A key that its browser gives to nobody is gone with the context: that is said while the session still has it.
#[tokio::test]
async fn what_cannot_move_is_said_before_it_is_lost() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    browser.keeps_fixed("kept/loose: CryptoKey");
    let fault = agent.fault("migrate", json!({"isolation": "browser"})).await;
    assert_eq!(fault.code, Code::Unsupported);
    let (said, all) = ("This would not come along and would be lost: ", ["http://a.test", "http://b.test"]);
    assert!(
        fault.message.starts_with(said) && all.iter().all(|origin| fault.message.contains(&format!("{origin}: kept/loose: CryptoKey")))
    );
    assert_eq!((browser.asked(), browser.open()), (1, 1), "it did not begin to move");
    assert_whole(&agent).await;
    agent.ok("migrate", json!({"isolation": "browser", "force": true})).await;
    assert_whole(&agent).await;
}

/// What it shared with a profile it has a copy of from then on, and the others there have what they had.
#[tokio::test]
async fn a_session_moves_out_of_a_shared_profile_with_a_copy_of_its_logins() {
    for (from, to) in [("tab", "context"), ("window", "browser")] {
        let house = House::new();
        let agent = house.agent("a");
        let start = |name: &str| json!({"sessionId": name, "isolation": from, "navigationUrl": "http://a.test/one"});
        agent.ok("start_browser", start("web")).await;
        agent.ok("start_browser", start("beside")).await;
        agent.eval("web", "document.cookie = \"token=1\"").await.unwrap();
        let cookie = async |name: &str| agent.eval(name, "document.cookie").await.unwrap().trim_matches('"').to_owned();
        assert_eq!(cookie("beside").await, "token=1", "{from}: the profile is shared");
        let said = agent.ok("migrate", json!({"sessionId": "web", "isolation": to})).await.text;
        assert_eq!(said, "Moved 1 page.\nt2 http://a.test/one (current)");
        assert_eq!(cookie("web").await, "token=1", "{from} to {to}");
        agent.eval("web", "document.cookie = \"token=mine\"").await.unwrap();
        assert_eq!(cookie("beside").await, "token=1", "{from} to {to}");
        let listed = agent.ok("list_sessions", json!({})).await.structured.unwrap();
        assert_eq!(listed["sessions"][0]["isolation"], json!(to));
    }
}

/// What a session has becomes others' only where it is told to, and then that is said.
#[tokio::test]
async fn a_session_moves_into_a_shared_profile_only_by_force_and_says_who_has_its_logins_then() {
    for unit in ["window", "tab"] {
        let house = House::new();
        let agent = house.agent("a");
        busy(&agent).await;
        agent.ok("start_browser", json!({"sessionId": "beside", "isolation": "tab", "navigationUrl": "http://a.test/"})).await;
        let cookie = async |name: &str| agent.eval(name, "document.cookie").await.unwrap().trim_matches('"').to_owned();
        let fault = agent.fault("migrate", json!({"sessionId": "web", "isolation": unit})).await;
        assert!(fault.code == Code::Unsupported && fault.hint.contains("force: true"), "{fault}");
        assert!(fault.message.contains("would be merged") && fault.message.contains("every session of the isolation"), "{fault}");
        assert_eq!(cookie("beside").await, "", "{unit}: nothing was merged");
        assert_whole(&agent).await;
        let said = agent.ok("migrate", json!({"sessionId": "web", "isolation": unit, "force": true})).await.text;
        assert!(said.contains("shared with every session of the isolation window or tab"), "{said}");
        assert_whole(&agent).await;
        assert_eq!(cookie("beside").await, "token=1", "{unit}: as was said");
    }
}

/// Both share the profile: there is nothing to merge, and nothing to ask.
#[tokio::test]
async fn a_session_moves_between_window_and_tab_as_it_is() {
    for (from, to) in [("window", "tab"), ("tab", "window"), ("tab", "tab")] {
        let (house, browser) = House::stubborn();
        let agent = house.agent("a");
        agent.ok("start_browser", json!({"sessionId": "web", "isolation": from, "navigationUrl": "http://a.test/one"})).await;
        agent.eval("web", "document.cookie = \"token=1\"").await.unwrap();
        agent.ok("storage", json!({"area": "session", "set": {"step": "one"}})).await;
        browser.keeps_fixed("kept/loose: CryptoKey");
        let said = agent.ok("migrate", json!({"sessionId": "web", "isolation": to})).await.text;
        assert_eq!(said, "Moved 1 page.\nt2 http://a.test/one (current)", "{from} to {to}");
        assert_eq!(agent.eval("web", "document.cookie").await.unwrap().trim_matches('"'), "token=1");
        assert_eq!((kept(&agent, "session").await, browser.open()), (json!("one"), 1));
        assert_eq!(agent.ok("list_sessions", json!({})).await.structured.unwrap()["sessions"][0]["isolation"], json!(to));
    }
}

/// Others share what it is in by then, and did not ask for what it began with.
#[tokio::test]
async fn a_copy_that_moved_into_a_shared_profile_does_not_bring_its_source_again() {
    let house = House::with(|settings| settings.clocks.session_save = None);
    let agent = house.agent("a");
    busy(&agent).await;
    agent.ok("start_browser", json!({"sessionId": "copy", "from": "web", "navigationUrl": "http://a.test/"})).await;
    agent.ok("migrate", json!({"sessionId": "copy", "isolation": "tab", "force": true})).await;
    agent.eval("copy", "endBrowser()").await.unwrap_err();
    for name in ["copy", "web"] {
        assert_eq!(agent.code("list_pages", json!({"sessionId": name})).await, Code::BrowserCrashed, "{name}");
    }
    agent.ok("navigate", json!({"sessionId": "web", "url": "http://a.test/"})).await;
    agent.eval("web", "document.cookie = \"token=2\"").await.unwrap();
    let said = agent.ok("navigate", json!({"sessionId": "copy", "url": "http://a.test/"})).await.text;
    assert!(said.contains("It starts without the logins of session:web, because others share its profile."), "{said}");
    assert_eq!(agent.eval("copy", "document.cookie").await.unwrap().trim_matches('"'), "");
}

#[tokio::test]
async fn what_a_session_lost_with_its_browser_comes_back() {
    let house = saving();
    let agent = house.agent("a");
    busy(&agent).await;
    let nothing = agent.fault("restore", json!({})).await;
    assert_eq!((nothing.code, nothing.hint.as_str()), (Code::BadArgument, "A session is saved when it rests; go on with navigate."));
    let all = || texts(&house);
    eventually("it is saved", || ["token", "ann", "one", "two", "\"current\":0"].iter().all(|word| all().contains(word))).await;
    eventually("all of it", || !all().contains("not read in time")).await;
    let crashed = agent.eval("web", "endBrowser()").await.unwrap_err();
    assert_eq!(crashed.code, Code::BrowserCrashed);
    eventually("what was saved is what was lost", || saved(&house, ".lost.json") == 1).await;
    let said = agent.ok("restore", json!({"sessionId": "web"})).await.text;
    assert_eq!(said, "Brought back 2 pages.\nt3 http://a.test/one (current)\nt4 http://b.test/two");
    assert_whole(&agent).await;
    assert_eq!(agent.code("restore", json!({})).await, Code::BadArgument, "once");
    agent.ok("close_session", json!({})).await;
    eventually("nothing of it is left", || saved(&house, "") == 0).await;
}

/// A restore makes the one context that it brings everything back in; so a copy reads no source for it, and misses none that is gone.
#[tokio::test]
async fn a_copy_that_comes_back_needs_no_source() {
    let house = saving();
    let agent = house.agent("a");
    busy(&agent).await;
    agent.ok("start_browser", json!({"sessionId": "copy", "from": "web", "navigationUrl": "http://a.test/copied"})).await;
    eventually("it is saved", || texts(&house).contains("copied") && saved(&house, ".json") == 2).await;
    agent.ok("close_session", json!({"sessionId": "web"})).await;
    agent.eval("copy", "endBrowser()").await.unwrap_err();
    let said = agent.ok("restore", json!({"sessionId": "copy"})).await.text;
    assert_eq!(said, "Brought back 1 page.\nt2 http://a.test/copied (current)");
    assert_eq!(agent.eval("copy", "document.cookie").await.unwrap().trim_matches('"'), "token=1");
}

/// Once what did not come back was said, the session misses it no more.
#[tokio::test]
async fn what_was_never_saved_is_said_by_the_first_restore_only() {
    let house = saving();
    let agent = house.agent("a");
    busy(&agent).await;
    eventually("it is saved", || ["token", "ann", "two", "\"current\":0"].iter().all(|word| texts(&house).contains(word))).await;
    let file = house.dir.path().join(format!("state/saved/{}.json", house.hub.look(|registry| registry.records().next().unwrap().id)));
    let mut saved: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    saved["missing"] = json!({"http://slow.test": ["it was not read in time"]});
    std::fs::write(&file, saved.to_string()).unwrap();
    agent.eval("web", "endBrowser()").await.unwrap_err();
    let said = agent.ok("restore", json!({"sessionId": "web"})).await.text;
    assert!(said.contains("not brought back: http://slow.test: it was not read in time."), "{said}");
    agent.eval("web", "endBrowser()").await.unwrap_err();
    let said = agent.ok("restore", json!({"sessionId": "web"})).await.text;
    assert!(said.starts_with("Brought back 2 pages."), "{said}");
    assert_whole(&agent).await;
}

/// What the session did since it began afresh is given up for it, and said; so is what was saved of that.
#[tokio::test]
async fn what_a_restore_gives_up_is_named() {
    let house = saving();
    let agent = house.agent("a");
    busy(&agent).await;
    eventually("it is saved", || ["token", "ann", "two", "\"current\":0"].iter().all(|word| texts(&house).contains(word))).await;
    agent.eval("web", "endBrowser()").await.unwrap_err();
    agent.fault("navigate", json!({"sessionId": "web", "url": "http://c.test/"})).await;
    agent.ok("navigate", json!({"sessionId": "web", "url": "http://c.test/since"})).await;
    agent.ok("new_page", json!({"sessionId": "web"})).await;
    eventually("the fresh one is saved", || texts(&house).contains("since")).await;
    let said = agent.ok("restore", json!({"sessionId": "web"})).await.text;
    let named = "Given up for what was lost, with cookies and storage since the crash: t3 http://c.test/since.";
    assert!(said.contains(named) && said.contains("Brought back 2 pages.\nt5 http://a.test/one"), "{said}");
    assert_whole(&agent).await;
    assert!(!texts(&house).contains("since"), "what is saved now is what came back");
}

/// The browser of the session that began afresh is lost too, before anybody brought back what was lost with the first.
async fn lost_again(house: &House, agent: &Agent, since: Option<&str>) {
    busy(agent).await;
    eventually("it is saved", || ["token", "ann", "two", "\"current\":0"].iter().all(|word| texts(house).contains(word))).await;
    agent.eval("web", "endBrowser()").await.unwrap_err();
    agent.fault("list_pages", json!({"sessionId": "web"})).await;
    agent.ok("new_page", json!({"sessionId": "web", "url": since})).await;
    eventually("the fresh one is saved", || texts(house).contains(since.unwrap_or("about:blank"))).await;
    agent.eval("web", "endBrowser()").await.unwrap_err();
}

#[tokio::test]
async fn what_was_lost_first_comes_back_first_and_what_was_lost_after_that_is_kept() {
    let house = saving();
    let agent = house.agent("a");
    lost_again(&house, &agent, Some("http://c.test/since")).await;
    let said = agent.ok("restore", json!({"sessionId": "web"})).await.text;
    assert!(said.contains("Brought back 2 pages.") && said.contains("restore again brings that back"), "{said}");
    assert_whole(&agent).await;
    let said = agent.ok("restore", json!({"sessionId": "web"})).await.text;
    assert!(said.contains("Brought back 1 page.") && !said.contains("restore again"), "{said}");
    assert_eq!(pages(&agent).await, [("http://c.test/since".to_owned(), true)]);
    assert_eq!(agent.code("restore", json!({"sessionId": "web"})).await, Code::BadArgument);
}

#[tokio::test]
async fn an_empty_session_never_takes_the_place_of_what_was_lost() {
    let house = saving();
    let agent = house.agent("a");
    lost_again(&house, &agent, None).await;
    let said = agent.ok("restore", json!({"sessionId": "web"})).await.text;
    assert!(said.contains("Brought back 2 pages.") && !said.contains("restore again"), "{said}");
    assert_whole(&agent).await;
}

/// Once it is back, it is the session: what it loses from then on comes back first, and what was kept beside it is over.
#[tokio::test]
async fn what_came_back_and_is_lost_again_comes_back_before_what_was_kept() {
    let house = saving();
    let agent = house.agent("a");
    lost_again(&house, &agent, Some("http://c.test/since")).await;
    agent.ok("restore", json!({"sessionId": "web"})).await;
    agent.eval("web", "endBrowser()").await.unwrap_err();
    let said = agent.ok("restore", json!({"sessionId": "web"})).await.text;
    assert!(said.contains("Brought back 2 pages.") && !said.contains("restore again"), "{said}");
    assert_whole(&agent).await;
}

#[tokio::test]
async fn what_was_lost_twice_and_never_brought_back_ends_with_the_session() {
    let house = saving();
    let agent = house.agent("a");
    lost_again(&house, &agent, Some("http://c.test/since")).await;
    eventually("both are kept", || saved(&house, ".json") == 2).await;
    agent.ok("close_session", json!({"sessionId": "web"})).await;
    eventually("nothing of it is left", || saved(&house, "") == 0).await;
}

/// That the browser is gone is said, also where the first call is one that could have brought everything back.
#[tokio::test]
async fn a_restore_that_has_nothing_to_bring_back_says_that_the_browser_crashed() {
    let house = House::with(|settings| settings.clocks.session_save = None);
    let agent = house.agent("a");
    busy(&agent).await;
    agent.ok("start_browser", json!({"sessionId": "other", "navigationUrl": "http://a.test/"})).await;
    agent.eval("other", "endBrowser()").await.unwrap_err();
    assert_eq!(agent.code("restore", json!({"sessionId": "web"})).await, Code::BrowserCrashed);
    assert_eq!(agent.code("restore", json!({"sessionId": "web"})).await, Code::BadArgument, "once");
}

/// Where no page is any more: what it left, what it changed before it left, and what it began with and never went to.
#[tokio::test]
async fn what_is_kept_where_no_page_is_comes_back_too() {
    // Longer than two calls take, so that it is not at rest in between.
    let house = House::with(|settings| settings.clocks.session_save = Some(Duration::from_secs(1)));
    let file = house.dir.path().join("state.json");
    let begun = json!({"origins": [{"origin": "http://never.test", "localStorage": [{"name": "user", "value": "eve"}]}]});
    std::fs::write(&file, begun.to_string()).unwrap();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "web", "from": file, "navigationUrl": "http://a.test/"})).await;
    agent.ok("storage", json!({"set": {"user": "ann"}})).await;
    agent.ok("navigate", json!({"url": "http://b.test/"})).await;
    agent.ok("storage", json!({"set": {"user": "bob"}})).await;
    eventually("it is saved", || ["ann", "bob", "eve"].iter().all(|user| texts(&house).contains(user))).await;
    agent.ok("storage", json!({"set": {"user": "cat"}})).await;
    agent.ok("navigate", json!({"url": "http://c.test/"})).await;
    eventually("it is saved", || texts(&house).contains("cat")).await;
    let back = async || {
        agent.eval("web", "endBrowser()").await.unwrap_err();
        assert_eq!(agent.ok("restore", json!({"sessionId": "web"})).await.text.lines().next(), Some("Brought back 1 page."));
        for (site, user) in [("a", "ann"), ("b", "cat"), ("never", "eve")] {
            agent.ok("navigate", json!({"url": format!("http://{site}.test/")})).await;
            assert_eq!(kept(&agent, "local").await, json!(user), "{site}");
        }
    };
    back().await;
    // Also when it has not rested since.
    back().await;
}

/// Calls come faster than the rest that saving waits for.
#[tokio::test]
async fn a_session_that_never_rests_is_saved_all_the_same() {
    let house = House::with(|settings| settings.clocks.session_save = Some(Duration::from_millis(100)));
    let agent = house.agent("a");
    busy(&agent).await;
    let restless = async {
        while !["ann", "one", "two"].iter().all(|word| texts(&house).contains(word)) {
            agent.eval("web", "1").await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), restless).await.expect("it is saved while calls go on");
}

/// However long it should rest, it is saved where it lives now: a crash right after a move loses no login.
#[tokio::test]
async fn a_session_that_moved_is_saved_at_once() {
    let house = House::with(|settings| settings.clocks.session_save = Some(Duration::from_secs(3600)));
    let agent = house.agent("a");
    busy(&agent).await;
    agent.ok("migrate", json!({"sessionId": "web", "isolation": "browser"})).await;
    eventually("it is saved", || ["token", "ann", "one", "two"].iter().all(|word| texts(&house).contains(word))).await;
    agent.eval("web", "endBrowser()").await.unwrap_err();
    let said = agent.ok("restore", json!({"sessionId": "web"})).await.text;
    assert!(said.starts_with("Brought back 2 pages."), "{said}");
    assert_whole(&agent).await;
}

/// Who saved it where it was must not take what stirs it where it is now.
#[tokio::test]
async fn a_session_that_moved_is_saved_after_one_rest_as_any_other() {
    let rest = Duration::from_secs(10);
    let house = House::with(|settings| settings.clocks.session_save = Some(rest));
    let agent = house.agent("a");
    busy(&agent).await;
    agent.ok("migrate", json!({"sessionId": "web", "isolation": "browser"})).await;
    eventually("the move is saved", || texts(&house).contains("two")).await;
    agent.ok("storage", json!({"sessionId": "web", "set": {"user": "later"}})).await;
    house.on_disk().await;
    tokio::time::pause();
    tokio::time::sleep(rest + Duration::from_secs(1)).await;
    eventually("what was done since is saved", || texts(&house).contains("later")).await;
}

/// Only that: one that rests soon is not read again and again while it is busy.
#[tokio::test]
async fn a_session_is_saved_when_it_rests_or_after_five_times_that() {
    let house = House::with(|settings| settings.clocks.session_save = Some(Duration::from_secs(10)));
    let agent = house.agent("a");
    busy(&agent).await;
    house.on_disk().await;
    tokio::time::pause();
    for second in 0..60 {
        assert!(second > 45 || saved(&house, ".json") == 0, "{second}");
        agent.eval("web", "1").await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(saved(&house, ".json"), 1);
}

/// Of an origin that no page is at any more, what was read when one was; and with the session all of it goes.
#[tokio::test]
async fn what_is_saved_has_every_origin_and_ends_with_the_session() {
    let house = saving();
    let agent = house.agent("a");
    busy(&agent).await;
    agent.ok("select_page", json!({"pageIdx": 1})).await;
    agent.ok("storage", json!({"set": {"user": "bob"}})).await;
    let is_saved = |words: &[&str]| words.iter().all(|word| texts(&house).contains(word));
    eventually("both pages' storage is saved", || is_saved(&["ann", "bob"])).await;
    agent.ok("navigate", json!({"url": "http://c.test/"})).await;
    agent.ok("storage", json!({"set": {"user": "cid"}})).await;
    eventually("the third is saved with the one that was left", || is_saved(&["ann", "bob", "cid"])).await;
    agent.ok("close_session", json!({})).await;
    assert_eq!(saved(&house, ""), 0);
}

/// Whoever lists sessions learns which lost their browser, and whether there is a way back.
#[tokio::test]
async fn a_lost_session_is_listed_as_lost_until_it_goes_on() {
    let house = saving();
    let (agent, operator) = (house.agent("a"), house.operator());
    let listed = async || agent.ok("list_sessions", json!({})).await;
    let first = |list: &Value| list["sessions"][0].clone();
    busy(&agent).await;
    assert_eq!(first(&listed().await.structured.unwrap())["state"], json!("active"));
    eventually("it is saved", || texts(&house).contains("two")).await;
    agent.eval("web", "endBrowser()").await.unwrap_err();
    let (said, everybodys) = (listed().await, house.hub.sessions(operator.client, true).await.unwrap());
    for seen in [first(said.structured.as_ref().unwrap()), first(&everybodys)] {
        assert_eq!((&seen["state"], &seen["tabs"]), (&json!("lost"), &json!(0)));
        assert!(seen["hint"].as_str().unwrap().contains("restore brings back"), "{seen}");
    }
    assert!(said.text.contains("lost. Its browser was lost; restore brings back"), "{}", said.text);
    assert_eq!(agent.eval("web", "1").await.unwrap_err().code, Code::BrowserCrashed, "said once");
    agent.ok("navigate", json!({"sessionId": "web", "url": "http://a.test/"})).await;
    let seen = first(&listed().await.structured.unwrap());
    assert_eq!((&seen["state"], seen.get("hint")), (&json!("active"), None));
}

#[tokio::test]
async fn of_a_lost_session_that_was_never_saved_no_way_back_is_promised() {
    let house = House::with(|settings| settings.clocks.session_save = None);
    let agent = house.agent("a");
    busy(&agent).await;
    agent.eval("web", "endBrowser()").await.unwrap_err();
    let text = agent.ok("list_sessions", json!({})).await.text;
    assert!(text.contains("lost. Its browser was lost; the next call starts it afresh."), "{text}");
}

/// Saving is never in a caller's way, and what ended leaves nothing.
#[tokio::test]
async fn what_was_saved_of_a_session_that_is_gone_is_removed_at_the_start() {
    let house = saving();
    let agent = house.agent("a");
    busy(&agent).await;
    eventually("it is saved", || saved(&house, ".json") == 1).await;
    let directory = house.dir.path().join("state/saved");
    std::fs::write(directory.join("sess_ffffffff.json"), "{}").unwrap();
    crate::session::sweep_saved(
        &house.dir.path().join("state"),
        house.hub.look(|registry| registry.records().map(|session| session.id).collect::<Vec<_>>()).into_iter(),
    );
    assert_eq!(saved(&house, ".json"), 1);
    assert!(!directory.join("sess_ffffffff.json").exists());
}
