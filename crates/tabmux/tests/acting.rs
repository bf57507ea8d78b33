//! Agents at work through the shipped binary, on every kind of page: one, ten at once, and in a browser that people see. What was
//! done is proven by what the page saw.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::site::{Answer, Site, html, with};
use support::{Display, Lab, Mcp, Reply, SOON, at_once, until};

const SEEN: &str = include_str!("fixtures/seen.js");
const PAGES: [(&str, &str); 12] = [
    ("/todo.html", include_str!("fixtures/todo.html")),
    ("/drag.html", include_str!("fixtures/drag.html")),
    ("/frames.html", include_str!("fixtures/frames.html")),
    ("/inner.html", include_str!("fixtures/inner.html")),
    ("/shadow.html", include_str!("fixtures/shadow.html")),
    ("/canvas.html", include_str!("fixtures/canvas.html")),
    ("/endless.html", include_str!("fixtures/endless.html")),
    ("/modal.html", include_str!("fixtures/modal.html")),
    ("/slow.html", include_str!("fixtures/slow.html")),
    ("/spa.html", include_str!("fixtures/spa.html")),
    ("/form.html", include_str!("fixtures/form.html")),
    ("/wrong.html", include_str!("fixtures/wrong.html")),
];

/// For a machine that does many other things; it only matters when something hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The pages; frames of another origin come from a second server.
fn site(other: &Site) -> Site {
    let other = other.at("");
    Site::answering(move |path| answer(path, &other))
}

fn answer(path: &str, other: &str) -> Answer {
    let name = path.split('?').next().unwrap_or_default();
    match PAGES.iter().find(|(known, _)| *known == name) {
        Some((_, page)) => html(&page.replace("$OTHER", other)),
        None if name == "/seen.js" => with("200 OK", "text/javascript", "", SEEN),
        None => with("404 Not Found", "text/plain", "", ""),
    }
}

/// One agent on the pages.
struct Agent<'a> {
    client: Mcp,
    site: &'a Site,
}

impl Agent<'_> {
    fn call(&self, tool: &str, mut arguments: Value) -> Reply {
        arguments["timeout"] = json!(PATIENCE.as_millis() as u64 / 2);
        let id = self.client.start_call(tool, &arguments);
        self.client.finish_call(&id, PATIENCE)
    }

    fn does(&self, tool: &str, arguments: &Value) -> String {
        let reply = self.call(tool, arguments.clone());
        assert!(!reply.failed(), "{tool} {arguments}: {}", reply.0);
        reply.text()
    }

    fn goes(&self, path: &str) {
        self.does("navigate", &json!({"url": self.site.at(path)}));
    }

    fn clicks(&self, selector: &str) -> String {
        self.does("click_element", &json!({"selector": selector}))
    }

    fn sets(&self, selector: &str, value: &str) -> String {
        self.does("set_value", &json!({"selector": selector, "value": value}))
    }

    fn sees(&self, script: &str) -> Value {
        let reply = self.call("evaluate", json!({"script": script}));
        assert!(!reply.failed(), "{script}: {}", reply.0);
        reply.result()["value"].clone()
    }

    /// Nothing on the page came from anywhere but real input.
    fn saw_only_trusted(&self) {
        assert_eq!(self.sees("seen.filter(([, , trusted]) => !trusted)"), json!([]));
    }

    fn works_through_everything(&self, name: &str) {
        self.fills_a_form(name);
        self.keeps_a_list();
        self.drags_and_scrolls();
        self.looks_into_frames_and_shadows();
        self.gets_past_what_is_in_the_way();
        self.follows_links();
    }

    fn fills_a_form(&self, name: &str) {
        self.goes(&format!("/form.html?{name}"));
        let fields =
            [("~Name", name), ("#day", "2026-01-31"), ("#agree", "true"), ("#fruit", "Quince"), ("~Story", "Told"), ("#volume", "7")];
        for (selector, value) in fields {
            self.sets(selector, value);
        }
        self.does("select_option", &json!({"selector": "~Size", "options": ["Large"]}));
        self.does("type_text", &json!({"selector": "#about", "text": "!"}));
        self.clicks("role=button[name=\"Send\"]");
        let filled =
            "[document.title, day.value, agree.checked, fruit.value, rich.innerText, volume.value, combo.textContent, about.value]";
        assert_eq!(self.sees(filled), json!([format!("Sent {name}"), "2026-01-31", true, "q", "Told", "7", "Large", "old words!"]));
        self.sets("#colour", "#336699");
        assert_eq!(self.sees("colour.value"), json!("#336699"));
        self.saw_only_trusted();
    }

    fn keeps_a_list(&self) {
        self.goes("/todo.html");
        for task in ["Milk", "Tea"] {
            self.sets("#new", task);
            self.does("press_key", &json!({"key": "Enter"}));
        }
        self.clicks("~Done: Milk");
        self.does("hover", &json!({"selector": "text=Tea"}));
        self.clicks("~Delete: Tea");
        assert_eq!(self.sees("[list.children.length, left.textContent, toggle1.checked]"), json!([1, "0", true]));
        self.saw_only_trusted();
    }

    fn drags_and_scrolls(&self) {
        self.goes("/drag.html");
        self.does("drag", &json!({"from": "#card", "to": "#basket"}));
        self.does("drag", &json!({"from": "#knob", "to": "#goal"}));
        assert_eq!(self.sees("[basket.textContent, goal.textContent]"), json!(["Got the card", "Reached, true"]));
        self.goes("/endless.html");
        let scrolled = self.does("scroll", &json!({"y": 5000}));
        assert!(scrolled.starts_with("Scrolled the page. Scrolled down "), "{scrolled}");
        assert_eq!(self.sees("list.children.length > 30"), json!(true), "more rows came");
        self.clicks("#bottom");
        assert_eq!(self.sees("[saw('click', 'bottom').length, box.scrollTop > 0]"), json!([1, true]));
        self.goes("/canvas.html");
        self.clicks("~Board");
        self.does("tap_element", &json!({"selector": "#board"}));
        assert_eq!(self.sees("dots"), json!([[150, 100], [150, 100]]));
        self.saw_only_trusted();
    }

    fn looks_into_frames_and_shadows(&self) {
        self.goes("/frames.html");
        self.clicks("text=\"Press same\"");
        self.sets("~Word same", "near");
        assert_eq!(self.sees("[same.contentWindow.saw('click', 'press').length, same.contentWindow.word.value]"), json!([1, "near"]));
        self.clicks("text=\"Press other\"");
        let told = self.sets("~Word other", "far");
        assert!(told.contains("It is \"far\" now."), "{told}");
        self.goes("/shadow.html");
        self.clicks("text=Deep");
        self.sets("~Open field", "found");
        self.clicks("~Behind doors");
        assert_eq!(self.sees("closedSaw"), json!([true]));
        let field = "document.getElementById('open').shadowRoot.getElementById('field').value";
        assert_eq!(self.sees(&format!("[saw('click', 'deep').length, {field}]")), json!([1, "found"]));
    }

    fn gets_past_what_is_in_the_way(&self) {
        self.goes("/modal.html");
        let id = self.client.start_call("click_element", &json!({"selector": "#save", "timeout": 2000}));
        let refused = self.client.finish_call(&id, PATIENCE);
        // A machine too busy to look twice in that time ends the call by its deadline.
        let named = refused.code() == "element_not_actionable" && refused.text().contains("is covered by dialog \"Cookies\" (e");
        assert!(named || refused.code() == "timeout", "{refused:?}");
        assert_eq!(self.sees("saw('click', 'save').length"), json!(0));
        self.clicks("role=button[name=Accept]");
        self.clicks("#save");
        assert_eq!(self.sees("saw('click', 'save').length"), json!(1));
        self.goes("/slow.html");
        self.clicks("#start");
        self.clicks("#late");
        assert_eq!(self.sees("saw('click', 'late').length"), json!(1));
    }

    fn follows_links(&self) {
        self.goes("/spa.html");
        self.clicks("text=About");
        assert_eq!(self.sees("[location.pathname, view.textContent]"), json!(["/about", "This is About"]));
        self.clicks("#away");
        self.does("wait_for", &json!({"text": "Press away"}));
        self.clicks("#press");
    }
}

#[test]
fn an_agent_works_through_every_kind_of_page() {
    let (lab, other) = (Lab::real(), Site::answering(|path| answer(path, "")));
    let site = site(&other);
    Agent { client: lab.ready_client(), site: &site }.works_through_everything("one");
}

/// S2.29
#[test]
fn ten_agents_at_once_each_work_on_their_own_pages() {
    let (lab, other) = (Lab::real(), Site::answering(|path| answer(path, "")));
    let site = site(&other);
    at_once((0..10).collect(), |number: usize| {
        Agent { client: lab.ready_client(), site: &site }.works_through_everything(&format!("agent{number}"));
    });
}

#[test]
fn an_agent_works_in_a_browser_that_people_see() {
    let display = Display::new();
    let lab = Lab::with(&[("TABMUX_BROWSER", ""), ("TABMUX_HEADLESS", "false"), ("DISPLAY", &display.name)]);
    let other = Site::answering(|path| answer(path, ""));
    let site = site(&other);
    Agent { client: lab.ready_client(), site: &site }.works_through_everything("headed");
}

/// S0.28
#[test]
fn the_short_forms_of_the_command_line_act_on_the_page() {
    let (lab, site) = (Lab::real(), Site::answering(|path| answer(path, "")));
    let run = |arguments: &[&str]| {
        let printed = lab.run(arguments);
        assert_eq!(printed.code, 0, "{arguments:?}: {printed:?}");
        printed.stdout
    };
    run(&["open", &site.at("/todo.html")]);
    let filled = run(&["fill", "#new", "Milk"]);
    assert!(filled.starts_with("Set e") && filled.contains("It is \"Milk\" now."), "{filled}");
    run(&["press", "Enter"]);
    run(&["type", "Tea"]);
    run(&["press", "Enter"]);
    run(&["click", "~Done: Milk"]);
    run(&["wait", "--selector", "li.done"]);
    assert_eq!(run(&["eval", "list.children.length + ' ' + left.textContent"]).trim(), "\"2 1\"");
    let failed = lab.run(&["click", "e999999"]);
    assert!(failed.code == 1 && failed.stderr.contains("[stale_ref]"), "{failed:?}");
}

/// A session that is closed and one that is not there answer as such, and nothing is told as done.
#[test]
fn acting_in_a_closed_session_is_an_error() {
    let (lab, site) = (Lab::real(), Site::answering(|path| answer(path, "")));
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "web", "navigationUrl": site.at("/form.html")}));
    let late = client.start_call("click_element", &json!({"selector": "#nowhere", "timeout": 60_000}));
    until("the call runs", SOON, || (lab.status()["calls"]["running"] == json!(1)).then_some(()));
    client.ok("close_session", &json!({"sessionId": "web"}));
    let ended = client.finish_call(&late, SOON);
    assert_eq!(ended.code(), "session_closed", "{ended:?}");
    client.fails("click_element", &json!({"sessionId": "web", "selector": "#send"}), "session_not_found");
}

/// A dialog that a click opens ends the click's call at once; once it is answered the page goes on, and so does the pointer.
#[test]
fn a_click_that_opens_a_dialog_says_so_and_the_next_one_works() {
    let (lab, site) = (Lab::real(), Site::answering(|path| answer(path, "")));
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/canvas.html")}));
    client.ok("evaluate", &json!({"script": "board.addEventListener('click', () => confirm('Sure?'), { once: true }); 1"}));
    let text = client.fails("click_element", &json!({"selector": "#board"}), "dialog_open");
    assert!(text.contains("Sure?"), "{text}");
    client.ok("handle_dialog", &json!({}));
    client.ok("click_element", &json!({"selector": "#board"}));
    assert_eq!(client.ok("evaluate", &json!({"script": "dots.length"})).result()["value"], json!(2));
}
