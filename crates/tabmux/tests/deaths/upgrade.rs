//! A newer `tabmux up` takes the place of an older daemon while agents are in the middle of their work.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::site::{Site, browser_and_keeper, eval};
use crate::support::{Lab, SOON, until};
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
