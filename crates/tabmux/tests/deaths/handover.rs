//! The daemon is killed and the next one goes on: with every page as it was, also one that is stuck.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::site::{Site, browser_and_keeper, eval, kill, renderers};
use crate::support::{Lab, Mcp, SOON, at_once, process, until};

/// S1.26: the dialog is the very same: its page hears the answer.
#[test]
fn an_open_dialog_outlives_the_daemon_and_can_be_answered() {
    let (lab, site) = (Lab::real(), Site::open());
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "web", "navigationUrl": site.at("/calm")}));
    client.ok("new_page", &json!({"url": site.at("/asking")}));
    client.fails("evaluate", &json!({"script": "window.answer = prompt('your name?', 'nobody')"}), "dialog_open");
    kill(lab.daemon_pid());
    let said = client.fails("evaluate", &json!({"script": "1"}), "dialog_open");
    assert!(said.contains("prompt") && said.contains("your name?"), "{said}");
    assert_eq!(client.ok("list_pages", &json!({})).structured()["pages"].as_array().unwrap().len(), 2);
    client.ok("handle_dialog", &json!({"promptText": "Ann"}));
    assert_eq!(eval(&client, "[location.pathname, window.answer]"), json!(["/asking", "Ann"]));
    kill(lab.daemon_pid());
    assert_eq!(eval(&client, "window.answer"), json!("Ann"), "an answered dialog is not open for the next daemon either");
}

/// S1.26: nobody waits for the page that spins but its owner, who can go on with it.
#[test]
fn a_page_that_spins_outlives_the_daemon_and_holds_up_nobody() {
    const SESSIONS: usize = 10;
    let (lab, site) = (Lab::real(), Site::open());
    let clients = at_once((0..SESSIONS).collect(), |number: usize| {
        let client = lab.ready_client();
        client.ok("start_browser", &json!({"sessionId": format!("s{number}"), "navigationUrl": site.at(&format!("/{number}"))}));
        eval(&client, &format!("window.kept = {number}"));
        client
    });
    let (stuck, calm) = clients.split_first().unwrap();
    let spinning = stuck.start_call("evaluate", &json!({"script": "for (;;) {}"}));
    until("it spins", SOON, || (lab.status()["calls"]["running"] == json!(1)).then_some(()));
    let (browser, killed) = (browser_and_keeper(&lab).0, lab.daemon_pid());
    kill(killed);
    let began = Instant::now();
    let waiting = stuck.start_call("evaluate", &json!({"script": "window.kept", "timeout": 8000}));
    at_once(calm.iter().enumerate().collect(), |(number, client)| assert_eq!(eval(client, "window.kept"), json!(number + 1)));
    println!("nine calm sessions answered {:?} after the kill, beside a stuck one", began.elapsed());
    assert_eq!(stuck.finish_call(&spinning, SOON).code(), "outcome_unknown");
    assert!(!stuck.order().contains(&waiting.to_string()), "the stuck page still spins");
    assert_eq!(stuck.finish_call(&waiting, SOON).code(), "timeout");
    assert_eq!(eval(stuck, "[location.pathname, window.kept]"), json!(["/0", 0]), "the same page goes on");
    assert_eq!(browser_and_keeper(&lab).0, browser);
}

/// S1.24: a crash is told once by the browser, and by each daemon.
#[test]
fn a_crashed_page_is_known_as_such_to_the_next_daemon() {
    let (lab, site) = (Lab::real(), Site::open());
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/crashing")}));
    let waiting = client.start_call("evaluate", &json!({"script": "new Promise(() => {})"}));
    until("it waits", SOON, || (lab.status()["calls"]["running"] == json!(1)).then_some(()));
    renderers(browser_and_keeper(&lab).0).into_iter().for_each(process::kill);
    assert_eq!(client.finish_call(&waiting, SOON).code(), "tab_crashed");
    kill(lab.daemon_pid());
    client.fails("evaluate", &json!({"script": "1"}), "tab_crashed");
    client.ok("navigate", &json!({"reload": true}));
    kill(lab.daemon_pid());
    assert_eq!(eval(&client, "location.pathname"), json!("/crashing"));
}

/// Opens a page when somebody has had time to end the daemon, and says so just before.
const OPENS_SOON: &str = "setTimeout(() => {
    const says = new XMLHttpRequest();
    says.open('GET', '/opening', false);
    says.send();
    window.open('/popup');
}, 500); 1";

/// S4.23: what opens while no daemon is there joins the session of its opener all the same. Until there is one, it waits.
#[test]
fn a_popup_that_opens_while_there_is_no_daemon_joins_its_session() {
    let (lab, site) = (Lab::real(), Site::open());
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/opener")}));
    let daemon = lab.daemon_pid();
    let (browser, _) = browser_and_keeper(&lab);
    client.ok("evaluate", &json!({"script": OPENS_SOON}));
    // The shim starts the next daemon at once; a stopped one cannot.
    process::signal(client.pid(), rustix::process::Signal::STOP);
    kill(daemon);
    site.await_visit("/opening");
    process::signal(client.pid(), rustix::process::Signal::CONT);
    assert_popup_joins(&client, &site);
    assert_eq!(browser_and_keeper(&lab).0, browser);
}

/// The former daemon heard of it and died before it gave its word.
#[test]
fn a_popup_that_waits_for_the_word_of_a_dead_daemon_gets_it_from_the_next_one() {
    let mut lab = Lab::real();
    let places = lab.path().join("points");
    std::fs::create_dir(&places).unwrap();
    lab.set("TABMUX_FAILPOINTS", places.to_str().unwrap());
    let site = Site::open();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/opener")}));
    let place = places.join("popup-waits");
    std::fs::write(&place, "").unwrap();
    client.ok("evaluate", &json!({"script": OPENS_SOON}));
    until("the daemon dies", SOON, || (!place.exists()).then_some(()));
    assert_popup_joins(&client, &site);
    assert_eq!(eval(&client, "location.pathname"), json!("/opener"), "who opened it goes on");
}

fn assert_popup_joins(client: &Mcp, site: &Site) {
    let pages = until("the popup joins", Duration::from_secs(10), || {
        let pages = client.ok("list_pages", &json!({})).structured()["pages"].clone();
        (pages.as_array()?.len() == 2 && pages[1]["url"] == json!(site.at("/popup"))).then_some(pages)
    });
    assert_eq!(pages[0]["url"], json!(site.at("/opener")));
}
