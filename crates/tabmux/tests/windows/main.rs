//! Seed 4 with the shipped binary on real Chromium, unseen and on a display: agents in windows of their own, in one
//! profile, beside a person who has windows too.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

#[path = "../../../tabmux-cdp/tests/keeper/display.rs"]
mod display;
mod person;
#[path = "../support/mod.rs"]
mod support;

use display::Display;
use person::Person;
use serde_json::{Value, json};
use support::site::Site;
use support::{Lab, Mcp, Reply, SOON, at_once, process, until};

/// A private daemon with a browser, a person before it and a site.
struct Stage {
    lab: Lab,
    person: Person,
    site: Site,
    _place: tempfile::TempDir,
    _display: Option<Display>,
}

impl Stage {
    fn new(display: Option<Display>) -> Self {
        Self::with(display, &[], "")
    }

    fn with(display: Option<Display>, more: &[(&str, &str)], arguments: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let (person, seat) = Person::new(place.path());
        let arguments = format!("{seat} {arguments}");
        let mut variables = vec![("TABMUX_BROWSER", ""), ("TABMUX_BROWSER_ARGS", arguments.trim()), ("TABMUX_LOG", "debug")];
        if let Some(display) = &display {
            variables.extend([("TABMUX_HEADLESS", "false"), ("DISPLAY", &display.name)]);
        }
        variables.extend(more);
        let lab = Lab::with(&variables);
        let site =
            Site::start(|path| format!("<title>{path}</title><h1>The page {path}</h1><script>console.log('hello from {path}')</script>"));
        Self { lab, person, site, _place: place, _display: display }
    }

    /// An agent with a window of its own, at this path.
    fn agent(&self, path: &str) -> Mcp {
        let client = self.lab.client_with(&["mcp", "--isolation", "window"]);
        client.initialize();
        client.ok("navigate", &json!({"url": self.site.at(path)}));
        client
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.lab.state_dir().join("daemon.log")).unwrap()
    }
}

fn pages(client: &Mcp) -> Vec<Value> {
    client.ok("list_pages", &json!({})).structured()["pages"].as_array().unwrap().clone()
}

/// The ends of the addresses of a session's pages, in order.
fn paths(client: &Mcp) -> Vec<String> {
    pages(client).iter().map(|page| format!("/{}", page["url"].as_str().unwrap().rsplit('/').next().unwrap())).collect()
}

fn eval(client: &Mcp, script: &str) -> Value {
    client.ok("evaluate", &json!({"script": script})).result()["value"].clone()
}

/// Every test runs unseen and on a display.
macro_rules! seen_and_unseen {
    ($($(#[doc = $doc:literal])* #[test] fn $name:ident($display:ident: Option<Display>) $body:block)+) => {
        $($(#[doc = $doc])* fn $name($display: Option<Display>) $body)+
        mod headless {
            $(#[test] fn $name() { super::$name(None); })+
        }
        mod visible {
            $(#[test] fn $name() { super::$name(Some(super::Display::new())); })+
        }
    };
}

seen_and_unseen! {
    /// S4.1, S4.2, S4.3, S4.4, S4.5, S4.6, S4.20
    #[test]
    fn each_agent_sees_and_reaches_the_pages_of_its_own_window_only(display: Option<Display>) {
        let stage = Stage::new(display);
        let one = stage.agent("/a1");
        stage.person.opens_window(&stage.site.at("/person"));
        let other = stage.agent("/b1");
        one.ok("new_page", &json!({"url": stage.site.at("/a2")}));
        assert_eq!((paths(&one), paths(&other)), (vec!["/a1".to_owned(), "/a2".to_owned()], vec!["/b1".to_owned()]));
        assert_eq!(pages(&one).iter().chain(&pages(&other)).map(|page| page["pageIdx"].clone()).collect::<Vec<_>>(), [0, 1, 0]);
        for (path, number) in [("/a1", 2), ("/a2", 2), ("/b1", 1), ("/person", 1)] {
            assert_eq!(stage.person.window_of(path)["tabs"].as_array().unwrap().len(), number, "{path}");
        }
        assert_eq!(stage.person.window_of("/a1")["id"], stage.person.window_of("/a2")["id"]);
        other.fails("select_page", &json!({"pageIdx": 1}), "tab_not_found");
        other.fails("close_page", &json!({"pageIdx": 1}), "tab_not_found");
        other.fails("evaluate", &json!({"tabId": "t2", "script": "1"}), "tab_not_found");
        one.ok("select_page", &json!({"pageIdx": 0}));
        assert_eq!(eval(&one, "location.pathname"), json!("/a1"));
        one.ok("close_page", &json!({"pageIdx": 0}));
        assert_eq!((paths(&one), paths(&other)), (vec!["/a2".to_owned()], vec!["/b1".to_owned()]));
        eval(&one, "document.cookie = 'login=yes'");
        assert_eq!(eval(&other, "document.cookie"), json!("login=yes"), "one profile");
        other.fails("cookies", &json!({"clear": true}), "unsupported");
        assert_eq!(eval(&one, "document.cookie"), json!("login=yes"), "nobody is logged out by somebody else");
        other.ok("cookies", &json!({"set": [{"name": "login", "value": "", "url": stage.site.at("/"), "expires": 1}]}));
        assert_eq!(eval(&one, "document.cookie"), json!(""), "and one that is meant is forgotten");
        one.ok("close_session", &json!({}));
        other.ok("close_session", &json!({}));
        let left = until("only the person is left", SOON, || Some(stage.person.windows()).filter(|windows| windows.len() == 1));
        assert!(left[0]["tabs"][0].as_str().unwrap().ends_with("/person"), "{left:?}");
        let browsers = stage.lab.status()["browsers"].clone();
        assert_eq!((browsers.as_array().unwrap().len(), &browsers[0]["kind"]), (1, &json!("chromium")), "{browsers}");
    }

    /// S4.23: Chromium would let a page open one by itself, and none without a click, and say nothing.
    #[test]
    fn a_page_that_opens_two_windows_at_once_opens_both(display: Option<Display>) {
        let stage = Stage::new(display);
        let agent = stage.agent("/opener");
        assert_eq!(eval(&agent, "['/one', '/two'].map(path => open(path) !== null)"), json!([true, true]));
        // In which order they join, nobody says.
        let joined = || paths(&agent).into_iter().collect::<std::collections::BTreeSet<_>>();
        until("both have joined", SOON, || (joined() == ["/one", "/opener", "/two"].map(Into::into).into()).then_some(()));
    }

    /// S4.5: ten agents' tabs made at once, each in its own window.
    #[test]
    fn tabs_made_at_once_by_several_agents_land_in_their_own_windows(display: Option<Display>) {
        let stage = Stage::new(display);
        let agents: Vec<Mcp> = (0..3).map(|number| stage.agent(&format!("/agent{number}"))).collect();
        let work: Vec<(usize, &Mcp)> = agents.iter().enumerate().collect();
        at_once(work, |(number, agent)| {
            for page in 0..4 {
                agent.ok("new_page", &json!({"url": stage.site.at(&format!("/of{number}-{page}"))}));
            }
        });
        for number in 0..3 {
            let window = stage.person.window_of(&format!("/agent{number}"));
            let tabs: Vec<&str> = window["tabs"].as_array().unwrap().iter().map(|tab| tab.as_str().unwrap()).collect();
            assert_eq!(tabs.len(), 5, "{tabs:?}");
            assert!(tabs.iter().skip(1).all(|tab| tab.contains(&format!("/of{number}-"))), "{tabs:?}");
        }
    }

    /// S4.19
    #[test]
    fn a_page_dragged_out_is_the_persons_and_one_dragged_in_stays_invisible(display: Option<Display>) {
        let stage = Stage::new(display);
        let agent = stage.agent("/kept");
        for path in ["/dragged", "/torn"] {
            agent.ok("new_page", &json!({"url": stage.site.at(path)}));
        }
        stage.person.opens_window(&stage.site.at("/person"));
        stage.person.opens_tab(&stage.site.at("/visitor"), "/person");
        // A person takes longer to drag a tab than a daemon to see where it came up. The browser takes questions in order, and the first of ours is
        // answered after it told of the tab.
        for _ in 0..2 {
            assert_eq!(eval(&agent, "1"), json!(1));
        }
        stage.person.drags("/dragged", "/person");
        stage.person.drags("/visitor", "/kept");
        stage.person.tears_off("/torn");
        for tab in ["t2", "t3"] {
            let named = || Some(agent.call("evaluate", &json!({"tabId": tab, "script": "1"})));
            let gone = until("it is gone", SOON, || named().filter(|reply| reply.failed() && reply.code() == "tab_gone"));
            for told in [gone.text(), named().expect("it was called").text()] {
                assert!(told.contains("moved to another window by a person"), "it is open: {told}");
            }
        }
        let said = agent.ok("list_pages", &json!({})).text();
        assert!(said.contains("Tabs t2, t3 were moved to another window by a person"), "{said}");
        assert_eq!(paths(&agent), ["/kept"]);
        agent.fails("select_page", &json!({"pageIdx": 1}), "tab_not_found");
        assert_eq!(stage.person.window_of("/visitor")["id"], stage.person.window_of("/kept")["id"]);
        agent.ok("close_session", &json!({}));
        until("the agent's own page is closed and nothing else", SOON, || {
            let windows = stage.person.windows();
            let tabs: Vec<Value> = windows.iter().flat_map(|window| window["tabs"].as_array().unwrap().clone()).collect();
            let has = |path: &str| tabs.iter().any(|tab| tab.as_str().unwrap().ends_with(path));
            (!has("/kept") && ["/dragged", "/torn", "/visitor", "/person"].iter().all(|path| has(path))).then_some(())
        });
    }

    /// S4.14, S4.17, S4.10
    #[test]
    fn after_the_person_closed_the_last_window_the_next_call_says_so_and_then_there_is_a_new_one(display: Option<Display>) {
        let stage = Stage::with(display, &[("TABMUX_WINDOW_BOUNDS", "40,30,640x480")], "");
        let agent = stage.agent("/first");
        stage.person.opens_window(&stage.site.at("/person"));
        assert_eq!(stage.person.window_of("/first")["bounds"], json!([40, 30, 640, 480]));
        agent.ok("new_page", &json!({"url": stage.site.at("/second")}));
        stage.person.closes("/second");
        let gone = until("it is gone", SOON, || Some(agent.call("evaluate", &json!({"script": "location.pathname"}))).filter(Reply::failed));
        assert_eq!(gone.code(), "tab_gone", "{gone:?}");
        assert_eq!(eval(&agent, "location.pathname"), json!("/first"));
        agent.ok("new_page", &json!({"url": stage.site.at("/third")}));
        stage.person.closes_window_of("/first");
        // Whatever of it is known first: nothing is done in a new window before it is said.
        let own = [json!("/first"), json!("/third")];
        until("the window is gone", SOON, || {
            let reply = agent.call("evaluate", &json!({"script": "location.pathname"}));
            assert!(reply.failed() || own.contains(&reply.result()["value"]), "{reply:?}");
            (reply.failed() && reply.text().contains("last window")).then_some(())
        });
        let next = agent.ok("evaluate", &json!({"script": "location.protocol"}));
        assert_eq!(next.result()["value"], json!("about:"), "and then it goes on");
        assert!(!next.text().contains("closed by the page"), "its tabs went with the window: {}", next.text());
        agent.ok("navigate", &json!({"url": stage.site.at("/fourth")}));
        stage.person.closes_window_of("/fourth");
        let said = until("its page is gone", SOON, || {
            Some(agent.call("evaluate", &json!({"script": "1"}))).filter(|reply| reply.failed() && reply.code() == "tab_gone")
        });
        assert!(said.text().contains("new_page"), "{said:?}");
        agent.ok("new_page", &json!({"url": stage.site.at("/again")}));
        let window = stage.person.window_of("/again");
        assert_eq!((&window["bounds"], window["tabs"].as_array().unwrap().len()), (&json!([40, 30, 640, 480]), 1));
        assert_eq!(paths(&agent), ["/again"]);
    }

    /// S4.11
    #[test]
    fn a_new_page_is_current_and_what_it_logs_and_loads_is_heard_from_the_start(display: Option<Display>) {
        let stage = Stage::new(display);
        let agent = stage.agent("/one");
        let two = stage.site.at("/two");
        agent.ok("new_page", &json!({"url": two}));
        assert_eq!(eval(&agent, "location.pathname"), json!("/two"));
        assert!(pages(&agent)[1]["current"].as_bool().unwrap());
        until("its words are heard", SOON, || agent.ok("console", &json!({})).text().contains("hello from /two").then_some(()));
        assert!(agent.ok("network", &json!({})).text().contains(&two));
    }

    /// S4.15, S4.22, S4.23: Chrome opens a popup in a new window, and what a popup opens in any window, perhaps another's.
    #[test]
    fn popups_are_the_sessions_and_one_that_lands_in_anothers_window_is_brought_home(display: Option<Display>) {
        let stage = Stage::new(display);
        let agent = stage.agent("/opener");
        let other = stage.agent("/other");
        stage.person.opens_window(&stage.site.at("/person"));
        eval(&agent, "window.open('/popup', '_blank', 'width=400,height=300'); 1");
        until("the popup joins", SOON, || (paths(&agent) == ["/opener", "/popup"]).then_some(()));
        assert_eq!(stage.person.window_of("/popup")["type"], json!("popup"));
        agent.ok("evaluate", &json!({"tabId": "t2", "script": "window.open('/child'); 1"}));
        until("its child joins", SOON, || (paths(&agent) == ["/opener", "/popup", "/child"]).then_some(()));
        until("and is in the session's window", SOON, || {
            (stage.person.find_window("/child")?["id"] == stage.person.window_of("/opener")["id"]).then_some(())
        });
        until("which is said", SOON, || stage.log().contains("created tab in wrong window (expected ").then_some(()));
        agent.ok("new_page", &json!({"url": stage.site.at("/next")}));
        assert_eq!(stage.person.window_of("/next")["id"], stage.person.window_of("/opener")["id"], "a popup's window is no place for tabs");
        assert_eq!((paths(&other), stage.person.window_of("/person")["tabs"].as_array().unwrap().len()), (vec!["/other".to_owned()], 1));
        assert_eq!(stage.log().matches("Created new window for this MCP session, windowId: ").count(), 2, "{}", stage.log());
    }

    /// S4.17: the same page in the same window after the daemon was killed, and still the right window for new tabs. A session whose last window
    /// was closed is told so, whether a daemon ran then or not.
    #[test]
    fn window_sessions_go_on_after_the_daemon_is_killed(display: Option<Display>) {
        let stage = Stage::new(display);
        let agents = [stage.agent("/one"), stage.agent("/two")];
        stage.person.opens_window(&stage.site.at("/person"));
        for agent in &agents {
            agent.ok("new_page", &json!({"url": stage.site.at("/more")}));
            eval(agent, "window.kept = 7");
        }
        let daemon = stage.lab.daemon_pid();
        process::kill(daemon);
        until("it is dead", SOON, || (!process::is_alive(daemon)).then_some(()));
        stage.person.closes_window_of("/two");
        assert_eq!(eval(&agents[0], "window.kept"), json!(7));
        agents[0].ok("new_page", &json!({"url": stage.site.at("/after")}));
        assert_eq!(paths(&agents[0]), ["/one", "/more", "/after"]);
        assert_eq!(stage.person.window_of("/after")["id"], stage.person.window_of("/one")["id"]);
        // Whether the next daemon saw it close or found it closed.
        let said = until("it is said", SOON, || Some(agents[1].call("list_pages", &json!({}))).filter(|reply| reply.failed()));
        assert!(said.code() == "tab_gone" && said.text().contains("last window was closed"), "{said:?}");
        assert!(paths(&agents[1]).is_empty());
        agents[1].ok("navigate", &json!({"url": stage.site.at("/anew")}));
        assert_eq!(stage.person.window_of("/anew")["tabs"].as_array().unwrap().len(), 1);
        assert_eq!(stage.person.window_of("/person")["tabs"].as_array().unwrap().len(), 1);
    }

    /// S4.18, S4.13: the operator may turn scoping off; then the person's pages can be used, and developer tools if asked for.
    #[test]
    fn without_window_scope_the_persons_pages_are_listed_and_never_closed(display: Option<Display>) {
        let displays = [display.as_ref().map(|_| Display::new()), display];
        let flags = [&["up", "--no-window-scope"][..], &["up", "--no-window-scope", "--devtools-pages", "--include-all-pages"]];
        for (flags, display) in flags.into_iter().zip(displays) {
            let stage = Stage::with(display, &[], "--auto-open-devtools-for-tabs");
            let devtools = flags.contains(&"--devtools-pages");
            let mut up = stage.lab.spawn(stage.lab.command(flags).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()));
            until("it runs", SOON, || (stage.lab.status()["running"] == json!(true)).then_some(()));
            let agent = stage.agent("/own");
            stage.person.opens_window(&stage.site.at("/person"));
            // Who is shown it without having a page of its own gets one to go anywhere.
            let other = stage.agent("/other");
            assert_eq!(stage.person.window_of("/person")["tabs"].as_array().unwrap().len(), 1);
            other.ok("close_session", &json!({}));
            until("the person's page is listed", SOON, || paths(&agent).contains(&"/person".to_owned()).then_some(()));
            let tools = |page: &Value| page["url"].as_str().unwrap().starts_with("devtools://");
            if devtools {
                until("the tools are listed", SOON, || pages(&agent).iter().any(tools).then_some(()));
            }
            assert_eq!(pages(&agent).iter().any(tools), devtools);
            let listed = pages(&agent).into_iter().find(|page| page["title"] == json!("/person") || page["url"].as_str().unwrap().ends_with("/person"));
            let tab = listed.unwrap()["tabId"].clone();
            assert_eq!(agent.ok("evaluate", &json!({"tabId": tab, "script": "location.pathname"})).result()["value"], json!("/person"));
            agent.ok("close_session", &json!({}));
            assert_eq!(stage.person.window_of("/person")["tabs"].as_array().unwrap().len(), 1);
            stage.lab.stop();
            up.wait().unwrap();
        }
    }

    /// S4.6, S4.13: with scoping on, which is the default, neither the person's pages nor developer tools are shown.
    #[test]
    fn developer_tools_and_tabs_of_the_person_are_not_listed(display: Option<Display>) {
        let stage = Stage::with(display, &[], "--auto-open-devtools-for-tabs");
        let agent = stage.agent("/own");
        stage.person.opens_window(&stage.site.at("/person"));
        agent.ok("new_page", &json!({"url": stage.site.at("/second")}));
        assert_eq!(paths(&agent), ["/own", "/second"]);
    }

    /// Nothing an agent does takes the person's eyes off their page.
    #[test]
    fn the_person_goes_on_looking_at_their_own_page(display: Option<Display>) {
        let stage = Stage::new(display);
        let agent = stage.agent("/first");
        stage.person.opens_window(&stage.site.at("/person"));
        let at_own_page = |looked: &Value| looked[0].as_str().unwrap().ends_with("/person");
        let looked = until("they look at it", SOON, || Some(stage.person.looks_at()).filter(at_own_page));
        agent.ok("new_page", &json!({"url": stage.site.at("/second")}));
        agent.ok("select_page", &json!({"pageIdx": 0}));
        agent.ok("screenshot", &json!({}));
        let _newcomer = stage.agent("/newcomer");
        assert_eq!(stage.person.looks_at(), looked);
    }
}

/// Plain headless contexts stay in the small browser, windows have a full one beside it.
#[test]
fn contexts_and_windows_have_a_browser_each_that_suits_them() {
    let stage = Stage::new(None);
    let _in_window = stage.agent("/window");
    let plain = stage.lab.ready_client();
    plain.ok("navigate", &json!({"url": stage.site.at("/plain")}));
    let kinds: Vec<Value> = stage.lab.status()["browsers"].as_array().unwrap().iter().map(|browser| browser["kind"].clone()).collect();
    assert_eq!(kinds, ["chromium", "chromium-headless-shell"]);
    assert_eq!(plain.ok("list_sessions", &json!({})).structured()["sessions"][0]["isolation"], "context");
}
