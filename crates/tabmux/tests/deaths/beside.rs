//! Nothing stops the rest: whatever happens to one session's page, the others' calls go on, the owner has its answer by
//! its deadline, and what concerns the session itself never waits for a renderer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::site::{Site, browser_and_keeper, eval, renderers};
use crate::support::{Lab, Mcp, SOON, at_once, process};

/// So long a hundred megabytes may take, on a busy machine.
const LONG: Duration = Duration::from_secs(90);

/// So many calls each of the others has done while one session is stuck.
const CALLS: usize = 200;

/// One session that gets into trouble, and three that do not.
struct Street {
    site: Site,
    owner: Mcp,
    /// What draws the owner's page.
    renderers: Vec<u32>,
    others: Vec<Mcp>,
    /// Last, so that no shim is left to start a daemon again.
    lab: Lab,
}

impl Street {
    fn open() -> Self {
        let (lab, site) = (Lab::real(), Site::open());
        let owner = lab.ready_client();
        owner.ok("navigate", &json!({"url": site.at("/owner")}));
        eval(&owner, "window.kept = 'in memory'");
        let renderers = renderers(browser_and_keeper(&lab).0);
        assert!(!renderers.is_empty(), "the owner's page is drawn");
        let others = at_once((0..3).collect(), |number: usize| {
            let client = lab.ready_client();
            client.ok("navigate", &json!({"url": site.at(&format!("/{number}"))}));
            client
        });
        Self { site, owner, renderers, others, lab }
    }

    /// The others work as if nothing were; says how long the slowest call took.
    fn others_go_on(&self) {
        let slowest = at_once(self.others.iter().enumerate().collect(), |(number, client)| {
            let calls = (0..CALLS).map(|call| {
                let began = Instant::now();
                let got = eval(client, &format!("[location.pathname, {call}]"));
                assert_eq!(got, json!([format!("/{number}"), call]));
                began.elapsed()
            });
            calls.max().unwrap()
        });
        println!("the slowest of {CALLS} calls of each of the others: {slowest:?}");
    }

    /// The others go on while this call of the owner's is stuck.
    fn beside(&self, tool: &str, arguments: &Value) -> Value {
        let stuck = self.owner.start_call(tool, arguments);
        self.others_go_on();
        self.owner.take_in_until_quiet(Duration::from_millis(1));
        assert!(!self.owner.order().contains(&stuck.to_string()), "it is still stuck");
        stuck
    }

    /// What concerns the session itself is answered at once, whatever its page does.
    fn lifecycle_answers(&self) {
        let pages = self.owner.ok("list_pages", &json!({})).structured()["pages"].clone();
        assert_eq!((pages[0]["tabId"].as_str(), pages[0]["url"].as_str()), (Some("t1"), Some(self.site.at("/owner").as_str())));
        self.owner.ok("list_sessions", &json!({}));
        self.owner.fails("handle_dialog", &json!({}), "bad_argument");
        self.owner.ok("close_page", &json!({"tabId": "t1"}));
        self.owner.ok("navigate", &json!({"url": self.site.at("/again")}));
        assert_eq!(eval(&self.owner, "location.pathname"), json!("/again"));
        self.owner.ok("close_session", &json!({}));
    }
}

#[test]
fn a_busy_loop_stops_nobody_and_its_page_goes_on_afterwards() {
    let street = Street::open();
    street.owner.fails("evaluate", &json!({"script": "for (;;) {}", "timeout": 500}), "timeout");
    assert_eq!(eval(&street.owner, "window.kept"), json!("in memory"));
    // Also one that no call of ours began: the page can go anywhere.
    eval(&street.owner, "setTimeout(() => { for (;;) {} }, 0); 1");
    street.others_go_on();
    street.owner.ok("navigate", &json!({"reload": true}));
    assert_eq!(eval(&street.owner, "location.pathname"), json!("/owner"));
    let spinning = street.beside("evaluate", &json!({"script": "for (;;) {}", "timeout": 60000}));
    street.owner.ok("close_page", &json!({"tabId": "t1"}));
    assert_eq!(street.owner.finish_call(&spinning, SOON).code(), "tab_gone");
    let spinning = street.beside("evaluate", &json!({"script": "for (;;) {}", "timeout": 60000}));
    street.owner.ok("close_session", &json!({}));
    assert_eq!(street.owner.finish_call(&spinning, SOON).code(), "session_closed");
}

#[test]
fn an_open_alert_stops_nobody() {
    let street = Street::open();
    street.owner.fails("evaluate", &json!({"script": "alert('stop')"}), "dialog_open");
    street.others_go_on();
    street.owner.ok("handle_dialog", &json!({}));
    assert_eq!(eval(&street.owner, "window.kept"), json!("in memory"));
}

#[test]
fn a_crashed_renderer_stops_nobody_and_a_reload_brings_it_back() {
    let street = Street::open();
    let waiting = street.owner.start_call("evaluate", &json!({"script": "new Promise(() => {})"}));
    street.renderers.iter().for_each(|pid| process::kill(*pid));
    assert_eq!(street.owner.finish_call(&waiting, SOON).code(), "tab_crashed");
    street.others_go_on();
    street.owner.ok("navigate", &json!({"reload": true}));
    assert_eq!(eval(&street.owner, "location.pathname"), json!("/owner"));
    street.others_go_on();
}

#[test]
fn a_frozen_renderer_stops_nobody_and_its_tab_can_be_closed() {
    let street = Street::open();
    street.renderers.iter().for_each(|pid| process::signal(*pid, Signal::STOP));
    let frozen = street.beside("evaluate", &json!({"script": "1", "timeout": 60000}));
    street.owner.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": frozen}}));
    for (tool, arguments) in [("evaluate", json!({"script": "1", "timeout": 500})), ("navigate", json!({"reload": true, "timeout": 500}))] {
        let text = street.owner.fails(tool, &arguments, "timeout");
        assert!(text.contains("does not answer") && text.contains("close_page"), "{text}");
    }
    street.lifecycle_answers();
    street.others_go_on();
}

#[test]
fn a_hundred_megabytes_in_one_session_fail_no_call_of_the_others() {
    let street = Street::open();
    // The site keeps its last byte back until the others are done.
    let big = street.beside("evaluate", &json!({"script": "fetch('/big').then(r => r.text()).then(t => t.length)", "timeout": 120_000}));
    street.site.let_go();
    assert_eq!(street.owner.finish_call(&big, LONG).result()["value"], json!(100_000_000));
    let big = street.owner.start_call("evaluate", &json!({"script": "'x'.repeat(100_000_000)", "timeout": 120_000}));
    let answered = AtomicBool::new(false);
    let is_early = |client: &Mcp| eval(client, "1 + 1") == json!(2) && !answered.load(Ordering::SeqCst);
    let before_it = std::thread::scope(|threads| {
        let calls = street.others.iter().map(|client| threads.spawn(|| (0..5).filter(|_| is_early(client)).count()));
        let calls: Vec<_> = calls.collect();
        let answer = street.owner.finish_call(&big, LONG);
        answered.store(true, Ordering::SeqCst);
        println!("{} {}", answer.code(), answer.text().chars().take(300).collect::<String>());
        calls.into_iter().map(|calls| calls.join().unwrap()).collect::<Vec<_>>()
    });
    println!("calls that were answered before it: {before_it:?}");
    assert!(before_it.iter().all(|calls| *calls > 0), "others waited for it: {before_it:?}");
    assert_eq!(eval(&street.owner, "window.kept"), json!("in memory"));
    assert!(process::rss_kb(street.lab.daemon_pid()) < 300_000, "what was so large is not kept");
}
