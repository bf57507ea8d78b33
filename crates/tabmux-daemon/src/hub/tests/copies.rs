//! Sessions that begin with somebody's logins: which source is meant, one reading for all who come at once, seats, and what is
//! left when it goes wrong.

use std::time::Duration;

use serde_json::{Value, json};
use tabmux_core::{Code, Identity, Link};
use tabmux_driver::Footprint;

use crate::hub::Profile;
use crate::profiles::Taken;
use crate::session::Lasting;
use crate::testing::{Agent, House, Mood, Said, eventually};

/// A session with a cookie and an item of storage.
async fn logged_in(agent: &Agent, name: &str) {
    agent.ok("start_browser", json!({"sessionId": name, "navigationUrl": "http://a.test/"})).await;
    agent.eval(name, &format!("document.cookie = \"token={name}\"")).await.unwrap();
    agent.ok("storage", json!({"sessionId": name, "set": {"user": name}})).await;
}

async fn start(agent: &Agent, name: &str, from: &str) -> Said {
    agent.ok("start_browser", json!({"sessionId": name, "from": from, "navigationUrl": "http://a.test/"})).await
}

/// What a session has at http://a.test/: its cookie and its storage.
async fn has(agent: &Agent, name: &str) -> (String, Value) {
    let cookie = agent.eval(name, "document.cookie").await.unwrap();
    let storage = agent.ok("storage", json!({"sessionId": name})).await.structured.unwrap();
    (cookie.trim_matches('"').to_owned(), storage["items"][0]["value"].clone())
}

fn clones(house: &House) -> usize {
    house.hub.look(|registry| registry.counts().clones)
}

fn state(token: &str) -> Value {
    json!({
        "cookies": [{"name": "token", "value": token, "domain": "a.test", "path": "/", "expires": -1}],
        "origins": [{"origin": "http://a.test", "localStorage": [{"name": "user", "value": token}]}],
    })
}

/// S3.2, S3.35: at its first page the copy has what the source had, and from then on each its own.
#[tokio::test]
async fn a_copy_begins_with_its_sources_logins_and_the_source_stays_as_it_is() {
    let house = House::new();
    let agent = house.agent("a");
    logged_in(&agent, "main").await;
    let said = start(&agent, "copy", "main").await;
    assert!(said.text.starts_with("Started browser session copy, a copy of session:main."), "{}", said.text);
    assert_eq!((&said.result["from"], clones(&house)), (&json!("session:main"), 1));
    assert_eq!(has(&agent, "copy").await, ("token=main".into(), json!("main")));
    agent.ok("cookies", json!({"sessionId": "copy", "clear": true})).await;
    agent.ok("storage", json!({"sessionId": "copy", "clear": true})).await;
    assert_eq!(has(&agent, "main").await, ("token=main".into(), json!("main")), "a logout in the copy changes nothing there");
    let listed = agent.ok("list_sessions", json!({})).await;
    let from: Vec<Value> = listed.structured.unwrap()["sessions"].as_array().unwrap().iter().map(|row| row["from"].clone()).collect();
    assert_eq!(from, [Value::Null, json!("session:main")]);
    assert!(listed.text.contains("copy of session:main"), "{}", listed.text);
}

/// As a fork does: what it is logged in at may know it by its address.
#[tokio::test]
async fn a_copy_goes_through_its_sources_proxy_unless_told_another() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    let proxied = json!({"sessionId": "main", "proxy": "http://ann:hunter2@proxy.test:3128", "navigationUrl": "http://a.test/"});
    agent.ok("start_browser", proxied).await;
    agent.ok("start_browser", json!({"from": "main"})).await;
    agent.ok("start_browser", json!({"from": "main", "proxy": "http://other.test:1"})).await;
    let used: Vec<_> = browser.specs().into_iter().filter_map(|spec| spec.proxy).collect();
    let used: Vec<_> = used.iter().map(|proxy| (proxy.server.as_str(), proxy.credentials.is_some())).collect();
    assert_eq!(used, [("http://proxy.test:3128", true), ("http://proxy.test:3128", true), ("http://other.test:1", false)]);
}

/// S3.3, S3.20: everybody who comes before the cookies are read shares that reading.
#[tokio::test]
async fn concurrent_opens_of_one_source_share_one_reading() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    logged_in(&agent, "main").await;
    browser.reads(&[Mood::Wait]);
    let mut opening = Vec::new();
    for number in 0..3 {
        opening.push(agent.begin("start_browser", json!({"sessionId": format!("c{number}"), "from": "main"})).await);
    }
    eventually("all of them are asked for", || browser.asked() == 4).await;
    assert_eq!((browser.read(), clones(&house)), (1, 3));
    browser.let_go();
    for copy in opening {
        copy.await.unwrap().unwrap();
    }
    assert_eq!(browser.read(), 1);
    agent.eval("main", "document.cookie = \"token=later\"").await.unwrap();
    start(&agent, "later", "main").await;
    assert_eq!((has(&agent, "later").await.0.as_str(), browser.read()), ("token=later", 2), "who comes later gets what is there then");
}

/// S3.19, S3.20, S3.21, S3.22
#[tokio::test]
async fn ten_copies_in_the_making_are_all_there_can_be_and_the_others_go_on() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    logged_in(&agent, "main").await;
    browser.reads(&[Mood::Wait]);
    let mut opening = Vec::new();
    for number in 0..10 {
        opening.push(agent.begin("start_browser", json!({"sessionId": format!("c{number}"), "from": "main"})).await);
    }
    let fault = agent.fault("start_browser", json!({"sessionId": "eleventh", "from": "main"})).await;
    assert_eq!((fault.code, fault.message.as_str()), (Code::Capacity, "All 10 cloned sessions are in use (limits.max_clones)."));
    assert_eq!((clones(&house), house.sessions()), (10, 11), "nothing of the eleventh is left");
    agent.ok("start_browser", json!({"sessionId": "plain"})).await;
    browser.let_go();
    for copy in opening {
        copy.await.unwrap().unwrap();
    }
    assert_eq!(agent.code("start_browser", json!({"from": "main"})).await, Code::Capacity);
    assert_eq!(agent.eval("c3", "location.href").await.unwrap().trim_matches('"'), "about:blank", "those there are can be used");
    agent.ok("close_session", json!({"sessionId": "c3"})).await;
    start(&agent, "eleventh", "main").await;
    assert_eq!(clones(&house), 10);
}

/// S3.23: whether the reading ends or not.
#[tokio::test]
async fn disposing_a_copy_while_its_source_is_read_leaves_nothing() {
    for mood in [Mood::Wait, Mood::Hang] {
        let (house, browser) = House::stubborn();
        let agent = house.agent("a");
        logged_in(&agent, "main").await;
        browser.reads(&[mood]);
        let opening = agent.begin("start_browser", json!({"sessionId": "copy", "from": "main"})).await;
        eventually("it is read", || browser.read() == 1).await;
        let closing = agent.begin("close_session", json!({"sessionId": "copy"})).await;
        assert_eq!(opening.await.unwrap().unwrap_err().code, Code::SessionClosed);
        assert_eq!(clones(&house), 0, "its seat is free at once");
        if mood == Mood::Wait {
            browser.let_go();
        }
        closing.await.unwrap().unwrap();
        eventually("only the source is left", || house.sessions() == 1 && browser.open() == 1).await;
        start(&agent, "copy", "main").await;
        assert_eq!(has(&agent, "copy").await.0, "token=main");
    }
}

/// S3.25: a source that cannot be read, a browser that makes no context, a first page that fails.
#[tokio::test]
async fn a_copy_that_comes_to_nothing_gives_its_seat_back() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    logged_in(&agent, "main").await;
    for mood in [Mood::Fail, Mood::Panic] {
        browser.reads(&[mood]);
        agent.fault("start_browser", json!({"sessionId": "copy", "from": "main"})).await;
        eventually("nothing of it is left", || house.sessions() == 1 && browser.open() == 1).await;
        browser.opens(&[mood]);
        agent.fault("start_browser", json!({"sessionId": "copy", "from": "main"})).await;
        eventually("nothing of it is left", || house.sessions() == 1 && browser.open() == 1).await;
    }
    let failing = json!({"sessionId": "copy", "from": "main", "navigationUrl": "http://fail.test/"});
    assert_eq!(agent.code("start_browser", failing).await, Code::NavigationFailed);
    eventually("nothing of it is left", || house.sessions() == 1 && browser.open() == 1).await;
    assert_eq!(clones(&house), 0);
    let waiting = agent.begin("start_browser", json!({"sessionId": "copy", "from": "main"})).await;
    waiting.abort();
    eventually("nor of one whose caller gave up", || house.sessions() == 1).await;
    assert_eq!(has(&agent, "main").await.0, "token=main");
}

/// S3.14: a foreign session is no source, and answers like none.
#[tokio::test]
async fn only_a_session_of_ones_own_is_a_source_and_the_operator_has_everybodys() {
    let house = House::new();
    let (agent, stranger, operator) = (house.agent("a"), house.agent("b"), house.operator());
    logged_in(&agent, "main").await;
    let id =
        house.hub.look(|registry| registry.records().next().map(|session| (session.id.to_string(), session.uuid.to_string()))).unwrap();
    for text in ["main", "nowhere", &id.0, &id.1, "session:main"] {
        let fault = stranger.fault("start_browser", json!({"from": text})).await;
        assert_eq!(fault.code, Code::SessionNotFound, "{text}: {fault}");
        assert!(!fault.hint.contains("main"), "{fault}");
    }
    for (number, text) in ["main", &id.0, &id.1, "session:main"].into_iter().enumerate() {
        start(&operator, &format!("o{number}"), text).await;
        start(&agent, &format!("a{number}"), text).await;
        assert_eq!(has(&operator, &format!("o{number}")).await.0, "token=main");
    }
    assert_eq!(stranger.ok("list_sessions", json!({})).await.structured.unwrap()["sessions"], json!([]));
}

#[tokio::test]
async fn a_source_that_is_nowhere_is_answered_with_what_there_is() {
    let house = House::new();
    let agent = house.agent("a");
    let fault = agent.fault("start_browser", json!({"from": "work"})).await;
    assert_eq!(
        fault.to_string(),
        "[session_not_found] There is no session and no profile 'work' to copy from. No sessions. \
         There are no profiles yet: `tabmux profile new`, `login` or `import` makes one."
    );
    house.hub.profiles().create("home", &crate::storage_state::parse(&state("1")).unwrap(), None).unwrap();
    logged_in(&agent, "main").await;
    let fault = agent.fault("start_browser", json!({"from": "work"})).await;
    assert_eq!(fault.hint, "Sessions: main. Profiles: home.");
    assert_eq!(agent.fault("start_browser", json!({"from": "profile:work"})).await.message, "There is no profile 'work'.");
    agent.ok("start_browser", json!({"sessionId": "empty"})).await;
    agent.ok("close_page", json!({"sessionId": "empty", "pageIdx": 0})).await;
    start(&agent, "of-empty", "empty").await;
    assert_eq!(agent.code("start_browser", json!({"from": "main", "isolation": "tab"})).await, Code::Unsupported);
    assert_eq!(agent.code("start_browser", json!({"from": "main", "isolation": "window"})).await, Code::Unsupported);
    start(&agent, "apart", "profile:home").await;
}

/// S3.1, S3.2: profiles by name and by uuid; a session of the same name comes first, and the answer says which it was.
#[tokio::test]
async fn profiles_and_sessions_of_one_name_are_told_apart() {
    let house = House::new();
    let agent = house.agent("a");
    let profile = house.hub.profiles().create("work", &crate::storage_state::parse(&state("kept")).unwrap(), None).unwrap();
    for (number, from) in ["work", "profile:work", &profile.uuid].into_iter().enumerate() {
        let name = format!("p{number}");
        assert_eq!(start(&agent, &name, from).await.result["from"], json!("profile:work"));
        assert_eq!(has(&agent, &name).await, ("token=kept".into(), json!("kept")));
        agent.ok("cookies", json!({"sessionId": name, "clear": true})).await;
    }
    logged_in(&agent, "work").await;
    assert_eq!(start(&agent, "s", "work").await.result["from"], json!("session:work"));
    assert_eq!(has(&agent, "s").await.0, "token=work");
    start(&agent, "again", "profile:work").await;
    assert_eq!(has(&agent, "again").await.0, "token=kept", "the profile stays as it was");
}

#[tokio::test]
async fn a_storage_state_is_a_source_as_a_file_or_as_it_is() {
    let house = House::new();
    let agent = house.agent("a");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("state.json");
    std::fs::write(&file, state("file").to_string()).unwrap();
    let said = start(&agent, "f", file.to_str().unwrap()).await;
    assert_eq!(said.result["from"], json!(format!("file:{}", file.display())));
    assert_eq!(has(&agent, "f").await, ("token=file".into(), json!("file")));
    let said = start(&agent, "g", &state("given").to_string()).await;
    assert_eq!((said.result["from"].as_str(), said.text.contains("token")), (Some("file"), false), "{}", said.text);
    assert_eq!(has(&agent, "g").await.0, "token=given");
    house.on_disk().await;
    let journal = std::fs::read_to_string(house.dir.path().join("state/journal.jsonl")).unwrap();
    assert!(journal.contains("\"source\":\"file\"") && !journal.contains("given"), "logins are never written down: {journal}");
    let private = house.dir.path().join("state/profiles/x/state.json");
    for (from, code) in [
        ("state.json".to_owned(), Code::BadArgument),
        ("/nowhere/state.json".to_owned(), Code::BadArgument),
        (dir.path().display().to_string(), Code::BadArgument),
        (private.display().to_string(), Code::PolicyDenied),
        ("{\"cookies\": 1}".to_owned(), Code::BadArgument),
        ("{}".to_owned(), Code::BadArgument),
        ("/proc/self/pagemap".to_owned(), Code::BadArgument),
    ] {
        assert_eq!(agent.code("start_browser", json!({"from": from})).await, code, "{from}");
    }
    std::fs::write(&file, "{\"cookies\": [{\"name\": 5}]}").unwrap();
    let fault = agent.fault("start_browser", json!({"from": file})).await;
    assert!(fault.message.ends_with("cannot be used: cookies[0].name: invalid type: integer `5`, expected a string."), "{fault}");
    assert_eq!(clones(&house), 2);
}

/// It had pages: what helps is bringing them back. That it is lost is still said to whoever calls it.
#[tokio::test]
async fn of_a_lost_session_it_is_said_that_it_is_lost_and_how_it_comes_back() {
    for (save, way_out) in [(Some(Duration::from_millis(1)), "Call restore in it"), (None, "Nothing of it was saved.")] {
        let house = House::with(|settings| settings.clocks.session_save = save);
        let agent = house.agent("a");
        logged_in(&agent, "main").await;
        let saved = house.dir.path().join("state/saved");
        let is_saved =
            || std::fs::read_dir(&saved).into_iter().flatten().flatten().any(|entry| entry.path().extension() == Some("json".as_ref()));
        eventually("it is saved", || save.is_none() || is_saved()).await;
        agent.ok("start_browser", json!({"sessionId": "other", "navigationUrl": "http://a.test/"})).await;
        agent.eval("other", "endBrowser()").await.unwrap_err();
        eventually("each session knows", || house.hub.look(|registry| registry.counts().lost) == 2).await;
        for (tool, args) in [("start_browser", json!({"from": "main"})), ("fork", json!({"sessionId": "main"}))] {
            let fault = agent.fault(tool, args).await;
            assert_eq!(fault.message, "Session 'main' lost its browser, and its logins with it.", "{tool}");
            assert!(fault.code == Code::BrowserCrashed && fault.hint.starts_with(way_out), "{tool}: {fault}");
        }
        assert_eq!(clones(&house), 0);
        assert_eq!(agent.eval("main", "1").await.unwrap_err().code, Code::BrowserCrashed);
        agent.ok("navigate", json!({"sessionId": "main", "url": "http://a.test/"})).await;
    }
}

/// `tabmux mcp --from work`: also for the session that the first navigation makes.
#[tokio::test]
async fn a_peer_that_comes_with_a_source_begins_every_session_with_it() {
    let house = House::new();
    house.hub.profiles().create("work", &crate::storage_state::parse(&state("kept")).unwrap(), Some(Taken::AtLogin)).unwrap();
    let defaults = json!({"from": "work"}).as_object().cloned().unwrap();
    let profile = Profile { defaults, ..Profile::default() };
    let agent = house.agent_with(Identity::Secret("a".into()), Link::Connection, profile);
    agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    assert_eq!(has(&agent, "browser-1").await, ("token=kept".into(), json!("kept")));
    assert_eq!(clones(&house), 1);
}

/// A copy that loses its browser begins with its source again, where that is still to be had, and says where not.
#[tokio::test]
async fn a_copy_that_lost_its_browser_begins_with_its_source_again() {
    let house = House::new();
    let agent = house.agent("a");
    house.hub.profiles().create("work", &crate::storage_state::parse(&state("kept")).unwrap(), None).unwrap();
    logged_in(&agent, "main").await;
    start(&agent, "of-profile", "profile:work").await;
    start(&agent, "of-session", "main").await;
    assert_eq!(agent.eval("main", "endBrowser()").await.unwrap_err().code, Code::BrowserCrashed);
    for name in ["of-profile", "of-session"] {
        eventually("it is told", || house.hub.look(|registry| registry.list_all().iter().all(|listed| listed.session.context.is_none())))
            .await;
        assert_eq!(agent.eval(name, "1").await.unwrap_err().code, Code::BrowserCrashed, "{name}");
    }
    agent.ok("navigate", json!({"sessionId": "of-profile", "url": "http://a.test/"})).await;
    assert_eq!(has(&agent, "of-profile").await, ("token=kept".into(), json!("kept")));
    let said = agent.ok("navigate", json!({"sessionId": "of-session", "url": "http://a.test/"})).await.text;
    assert!(said.starts_with("It starts without the logins of session:main: Session 'main' lost its browser"), "{said}");
    assert_eq!(has(&agent, "of-session").await.0, "");
}

/// Whoever finds out that a session's browser is gone, its own next call says so.
#[tokio::test]
async fn a_source_that_a_copy_finds_lost_says_so_itself_too() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    logged_in(&agent, "main").await;
    start(&agent, "copy", "main").await;
    browser.adopts(&[Mood::Fail, Mood::Fail]);
    let next = house.killed_and_started_beside(&browser).await;
    let agent = next.agent("a");
    assert_eq!(agent.eval("copy", "1").await.unwrap_err().code, Code::BrowserCrashed);
    let said = agent.ok("navigate", json!({"sessionId": "copy", "url": "http://a.test/"})).await.text;
    assert!(said.starts_with("It starts without the logins of session:main: "), "{said}");
    assert_eq!(agent.eval("main", "1").await.unwrap_err().code, Code::BrowserCrashed);
    agent.ok("navigate", json!({"sessionId": "main", "url": "http://a.test/"})).await;
}

/// Two that find out at once: neither opens it anew, which only a call of its own does.
#[tokio::test]
async fn who_reads_a_source_that_is_lost_opens_nothing_in_it() {
    let (house, browser) = House::stubborn();
    logged_in(&house.agent("a"), "main").await;
    browser.adopts(&[Mood::Fail]);
    let next = house.killed_and_started_beside(&browser).await;
    let main = next.session();
    let (one, other) = futures::join!(main.source(), main.source());
    assert_eq!([one.err(), other.err()].map(|fault| fault.map(|fault| fault.code)), [Some(Code::BrowserCrashed); 2]);
    assert!(next.hub.look(|registry| registry.records().all(tabmux_core::Session::is_lost)));
    assert_eq!(browser.asked(), 1, "only the former daemon asked for a context");
    assert_eq!(next.agent("a").eval("main", "1").await.unwrap_err().code, Code::BrowserCrashed, "its own call is told");
}

/// S3.14: whoever takes a session over is not copied by those who had copies of it before.
#[tokio::test]
async fn a_copy_that_lost_its_browser_does_not_begin_with_what_another_drives_by_now() {
    let house = House::new();
    let (agent, other) = (house.agent("a"), house.agent("b"));
    logged_in(&agent, "main").await;
    start(&agent, "copy", "main").await;
    let capability = agent.ok("share_session", json!({"sessionId": "main", "mode": "hand_over"})).await.result["capability"].clone();
    other.ok("list_pages", json!({"sessionId": capability})).await;
    assert_eq!(other.eval("main", "endBrowser()").await.unwrap_err().code, Code::BrowserCrashed);
    eventually("both are lost", || house.hub.look(|registry| registry.records().all(tabmux_core::Session::is_lost))).await;
    assert_eq!(other.eval("main", "1").await.unwrap_err().code, Code::BrowserCrashed);
    other.ok("navigate", json!({"sessionId": "main", "url": "http://a.test/"})).await;
    other.eval("main", "document.cookie = \"token=others\"").await.unwrap();
    assert_eq!(agent.eval("copy", "1").await.unwrap_err().code, Code::BrowserCrashed);
    let said = agent.ok("navigate", json!({"sessionId": "copy", "url": "http://a.test/"})).await.text;
    assert!(said.starts_with("It starts without the logins of session:main: session:main was handed over"), "{said}");
    assert_eq!(has(&agent, "copy").await.0, "");
}

/// S3.35: the next daemon knows what a session is a copy of.
#[tokio::test]
async fn what_a_session_is_a_copy_of_outlives_the_daemon() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    logged_in(&agent, "main").await;
    start(&agent, "copy", "main").await;
    let next = house.killed_and_started_beside(&browser).await;
    let listed = next.agent("a").ok("list_sessions", json!({})).await.structured.unwrap();
    assert_eq!((&listed["sessions"][1]["sessionId"], &listed["sessions"][1]["from"]), (&json!("copy"), &json!("session:main")));
    assert_eq!(clones(&next), 1, "and it keeps its seat");
}

/// Where it is opened, and not again later.
#[tokio::test]
async fn what_a_copy_could_not_take_is_said_where_it_is_opened() {
    let house = House::new();
    let agent = house.agent("a");
    let mut much = state("kept");
    let huge = json!({"name": "huge", "value": "x".repeat(5000), "domain": "a.test", "path": "/", "expires": -1});
    much["cookies"].as_array_mut().unwrap().push(huge);
    house.hub.profiles().create("work", &crate::storage_state::parse(&much).unwrap(), None).unwrap();
    let said = start(&agent, "copy", "work").await.text;
    assert!(said.contains("Not copied into this session: ") && said.contains("huge of a.test"), "{said}");
    assert_eq!(agent.eval("copy", "document.cookie").await.unwrap(), "\"token=kept\"", "nothing is said twice");
}

/// A copy that nobody has used since the restart is found again, to read its source before that is closed.
#[tokio::test]
async fn a_source_stays_until_a_copy_that_a_former_daemon_left_unfinished_goes_on() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    logged_in(&agent, "main").await;
    start(&agent, "copy", "main").await;
    house.hub.decide_now(|registry, _| {
        let copy = registry.records().find(|session| session.name == "copy").unwrap();
        let (id, mut lasting) = (copy.id, Lasting::read(copy));
        lasting.spec.footprint.pending = vec!["http://a.test".to_owned()];
        registry.set_settings(id, &lasting.written());
    });
    let next = house.killed_and_started_beside(&browser).await;
    // First the source, which the copy reads, then the copy itself.
    browser.adopts(&[Mood::Good, Mood::Wait]);
    let closing = next.agent("a").begin("close_session", json!({"sessionId": "main"})).await;
    eventually("the copy is looked for", || browser.adopts_left() == 0).await;
    assert_eq!(browser.open(), 2);
    browser.let_go();
    closing.await.unwrap().unwrap();
    assert_eq!(browser.open(), 1);
}

/// A copy that is lost reads nothing any more: it keeps its name, and nothing is opened for it, when its source is closed.
#[tokio::test]
async fn a_lost_copy_is_left_as_it_is_when_its_source_ends() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    logged_in(&agent, "main").await;
    let _pending = browser.tells_footprint(Footprint { pending: vec!["http://a.test".into()], ..Footprint::default() });
    start(&agent, "copy", "main").await;
    agent.eval("copy", "endBrowser()").await.unwrap_err();
    eventually("both are lost", || house.hub.look(|registry| registry.counts().lost == 2)).await;
    agent.ok("close_session", json!({"sessionId": "main"})).await;
    eventually("the source is gone", || house.sessions() == 1).await;
    assert_eq!((house.hub.look(|registry| registry.counts().lost), browser.asked()), (1, 2));
}

/// What was only told is kept on disk, for its owner alone, as long as some of it has not arrived; what can be read again is not.
#[tokio::test]
async fn what_was_given_is_kept_until_all_of_it_has_arrived() {
    let (house, browser) = House::stubborn();
    let kept =
        |site: &str| json!({"origin": format!("http://{site}.test"), "localStorage": [{"name": "user", "value": format!("of-{site}")}]});
    let given = json!({"cookies": [], "origins": [kept("a"), kept("b")]});
    let print = |origins: &[&str], pending: &[&str]| Footprint {
        origins: origins.iter().map(|site| format!("http://{site}.test")).collect(),
        pending: pending.iter().map(|site| format!("http://{site}.test")).collect(),
        ..Footprint::default()
    };
    let files = || {
        let all = std::fs::read_dir(house.dir.path().join("state/saved")).into_iter().flatten().flatten();
        let given = all.filter(|entry| entry.file_name().to_string_lossy().ends_with(".given.json"));
        given.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect::<Vec<_>>()
    };
    let footprint = browser.tells_footprint(print(&["a", "b"], &["b"]));
    house.hub.profiles().create("work", &crate::storage_state::parse(&given).unwrap(), None).unwrap();
    house.agent("b").ok("start_browser", json!({"from": "work"})).await;
    assert_eq!(files(), Vec::<String>::new(), "a profile is still there for the next daemon");
    let profile = Profile { defaults: json!({"storageState": given}).as_object().cloned().unwrap(), ..Profile::default() };
    let agent = house.agent_with(Identity::Secret("a".into()), Link::Connection, profile);
    agent.ok("start_browser", json!({"sessionId": "copy"})).await;
    let known = |site: &str| {
        let known = |session: &tabmux_core::Session| session.name != "copy" || session.settings.contains(&format!("http://{site}.test"));
        house.hub.look(|registry| registry.records().all(known))
    };
    // The second is looked at when everything about the first is done.
    for (origins, last) in [(&["a", "b", "c"][..], "c"), (&["a", "b", "c", "d"][..], "d")] {
        footprint.send_replace(print(origins, &["b"]));
        eventually("it is known where it was", || known(last)).await;
    }
    let texts = files();
    assert!(texts.len() == 1 && texts[0].contains("of-b") && !texts[0].contains("of-a"), "{texts:?}");
    footprint.send_replace(print(&["a", "b"], &[]));
    eventually("it is not needed any more", || files().is_empty()).await;
}

/// A copy whose daemon is killed while it is being filled is filled on by the next one, with what had not arrived and nothing else.
#[tokio::test]
async fn a_copy_that_is_not_whole_is_filled_on_by_the_next_daemon() {
    let house = House::new();
    let agent = house.agent("a");
    let kept = |site: &str| json!({"origin": format!("http://{site}.test"), "localStorage": [{"name": "user", "value": "kept"}]});
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("state.json");
    std::fs::write(&file, json!({"cookies": [], "origins": [kept("a"), kept("b")]}).to_string()).unwrap();
    start(&agent, "copy", file.to_str().unwrap()).await;
    house.hub.decide_now(|registry, _| {
        let session = registry.records().next().unwrap();
        let (id, mut lasting) = (session.id, Lasting::read(session));
        assert_eq!(lasting.spec.footprint.origins, ["http://a.test", "http://b.test"], "what it began with is known from the start");
        lasting.spec.footprint.pending = vec!["http://b.test".to_owned()];
        registry.set_settings(id, &lasting.written());
    });
    let next = house.killed_and_started_again().await;
    let back = next.agent("a");
    for (site, found) in [("b", json!("kept")), ("a", Value::Null)] {
        back.ok("navigate", json!({"url": format!("http://{site}.test/")})).await;
        let storage = back.ok("storage", json!({})).await.structured.unwrap();
        assert_eq!(storage["items"][0]["value"], found, "{site}: a fake browser keeps nothing when its daemon ends");
    }
}
