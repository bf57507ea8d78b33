//! `tabmux up` against the real daemon: whatever kills the daemon, its next one is supervised again.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::process::{Child, Stdio};

use rustix::process::Signal;
use support::{Lab, SOON, process, until};

struct Up(Child);

impl Drop for Up {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn up(lab: &Lab, token: &str) -> Up {
    let mut command = lab.command(&["up"]);
    Up(lab.spawn(command.env("TABMUX_TOKEN", token).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())))
}

fn running(lab: &Lab) -> Option<u32> {
    let printed = lab.run(&["status", "--json"]);
    u32::try_from(printed.json()["pid"].as_u64()?).ok()
}

#[test]
fn after_a_kill_only_up_starts_the_daemon_again_though_shims_are_attached() {
    let lab = Lab::with(&[("TABMUX_EXIT_WHEN_EMPTY", "1s")]);
    let mut up = up(&lab, "");
    let mut pid = until("up starts a daemon", SOON, || running(&lab));
    let clients: Vec<_> = (0..3).map(|_| lab.ready_client()).collect();
    for _ in 0..5 {
        process::kill(pid);
        pid = until("another daemon", SOON, || running(&lab).filter(|now| *now != pid));
        assert!(process::command_line(pid).contains("--supervised"), "{}", process::command_line(pid));
    }
    drop(clients);
    assert_eq!(lab.run(&["stop"]).code, 0);
    let status = until("up ends with its daemon", SOON, || up.0.try_wait().unwrap());
    assert!(status.success());
}

/// Also when its terminal is closed.
#[test]
fn up_is_the_operator_whatever_token_is_set_and_stops_its_daemon() {
    for signal in [Signal::INT, Signal::HUP] {
        let lab = Lab::new();
        let mut up = up(&lab, "nobody-knows-this-capability");
        until("up starts a daemon", SOON, || running(&lab));
        process::signal(up.0.id(), signal);
        let status = until("up ends", SOON, || up.0.try_wait().unwrap());
        assert!(status.success(), "{signal:?}: {status}");
        lab.assert_nothing_left();
    }
}

/// S1.11: before it has looked at it even once.
#[test]
fn a_daemon_that_ends_at_once_is_stopped_or_started_again_like_any_other() {
    for stopped in [true, false] {
        let lab = Lab::new();
        DirBuilder::new().recursive(true).mode(0o700).create(lab.state_dir()).unwrap();
        // What a daemon waits for before it serves.
        let state = File::create(lab.state_dir().join("daemon.lock")).unwrap();
        state.lock().unwrap();
        let mut up = up(&lab, "");
        until("up has begun a daemon", SOON, || (!lab.daemons().is_empty()).then_some(()));
        process::signal(up.0.id(), Signal::STOP);
        until("up stands still", SOON, || (process::state(up.0.id()) == Some('T')).then_some(()));
        drop(state);
        let first = until("it serves", SOON, || running(&lab));
        if stopped {
            lab.stop();
        } else {
            process::kill(first);
        }
        process::signal(up.0.id(), Signal::CONT);
        if !stopped {
            until("up starts another one", SOON, || running(&lab).filter(|pid| *pid != first));
            lab.stop();
        }
        let status = until("up ends with its daemon", SOON, || up.0.try_wait().unwrap());
        assert!(status.success(), "stopped: {stopped}, {status}");
    }
}

#[test]
fn a_frozen_daemon_of_our_own_is_killed_on_ctrl_c_and_that_is_said() {
    let lab = Lab::new();
    let mut command = lab.command(&["up"]);
    let mut up = Up(lab.spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped())));
    let daemon = until("up starts a daemon", SOON, || running(&lab));
    process::signal(daemon, Signal::STOP);
    until("it is frozen", SOON, || (process::state(daemon) == Some('T')).then_some(()));
    process::signal(up.0.id(), Signal::INT);
    let status = until("up ends", std::time::Duration::from_secs(60), || up.0.try_wait().unwrap());
    let mut said = String::new();
    std::io::Read::read_to_string(&mut up.0.stderr.take().unwrap(), &mut said).unwrap();
    assert!(status.success() && said.contains(&format!("killed (pid {daemon})")), "{status}: {said}");
    assert!(!process::is_alive(daemon));
}
