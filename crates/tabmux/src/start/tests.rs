//! The dance with real processes: this test program starts itself as the daemon's double.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use tabmux_wire::hello::Role;

use super::*;
use crate::failure::Exit;
use crate::settings::{Config, Environment, Flags};

const MODE: &str = "TABMUX_TEST_DOUBLE";
const DIR: &str = "TABMUX_TEST_DIR";

/// A place for daemons, and how to count those that ever lived there.
struct Yard {
    home: tempfile::TempDir,
    starter: Starter,
}

impl Yard {
    fn new(mode: &str) -> Self {
        Self::wanting(mode, &[])
    }

    /// For one whose command line sets this.
    fn wanting(mode: &str, set: &[&str]) -> Self {
        let home = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o700)).tempdir().unwrap();
        let root = home.path().to_str().unwrap();
        let variables = BTreeMap::from(["TABMUX_RUNTIME_DIR", "TABMUX_STATE_DIR"].map(|name| (name.to_owned(), root.to_owned())));
        let env = Environment { variables, cwd: "/".into(), temp_dir: "/tmp".into(), uid: 0 };
        let flags = Flags { set: set.iter().map(ToString::to_string).collect(), ..Flags::default() };
        let config = Config::resolve(&flags, env).unwrap();
        let args = ["start::tests::a_double_lives_only_when_told", "--exact", "--nocapture"].map(Into::into).to_vec();
        let variables = vec![(MODE.to_owned(), mode.into()), (DIR.to_owned(), root.into())];
        let launcher = Launcher::double(std::env::current_exe().unwrap(), args, variables);
        Self { starter: Starter { wishes: Wishes::of(&config), places: config.places, launcher }, home }
    }

    fn daemons(&self) -> Vec<i32> {
        let names = std::fs::read_dir(self.home.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter_map(|name| name.strip_prefix("daemon.")?.parse().ok()).collect()
    }

    fn join(&self) -> Joined {
        self.starter.join(&hello("test"), Absent::Start).unwrap().unwrap()
    }

    fn join_many(&self, clients: usize) {
        std::thread::scope(|scope| {
            let joining: Vec<_> = (0..clients).map(|_| scope.spawn(|| self.join().welcome.pid)).collect();
            let pids: std::collections::HashSet<u32> = joining.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert_eq!(pids.len(), 1);
        });
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        self.starter.join(&hello("quit"), Absent::Say).ok();
        rundir::await_free(&self.starter.places.paths.lock, Duration::from_secs(10)).ok();
    }
}

fn hello(program: &str) -> Hello {
    Hello {
        role: Role::Cli,
        program: program.into(),
        pid: 1,
        key: None,
        session: None,
        token: None,
        initialize: None,
        tools: None,
        defaults: serde_json::Map::new(),
    }
}

fn first_daemon(dir: &Path) -> bool {
    std::fs::OpenOptions::new().write(true).create_new(true).open(dir.join("first")).is_ok()
}

/// Not a test of anything: what `Launcher` starts in the tests below.
#[test]
fn a_double_lives_only_when_told() {
    let (Ok(mode), Ok(dir)) = (std::env::var(MODE), std::env::var(DIR)) else { return };
    let dir = PathBuf::from(dir);
    let starting = Inherited::take().unwrap();
    let say = |report: Report| writeln!(std::io::stdout(), "{}", serde_json::to_string(&report).unwrap()).unwrap();
    let Ok(_life) = rundir::take_lock(&dir.join("tabmux.lock"), Duration::from_secs(2)) else { std::process::exit(1) };
    std::fs::write(dir.join(format!("daemon.{}", std::process::id())), "").unwrap();
    match mode.as_str() {
        "fails" => {
            let fault = tabmux_core::Fault::new(Code::NoSpace, "No room.", "Make some.");
            say(Report { tabmux: 1, ready: None, error: Some((&fault).into()) });
            std::process::exit(1);
        }
        "dies" => std::process::exit(1),
        _ => {}
    }
    let listener = UnixListener::bind(dir.join("new.sock")).unwrap();
    std::fs::rename(dir.join("new.sock"), dir.join("tabmux.sock")).unwrap();
    let leaves = mode == "leaves" && first_daemon(&dir);
    drop(starting);
    say(Report { tabmux: 1, ready: Some(ReadyReport { listen: None }), error: None });
    for stream in listener.incoming().map(Result::unwrap) {
        if leaves {
            std::process::exit(0);
        }
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        if line.contains("\"quit\"") {
            std::process::exit(0);
        }
        let settings = Some(BTreeMap::from([("call.deadline".into(), "60s".into())])).filter(|_| mode == "tells-settings");
        let welcome = Welcome { version: "0".into(), build: 0, pid: std::process::id(), read_only_tools: vec![], settings };
        let line = serde_json::to_string(&WelcomeLine { tabmux: 1, welcome: Some(welcome), error: None }).unwrap();
        writeln!(&stream, "{line}").ok();
    }
}

/// S1.7, S1.8, S1.9
#[test]
fn many_clients_that_arrive_at_once_get_one_daemon() {
    let yard = Yard::new("serves");
    yard.join_many(40);
    assert_eq!(yard.daemons().len(), 1);
}

/// S1.12
#[test]
fn leftovers_of_a_killed_daemon_do_not_matter() {
    let yard = Yard::new("serves");
    let dir = yard.home.path();
    drop(UnixListener::bind(dir.join("tabmux.sock")).unwrap());
    for name in ["tabmux.lock", "tabmux.start.lock", "tabmux.pid"] {
        std::fs::write(dir.join(name), "4194303\n").unwrap();
    }
    yard.join_many(10);
    assert_eq!(yard.daemons().len(), 1);
}

#[test]
fn a_daemon_that_is_stopped_is_waited_for_and_no_second_one_is_started() {
    let yard = Yard::new("serves");
    yard.join();
    let pid = rustix::process::Pid::from_raw(yard.daemons()[0]).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    // The signal is only on its way: until the process has stopped, it may still serve somebody.
    while !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T ") {
        std::thread::yield_now();
    }
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..10).map(|_| scope.spawn(|| yard.join())).collect();
        // Every client is connected and waits for its welcome before the daemon goes on.
        std::thread::sleep(Duration::from_millis(300));
        assert!(waiting.iter().all(|thread| !thread.is_finished()));
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
        waiting.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    });
    assert_eq!(yard.daemons().len(), 1);
}

#[test]
fn a_daemon_that_leaves_before_its_welcome_is_replaced() {
    let yard = Yard::new("leaves");
    yard.join_many(10);
    assert_eq!(yard.daemons().len(), 2);
}

#[test]
fn a_daemon_that_is_just_ending_is_waited_for() {
    let yard = Yard::new("serves");
    let ending = rundir::take_lock(&yard.starter.places.paths.lock, Duration::ZERO).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| yard.join());
        while !yard.starter.places.start_lock.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(yard.daemons().is_empty() && !waiting.is_finished());
        drop(ending);
        waiting.join().unwrap();
    });
    assert_eq!(yard.daemons().len(), 1);
}

#[test]
fn under_a_supervisor_clients_wait_for_its_daemon_and_start_none() {
    let yard = Yard::new("serves");
    let up = rundir::take_lock(&yard.starter.places.up_lock, Duration::ZERO).unwrap();
    let mut supervisor = yard.starter.clone();
    supervisor.launcher.supervise();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..5).map(|_| scope.spawn(|| yard.join().welcome.pid)).collect();
        while !yard.starter.places.start_lock.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(100));
        assert!(yard.daemons().is_empty() && waiting.iter().all(|thread| !thread.is_finished()));
        let Led::Launched(child) = supervisor.supervise(None, Instant::now() + JOIN_WITHIN).unwrap() else {
            panic!("the supervisor starts the daemon itself")
        };
        waiting.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), child.id()));
        reap(child);
    });
    drop(up);
}

#[test]
fn when_the_supervisor_ends_clients_start_a_daemon_themselves() {
    let yard = Yard::new("serves");
    let up = rundir::take_lock(&yard.starter.places.up_lock, Duration::ZERO).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| yard.join());
        std::thread::sleep(Duration::from_millis(100));
        assert!(yard.daemons().is_empty() && !waiting.is_finished());
        drop(up);
        waiting.join().unwrap();
    });
    assert_eq!(yard.daemons().len(), 1);
}

#[test]
fn a_flag_that_the_daemon_found_does_not_heed_is_refused_to_who_would_start_one() {
    for (mode, set, exit) in [
        ("tells-settings", "call.deadline=2s", Some(Exit::BadConfiguration)),
        ("tells-settings", "call.deadline=1m", None),
        // A daemon of a former version.
        ("serves", "call.deadline=2s", None),
    ] {
        let yard = Yard::wanting(mode, &[set]);
        let joined = yard.starter.join(&hello("test"), Absent::Start);
        assert_eq!(joined.err().map(|failure| failure.exit), exit, "{mode} {set}");
        assert!(yard.starter.join(&hello("test"), Absent::Say).unwrap().is_some(), "who only looks needs no settings");
    }
}

/// S1.29
#[test]
fn a_daemon_that_cannot_start_says_why_through_its_starter() {
    let failure = Yard::new("fails").starter.join(&hello("test"), Absent::Start).unwrap_err();
    assert_eq!((failure.exit, failure.fault.code, failure.fault.message.as_str()), (Exit::Unavailable, Code::NoSpace, "No room."));
    let failure = Yard::new("dies").starter.join(&hello("test"), Absent::Start).unwrap_err();
    assert!(failure.fault.message.contains("ended before it was ready"), "{}", failure.fault);
}

#[test]
fn without_leave_to_start_nothing_is_started_or_made() {
    let yard = Yard::new("serves");
    assert!(yard.starter.join(&hello("test"), Absent::Say).unwrap().is_none());
    assert_eq!(std::fs::read_dir(yard.home.path()).unwrap().count(), 0);
}
