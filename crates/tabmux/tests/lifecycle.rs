//! The daemon's life as its clients see it: one daemon however many start at once, nothing left after it, and
//! nobody turned away because they came at a bad moment.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use support::{Lab, Mcp, SOON, amount, at_once, is_soak, process, until, wait};

/// Clients that start at the same moment, each with a session of its own.
fn serve_at_once(lab: &Lab, clients: usize) -> Vec<Mcp> {
    at_once((0..clients).collect(), |number| {
        let client = lab.ready_client();
        let url = format!("https://example.test/{number}");
        let reply = client.ok("navigate", &json!({"url": url}));
        assert_eq!(reply.result()["url"], url, "{reply:?}");
        client
    })
}

/// Exactly one daemon runs here, it is the one `status` speaks of, and everybody is attached to it.
fn assert_one_daemon(lab: &Lab, clients: usize) -> u32 {
    let pid = lab.daemon_pid();
    // Losers of the start race may still be on their way out.
    until(&format!("only daemon {pid} is left of {:?}", lab.daemons()), SOON, || (lab.daemons() == [pid]).then_some(()));
    let status = lab.status();
    assert_eq!(status["sessions"]["active"], json!(clients), "{status}");
    assert!(status["clients"].as_u64().is_some_and(|attached| attached >= clients as u64), "{status}");
    pid
}

/// S1.1, S1.8, S1.9, S1.39
#[test]
fn clients_started_cold_share_one_daemon() {
    let (rounds, clients) = (amount("TABMUX_SOAK_ROUNDS", 3), amount("TABMUX_SOAK_CLIENTS", 40));
    for round in 1..=rounds {
        let lab = Lab::new();
        let began = Instant::now();
        let served = serve_at_once(&lab, clients);
        println!("round {round}: {clients} cold clients served in {:?}", began.elapsed());
        assert_one_daemon(&lab, clients);
        drop(served);
        lab.stop();
    }
}

/// S1.12
#[test]
fn the_leavings_of_a_killed_daemon_do_no_harm() {
    let (rounds, clients) = (amount("TABMUX_SOAK_ROUNDS", 2), amount("TABMUX_SOAK_CLIENTS", 30));
    for round in 1..=rounds {
        let lab = Lab::new();
        drop(lab.ready_client());
        let killed = lab.daemon_pid();
        process::kill(killed);
        until("the killed daemon is gone", SOON, || (!process::is_alive(killed)).then_some(()));
        assert!(lab.socket().exists(), "a killed daemon leaves its socket, or this tests nothing");
        let began = Instant::now();
        let served = serve_at_once(&lab, clients);
        println!("round {round}: {clients} clients over the leavings of {killed} served in {:?}", began.elapsed());
        assert_ne!(assert_one_daemon(&lab, clients), killed);
        drop(served);
        lab.stop();
    }
}

/// S1.12: the number of a process that has nothing to do with us.
#[test]
fn a_pid_file_that_names_a_stranger_does_no_harm() {
    let lab = Lab::new();
    drop(lab.ready_client());
    let pid_file = pid_file(&lab);
    lab.stop();
    std::fs::write(&pid_file, format!("{}\n", std::process::id())).unwrap();
    let client = lab.ready_client();
    client.ok("list_sessions", &json!({}));
    let written = std::fs::read_to_string(&pid_file).unwrap();
    assert_eq!(written.trim(), lab.daemon_pid().to_string());
}

fn pid_file(lab: &Lab) -> std::path::PathBuf {
    let pid = lab.daemon_pid().to_string();
    let entries = std::fs::read_dir(lab.runtime_dir()).unwrap().map(|entry| entry.unwrap().path());
    let mut named = entries.filter(|path| path.extension().is_some_and(|ext| ext == "pid"));
    let file = named.next().expect("the runtime directory holds a pid file");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), pid);
    file
}

/// S1.9: a daemon that does not answer is not a dead one; its lock says so.
#[test]
fn clients_wait_for_a_stopped_daemon() {
    let (seconds, clients) = (amount("TABMUX_SOAK_SECONDS", 3), amount("TABMUX_SOAK_CLIENTS", 20));
    let lab = Lab::new();
    drop(lab.ready_client());
    let daemon = lab.daemon_pid();
    process::signal(daemon, Signal::STOP);
    until("the daemon is stopped", SOON, || (process::state(daemon) == Some('T')).then_some(()));
    let served = std::thread::scope(|scope| {
        let arriving = scope.spawn(|| serve_at_once(&lab, clients));
        wait::pass(Duration::from_secs(seconds as u64));
        assert!(!arriving.is_finished(), "nobody can be served by a stopped daemon");
        assert_eq!(lab.daemons(), [daemon], "no second daemon beside a stopped one");
        process::signal(daemon, Signal::CONT);
        arriving.join().unwrap()
    });
    assert_eq!(assert_one_daemon(&lab, clients), daemon);
    drop(served);
    lab.stop();
}

/// S1.10
#[test]
fn an_empty_daemon_ends_by_itself_and_leaves_nothing() {
    let lab = Lab::with(&[("TABMUX_EXIT_WHEN_EMPTY", "1s")]);
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "only"}));
    let daemon = lab.daemon_pid();
    wait::pass(Duration::from_millis(1500));
    assert!(process::is_alive(daemon), "a daemon with a session is not empty");
    client.ok("close_session", &json!({"sessionId": "only"}));
    client.close_input();
    until("the empty daemon is gone", SOON, || (!process::is_alive(daemon)).then_some(()));
    lab.assert_nothing_left();
}

/// S1.8, S1.10: rounds close in on the instant: served by the old daemon, the next round comes later; by a new one, earlier.
#[test]
fn clients_that_arrive_at_the_empty_exit_are_served() {
    let (rounds, clients) = (amount("TABMUX_SOAK_ROUNDS", 8), amount("TABMUX_SOAK_CLIENTS", 40));
    // On a busy machine a client takes long to start, so the first may have to leave at once.
    let (mut early, mut late) = (Duration::ZERO, Duration::from_millis(1600));
    let (mut by_old, mut by_new) = (0, 0);
    for round in 1..=rounds {
        let lab = Lab::with(&[("TABMUX_EXIT_WHEN_EMPTY", "1s")]);
        let client = lab.ready_client();
        client.ok("start_browser", &json!({"sessionId": "only"}));
        let first = lab.daemon_pid();
        client.ok("close_session", &json!({"sessionId": "only"}));
        let emptied = Instant::now();
        drop(client);
        let arrival = (early + late) / 2;
        let served = at_once((0..clients).collect(), |_| {
            wait::pass(arrival.saturating_sub(emptied.elapsed()));
            let client = lab.ready_client();
            client.ok("navigate", &json!({"url": "https://example.test/"}));
            client
        });
        let daemon = assert_one_daemon(&lab, clients);
        println!("round {round}: {clients} clients {arrival:?} after the last session, daemon {first}, served by {daemon}");
        if daemon == first {
            (early, by_old) = (arrival, by_old + 1);
        } else {
            (late, by_new) = (arrival, by_new + 1);
        }
        drop(served);
        lab.stop();
    }
    println!("{by_old} rounds before the exit, {by_new} after it");
    // Where clients take longer to start than the daemon waits, none comes before it.
    assert!(!is_soak("TABMUX_SOAK_ROUNDS") || (by_old > 0 && by_new > 0), "the rounds never met the exit");
}

/// S1.7
#[test]
fn the_daemon_outlives_the_client_that_started_it() {
    let lab = Lab::new();
    let first = lab.ready_client();
    let daemon = lab.daemon_pid();
    first.close_input();
    first.wait_exit(SOON);
    assert_eq!(lab.daemon_pid(), daemon);
    lab.ready_client().ok("list_sessions", &json!({}));
    assert_eq!(lab.daemon_pid(), daemon);
}

/// S1.7: detached, so that what ends its starter's whole process group leaves it alone.
#[test]
fn the_daemon_outlives_the_process_group_that_started_it() {
    let lab = Lab::new();
    let first = Mcp::start(&lab, lab.command(&["mcp"]).process_group(0));
    first.initialize();
    let daemon = lab.daemon_pid();
    let group = rustix::process::Pid::from_raw(i32::try_from(first.pid()).unwrap()).unwrap();
    rustix::process::kill_process_group(group, Signal::KILL).unwrap();
    first.wait_exit(SOON);
    lab.ready_client().ok("list_sessions", &json!({}));
    assert_eq!(lab.daemon_pid(), daemon);
    let own = rustix::process::Pid::from_raw(i32::try_from(daemon).unwrap());
    assert_eq!(rustix::process::getsid(own).ok(), own, "a session of its own, so the terminal's end is not its end");
}

/// S1.12
#[test]
fn a_second_daemon_is_refused_and_names_the_first() {
    let lab = Lab::new();
    let client = lab.ready_client();
    let (first, file) = (lab.daemon_pid(), pid_file(&lab));
    let second = lab.run(&["daemon"]);
    assert!(second.code == 69 && second.stderr.contains(&format!("pid {first}")), "{second:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), first.to_string());
    client.ok("list_sessions", &json!({}));
    assert_eq!(lab.daemons(), [first]);
}

/// S1.11
#[test]
fn the_socket_and_its_directory_are_the_owners_only() {
    let lab = Lab::new();
    let _client = lab.ready_client();
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(lab.socket()), 0o600);
    assert_eq!(mode(lab.runtime_dir()), 0o700);
    assert_eq!(mode(lab.state_dir().join("token")), 0o600);
}

/// An MCP client may start a sibling process only to probe.
#[test]
fn starting_the_shim_makes_no_session_and_no_tab() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.reply(&client.send("tools/list", &json!({})), SOON);
    let status = lab.status();
    assert_eq!(status["sessions"]["active"], 0, "{status}");
    assert_eq!(client.sessions(), Vec::<String>::new());
}

/// S1.26: stopped on purpose, so the shim waits for the next call before it starts anything.
#[test]
fn after_stop_the_shim_waits_and_the_next_call_starts_a_new_daemon() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "gone"}));
    let first = lab.daemon_pid();
    lab.stop();
    assert!(client.is_running(), "the shim stays");
    wait::pass(Duration::from_secs(1));
    assert_eq!(lab.daemons(), Vec::<u32>::new(), "nothing starts by itself after a stop");
    assert_eq!(client.sessions(), Vec::<String>::new(), "stop ends sessions for good");
    assert_ne!(lab.daemon_pid(), first);
}

/// It may be held up before it has its own lock, or after; its client is killed all the same, and waits for nothing.
#[test]
fn stop_ends_a_daemon_that_is_just_starting_though_its_client_was_killed() {
    for (held, how) in [("run/tabmux.lock", File::lock_shared as fn(&File) -> _), ("state/daemon.lock", File::lock)] {
        let lab = Lab::new();
        lab.ready_client().ok("list_sessions", &json!({}));
        lab.stop();
        let lock = File::options().write(true).open(lab.path().join(held)).unwrap();
        how(&lock).unwrap();
        let client = lab.client();
        let daemon = until("a daemon is being started", SOON, || lab.daemons().first().copied());
        until("it wants the lock", SOON, || process::waits_for_a_lock(daemon).then_some(()));
        process::kill(client.pid());
        client.wait_exit(SOON);
        let began = Instant::now();
        let stop = std::thread::scope(|scope| {
            let stopping = scope.spawn(|| lab.run(&["stop"]));
            wait::pass(Duration::from_millis(300));
            let waited = !stopping.is_finished();
            drop(lock);
            let stop = stopping.join().unwrap();
            assert!(waited, "{held}: a daemon comes, and is waited for: {stop:?}");
            stop
        });
        assert_eq!((stop.code, stop.stderr.as_str()), (0, ""), "{held}: {stop:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{held}: {:?}", began.elapsed());
        lab.assert_nothing_left();
    }
}

/// The start lock that a daemon inherits is let go of when it listens, and nothing that it starts has it.
#[test]
fn a_daemon_that_listens_holds_up_nobody_who_wants_to_start_one() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({}));
    let start_lock = lab.runtime_dir().join("tabmux.start.lock");
    for pid in lab.daemons() {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok());
        assert!(!open.into_iter().any(|file| file == start_lock), "{}", process::command_line(pid));
    }
    File::open(start_lock).unwrap().try_lock().unwrap();
}

/// S0.21, S2.23: the session of a lost client waits for the grace time, then it is gone.
#[test]
fn a_lost_clients_session_is_an_orphan_for_the_grace_time() {
    let lab = Lab::with(&[("TABMUX_ORPHAN_GRACE", "1s")]);
    let leave: [fn(&Mcp); 2] = [Mcp::close_input, |client| process::kill(client.pid())];
    for leave in leave {
        let client = lab.ready_client();
        client.ok("start_browser", &json!({"sessionId": "left"}));
        leave(&client);
        client.wait_exit(SOON);
        until("the session is an orphan", SOON, || (lab.status()["sessions"]["orphaned"] == json!(1)).then_some(()));
        until("the orphan is gone", SOON, || {
            let status = lab.status();
            (status["sessions"]["orphaned"] == json!(0) && status["sessions"]["active"] == json!(0)).then_some(())
        });
    }
}

/// S0.20, S1.28
#[test]
fn an_idle_session_is_closed_and_a_used_one_is_not() {
    let lab = Lab::with(&[("TABMUX_SESSION_IDLE", "2s")]);
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "busy"}));
    client.ok("start_browser", &json!({"sessionId": "idle"}));
    let running = client.start_call("evaluate", &json!({"sessionId": "busy", "script": "sleep(6000)"}));
    until("the idle session is closed", SOON, || (client.sessions() == ["busy"]).then_some(()));
    let reply = client.finish_call(&running, SOON);
    assert!(!reply.failed(), "a session with a running call is never idle: {reply:?}");
}

/// S1.29: the socket still serves, and whoever asks learns which process holds the port.
#[test]
fn the_holder_of_a_taken_port_is_named_and_the_socket_still_serves() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    let named = format!("{address} is taken by process {} ({})", std::process::id(), name.trim_end());
    let lab = Lab::with(&[("TABMUX_LISTEN", &address)]);
    let without_daemon = lab.run(&["doctor"]);
    assert!(without_daemon.code == 1 && without_daemon.stdout.contains(&named), "{named}: {without_daemon:?}");
    assert_eq!(lab.daemons(), Vec::<u32>::new(), "the doctor starts nothing");
    let client = lab.ready_client();
    client.ok("list_sessions", &json!({}));
    let status = lab.status();
    assert_eq!(status["listen"], json!(null), "{status}");
    assert!(status["listen_error"].as_str().unwrap().contains(&named), "{named}: {status}");
    for command in [&["status"][..], &["doctor"], &["doctor", "--json"]] {
        let said = lab.run(command);
        assert!(said.stdout.contains(&named), "{named}: {command:?}: {said:?}");
    }
    let log = std::fs::read_to_string(lab.state_dir().join("daemon.log")).unwrap();
    assert!(log.contains(&named), "{named}: {log}");
    std::net::TcpStream::connect(&address).expect("the holder still listens");
}
