//! A newer `tabmux up` takes the place of an older daemon while agents are in the middle of their work.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::site::{Site, browser_and_keeper, eval};
use crate::support::{Lab, Mcp, SOON, until};
use crate::victims::Victim;

/// This binary as a later build of it.
fn newer_binary(lab: &Lab, by: u64) -> PathBuf {
    let path = lab.path().join(format!("tabmux-{by}"));
    std::fs::copy(env!("CARGO_BIN_EXE_tabmux"), &path).unwrap();
    let made = File::open(env!("CARGO_BIN_EXE_tabmux")).unwrap().metadata().unwrap().modified().unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(made + Duration::from_secs(by)).unwrap();
    assert!(made < SystemTime::now());
    path
}

fn up(lab: &Lab, binary: &PathBuf) -> Child {
    let mut command = Command::new(binary);
    lab.environment(command.arg("up"));
    lab.spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()))
}

fn said(child: &mut Child) -> String {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut text).unwrap();
    text
}

/// The one daemon there is, once it runs that binary.
fn await_daemon(lab: &Lab, binary: &PathBuf) {
    until("the newer daemon runs", SOON, || {
        let daemons = Victim::Daemon.living(lab);
        let runs = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == *binary);
        (daemons.len() == 1 && daemons.iter().all(runs)).then_some(())
    });
}

/// S1.41: no call is lost or done twice, and every page is as it was.
#[test]
fn a_newer_up_takes_over_in_mid_call_and_nobody_loses_anything() {
    let (lab, site) = (Lab::real(), Site::open());
    let [slow, busy] = ["slow", "busy"].map(|name| {
        let client = lab.ready_client();
        client.ok("start_browser", &json!({"sessionId": name, "navigationUrl": site.at(&format!("/{name}"))}));
        eval(&client, "window.count = 0");
        client
    });
    let (browser, _) = browser_and_keeper(&lab);
    let binaries = [newer_binary(&lab, 10), newer_binary(&lab, 20)];
    let done = AtomicBool::new(false);
    let mut ups: Vec<Child> = Vec::new();
    std::thread::scope(|scope| {
        let counting = scope.spawn(|| {
            let mut count = 0;
            while !done.load(Ordering::Relaxed) {
                count += 1;
                assert_eq!(eval(&busy, "++window.count"), json!(count), "each call is done once");
            }
            count
        });
        // The first from a daemon that a shim started, the second from one under an older `up`.
        for binary in &binaries {
            let running = slow.start_call("evaluate", &json!({"script": "new Promise(r => setTimeout(() => r(++window.count), 1000))"}));
            until("it runs", SOON, || (lab.status()["calls"]["running"].as_u64() >= Some(1)).then_some(()));
            ups.push(up(&lab, binary));
            await_daemon(&lab, binary);
            assert_eq!(slow.finish_call(&running, SOON).result()["value"], json!(ups.len()), "a running call is finished");
            assert_eq!(eval(&slow, "[location.pathname, window.count]"), json!(["/slow", ups.len()]));
        }
        done.store(true, Ordering::Relaxed);
        println!("{} calls in a loop beside two upgrades", counting.join().unwrap());
    });
    assert_eq!((slow.sessions(), busy.sessions()), (vec!["slow".to_owned()], vec!["busy".to_owned()]));
    assert_eq!(lab.status()["sessions"], json!({"active": 2, "orphaned": 0, "lost": 0, "clones": 0}));
    assert_eq!(browser_and_keeper(&lab).0, browser);
    let status = until("the older up ends with its daemon", SOON, || ups[0].try_wait().unwrap());
    assert!(status.success(), "{status}");
    let mut late = up(&lab, &binaries[0]);
    assert_eq!(until("an older up ends", SOON, || late.try_wait().unwrap()).code(), Some(69));
    assert!(said(&mut late).contains("Another `tabmux up` supervises"), "an older one takes over nothing");
    drop((slow, busy));
    lab.stop();
    until("up ends with its daemon", SOON, || ups[1].try_wait().unwrap());
}

/// An upgrade that waits for a long call: of one client the call, another client that has a session too, both `up`s.
struct Waiting {
    lab: Lab,
    long: Mcp,
    running: Value,
    other: Mcp,
    ups: [Child; 2],
    binaries: [PathBuf; 2],
}

/// Both on built-in browsers: what the page is, does not matter here.
fn upgrade_behind(long_call: Duration) -> Waiting {
    let lab = Lab::new();
    let binaries = [newer_binary(&lab, 10), newer_binary(&lab, 20)];
    let older = up(&lab, &binaries[0]);
    await_daemon(&lab, &binaries[0]);
    let [long, other] = ["long", "other"].map(|name| {
        let client = lab.ready_client();
        client.ok("start_browser", &json!({"sessionId": name}));
        client
    });
    let script = format!("sleep({})", long_call.as_millis());
    let running = long.start_call("evaluate", &json!({"script": script, "timeout": 60_000}));
    until("it runs", SOON, || (lab.glance()["calls"]["running"].as_u64() >= Some(1)).then_some(()));
    let newer = up(&lab, &binaries[1]);
    until("the daemon is asked for its place", SOON, || log(&lab).contains("a newer daemon wants to take over").then_some(()));
    Waiting { lab, long, running, other, ups: [older, newer], binaries }
}

fn log(lab: &Lab) -> String {
    std::fs::read_to_string(lab.state_dir().join("daemon.log")).unwrap_or_default()
}

/// The older one knows nothing of the newer, whichever way the daemon ends.
fn await_ends(ups: &mut [Child]) {
    for up in ups {
        let status = until("up ends with its daemon", SOON, || up.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }
}

/// A long call of one session is no other's affair, and nothing says meanwhile that there is no daemon.
#[test]
fn while_an_upgrade_waits_for_a_long_call_everybody_else_is_served() {
    let Waiting { lab, long, running, other, mut ups, binaries } = upgrade_behind(Duration::from_secs(6));
    let old = lab.daemon_pid();
    let began = Instant::now();
    assert_eq!(eval(&other, "count()"), json!(1));
    lab.ready_client().ok("start_browser", &json!({"sessionId": "new"}));
    assert!(lab.run(&["ls", "--all"]).stdout.contains("long"));
    assert!(began.elapsed() < Duration::from_secs(4) && lab.daemon_pid() == old, "{:?}", began.elapsed());
    assert!(!long.finish_call(&running, SOON).failed(), "a call that ran is finished");
    await_daemon(&lab, &binaries[1]);
    assert_eq!((long.sessions(), other.sessions()), (vec!["long".to_owned()], vec!["other".to_owned()]));
    await_ends(&mut ups[..1]);
    drop((long, other));
    lab.stop();
    await_ends(&mut ups[1..]);
}

/// `stop` is meant, whoever was about to take over.
#[test]
fn a_stop_while_an_upgrade_waits_ends_everything_for_good() {
    let Waiting { lab, long, running, other, mut ups, .. } = upgrade_behind(Duration::from_secs(50));
    let began = Instant::now();
    lab.stop();
    assert!(began.elapsed() < Duration::from_millis(5500), "{:?}", began.elapsed());
    await_ends(&mut ups);
    assert!(said(&mut ups[1]).contains("stopped while it made way"), "the successor does not come");
    assert!(long.finish_call(&running, SOON).failed());
    lab.assert_nothing_left();
    assert_eq!(other.sessions(), Vec::<String>::new());
    drop((long, other));
}

/// The moment in which the old daemon listens no more and the new one not yet: those who look wait for it.
#[test]
fn at_the_moment_of_the_upgrade_commands_wait_for_the_new_daemon() {
    for stops in [false, true] {
        let Waiting { lab, long, running, other, mut ups, binaries } = upgrade_behind(Duration::from_secs(2));
        // It begins too late to be finished, so that the moment is a long one.
        let late = other.start_call("evaluate", &json!({"script": "sleep(30000)", "timeout": 60_000}));
        assert!(!long.finish_call(&running, SOON).failed(), "a call that ran is finished");
        until("the old daemon listens no more", SOON, || (!lab.socket().exists()).then_some(()));
        let began = Instant::now();
        if stops {
            lab.stop();
            assert!(began.elapsed() < Duration::from_millis(6500), "{:?}", began.elapsed());
        } else {
            assert!(lab.status()["pid"].is_u64() && lab.run(&["ls"]).code == 0);
            await_daemon(&lab, &binaries[1]);
            assert!(lab.run(&["doctor"]).stdout.contains(&lab.daemon_pid().to_string()));
            lab.stop();
        }
        let late = other.finish_call(&late, SOON);
        assert!(late.failed() && late.text().contains("outcome_unknown"), "{late:?}");
        await_ends(&mut ups);
        lab.assert_nothing_left();
    }
}

/// One after the other, and the newest has the place.
#[test]
fn an_up_that_is_newer_still_takes_over_after_the_one_that_waits() {
    let Waiting { lab, long, running, other, ups: [older, newer], .. } = upgrade_behind(Duration::from_secs(3));
    let newest_binary = newer_binary(&lab, 30);
    let newest = up(&lab, &newest_binary);
    assert!(!long.finish_call(&running, SOON).failed(), "a call that ran is finished");
    await_daemon(&lab, &newest_binary);
    assert_eq!((long.sessions(), other.sessions()), (vec!["long".to_owned()], vec!["other".to_owned()]));
    await_ends(&mut [older, newer]);
    drop((long, other));
    lab.stop();
    await_ends(&mut [newest]);
}
