//! Browsers that do not answer, and what is left of dead ones: a restart waits for neither, and `stop` is the end of all of them.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::site::{Site, kill};
use crate::support::{Lab, SOON, process, until};
use crate::victims::Victim;

/// Longer than the five seconds that a stop may take, by what a busy machine takes.
const STOPPED_WITHIN: Duration = Duration::from_secs(8);

/// S1.41, S2.16: sessions never wait for each other, after a restart either.
#[test]
fn a_frozen_browser_of_one_session_holds_up_no_other_when_the_daemon_is_killed() {
    let (lab, site) = (Lab::real(), Site::open());
    let [calm, stuck] = ["context", "browser"].map(|isolation| {
        let client = lab.ready_client();
        client.ok("start_browser", &json!({"isolation": isolation, "navigationUrl": site.at(&format!("/{isolation}"))}));
        (client, Victim::Browser.living(&lab))
    });
    let frozen = *stuck.1.iter().find(|pid| !calm.1.contains(pid)).expect("it has a browser of its own");
    process::signal(frozen, Signal::STOP);
    until("it is frozen", SOON, || (process::state(frozen) == Some('T')).then_some(()));
    kill(lab.daemon_pid());
    let waiting = stuck.0.start_call("evaluate", &json!({"script": "location.pathname"}));
    let began = Instant::now();
    let answered = calm.0.ok("evaluate", &json!({"script": "location.pathname", "timeout": 10_000}));
    println!("the calm one answered {:?} after the kill", began.elapsed());
    assert_eq!(answered.result()["value"], json!("/context"));
    calm.0.ok("new_page", &json!({"url": site.at("/another")}));
    process::signal(frozen, Signal::CONT);
    assert_eq!(stuck.0.finish_call(&waiting, SOON).result()["value"], json!("/browser"), "its own session waits for it");
    process::signal(frozen, Signal::STOP);
    let daemon = lab.daemon_pid();
    // Else their shims would start the next daemon whenever they hear of it.
    drop((calm, stuck));
    kill(daemon);
    let began = Instant::now();
    lab.stop();
    assert!(began.elapsed() < STOPPED_WITHIN, "{:?}", began.elapsed());
    assert!(!process::is_alive(frozen), "what does not answer ends too");
}

/// Nobody waits for it any more, and it is on nobody's list yet.
#[test]
fn a_stop_ends_a_browser_that_hangs_at_its_start_when_its_client_is_gone() {
    let mut lab = Lab::real();
    let hangs = lab.path().join("hangs");
    std::fs::write(&hangs, "#!/bin/sh\nsleep 1000\n").unwrap();
    std::fs::set_permissions(&hangs, PermissionsExt::from_mode(0o700)).unwrap();
    lab.set("TABMUX_BROWSER", hangs.to_str().unwrap());
    let client = lab.ready_client();
    client.start_call("navigate", &json!({"url": "about:blank"}));
    until("its keeper has begun", SOON, || (!Victim::Keeper.living(&lab).is_empty()).then_some(()));
    drop(client);
    until("the client is lost", SOON, || (lab.status()["clients"] == json!(1)).then_some(()));
    let began = Instant::now();
    assert_eq!(lab.run(&["stop"]).code, 0);
    assert!(began.elapsed() < STOPPED_WITHIN, "{:?}", began.elapsed());
    let left: Vec<_> = process::of_runtime_dir(&lab.runtime_dir()).into_iter().map(process::command_line).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// S3.29: they came back with the next daemon, logins included.
#[test]
fn a_stop_ends_the_sessions_of_a_daemon_that_died_with_its_browser() {
    let (lab, site) = (Lab::real(), Site::open());
    assert_eq!(lab.run(&["new", "-s", "mine", &site.at("/mine")]).code, 0);
    let saved = lab.state_dir().join("saved");
    until("it is saved", SOON, || saved.read_dir().ok()?.next().map(drop));
    let (daemon, browsers) = (lab.daemon_pid(), Victim::Browser.living(&lab));
    kill(daemon);
    browsers.into_iter().for_each(kill);
    until("its keeper follows it", SOON, || Victim::Keeper.living(&lab).is_empty().then_some(()));
    lab.stop();
    assert_eq!(saved.read_dir().map_or(0, Iterator::count), 0, "nothing of it is on disk");
    assert_eq!(lab.run(&["new", "-s", "other"]).code, 0);
    assert!(!lab.run(&["ls", "--all"]).stdout.contains("mine"));
    lab.stop();
}

fn freeze(pid: u32) {
    process::signal(pid, Signal::STOP);
    until("it is frozen", SOON, || (process::state(pid) == Some('T')).then_some(()));
}

/// A browser that lost its pipe ends by itself, but not while it is suspended; and nobody goes on with it.
#[test]
fn a_frozen_browser_that_lost_daemon_and_keeper_is_ended_by_the_next_daemon() {
    let (lab, site) = (Lab::real(), Site::open());
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/one")}));
    let [browser, keeper] = [Victim::Browser, Victim::Keeper].map(|victim| victim.living(&lab)[0]);
    // The daemon still has the pipe while the keeper dies; and who is suspended when his keeper dies is woken by the system.
    let daemon = lab.daemon_pid();
    freeze(daemon);
    kill(keeper);
    freeze(browser);
    kill(daemon);
    client.call("list_pages", &json!({"timeout": 3000}));
    until("it is ended", SOON, || (!process::is_alive(browser)).then_some(()));
    lab.stop();
}

#[test]
fn a_stop_ends_a_browser_whose_keeper_is_frozen_and_leaves_nothing() {
    let (lab, site) = (Lab::real(), Site::open());
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/one")}));
    let [browser, keeper] = [Victim::Browser, Victim::Keeper].map(|victim| victim.living(&lab)[0]);
    freeze(keeper);
    drop(client);
    assert_eq!(lab.run(&["stop"]).code, 0);
    assert_eq!([browser, keeper].map(process::is_alive), [false, false]);
    assert_eq!(lab.state_dir().join("browsers").read_dir().map_or(0, Iterator::count), 0, "nothing of it is on disk");
}
