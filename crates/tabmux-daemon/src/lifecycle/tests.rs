//! The daemon's whole life, in this process, on directories of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::{pause, resume};

use super::*;
use crate::testing::eventually;

struct Running {
    dir: TempDir,
    settings: Settings,
    task: JoinHandle<Result<Exit, Fault>>,
}

struct Peer(BufReader<UnixStream>);

async fn start(change: impl FnOnce(&mut Settings)) -> Running {
    start_in(tempfile::tempdir().unwrap(), change).await
}

async fn start_in(dir: TempDir, change: impl FnOnce(&mut Settings)) -> Running {
    let mut settings = crate::testing::settings(dir.path());
    change(&mut settings);
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(run(settings.clone(), move |up| ready.send(up).expect("the test waits")));
    is_ready.await.expect("the daemon starts");
    Running { dir, settings, task }
}

impl Running {
    async fn connect(&self) -> Peer {
        Peer(BufReader::new(UnixStream::connect(&self.settings.paths.socket).await.unwrap()))
    }

    async fn cli(&self) -> Peer {
        let mut peer = self.connect().await;
        let welcome = peer.ask(json!({"tabmux": 1, "hello": {"role": "cli", "program": "t", "pid": 1}})).await;
        assert!(welcome.get("welcome").is_some(), "{welcome}");
        peer
    }

    async fn stop(self) -> TempDir {
        assert!(self.cli().await.ask(json!({"id": 1, "do": "stop"})).await.get("ok").is_some());
        assert_eq!(self.task.await.unwrap().unwrap(), Exit::Stopped);
        self.dir
    }

    fn files(&self) -> Vec<PathBuf> {
        let paths = &self.settings.paths;
        [&paths.socket, &paths.pid_file].into_iter().filter(|path| path.exists()).cloned().collect()
    }
}

impl Peer {
    async fn send(&mut self, frame: Value) {
        self.0.get_mut().write_all(format!("{frame}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap_or(0);
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    async fn ask(&mut self, frame: Value) -> Value {
        self.send(frame).await;
        self.read().await.expect("an answer")
    }
}

/// S1.11, S1.12
#[tokio::test]
async fn the_socket_and_the_pid_file_are_the_owners_alone() {
    let daemon = start(|_| {}).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&daemon.settings.paths.socket), 0o600);
    assert_eq!(mode(&daemon.settings.paths.pid_file), 0o600);
    assert_eq!(mode(&daemon.settings.paths.runtime_dir), 0o700);
    assert_eq!(std::fs::read_to_string(&daemon.settings.paths.pid_file).unwrap().trim(), std::process::id().to_string());
    let dir = daemon.stop().await;
    assert!(!dir.path().join("run/tabmux.sock").exists() && !dir.path().join("run/tabmux.pid").exists());
}

/// S1.9, S1.12: the lock decides, not the files: a second daemon is refused and harms nothing.
#[tokio::test]
async fn a_second_daemon_is_refused_while_the_first_lives() {
    let daemon = start(|_| {}).await;
    let fault = own_the_place(&daemon.settings.paths, Duration::ZERO).unwrap_err();
    assert!(fault.message.contains(&format!("pid {}", std::process::id())), "{fault}");
    assert!(fault.hint.contains("tabmux stop"), "{fault}");
    assert_eq!(daemon.files().len(), 2);
    let dir = daemon.stop().await;
    own_the_place(&crate::testing::settings(dir.path()).paths, Duration::ZERO).unwrap();
}

/// Two sockets and one state directory, as with a runtime directory that only some shells have: the second one would take the first one's
/// sessions for its leavings.
#[tokio::test]
async fn a_second_daemon_with_the_same_state_is_refused_and_told_where_the_first_is() {
    let daemon = start(|_| {}).await;
    let first = &daemon.settings.paths;
    let beside = Paths { socket: first.runtime_dir.join("other.sock"), lock: first.runtime_dir.join("other.lock"), ..first.clone() };
    let fault = own_the_place(&beside, Duration::ZERO).unwrap_err();
    assert!(fault.message.contains(&first.socket.display().to_string()) && fault.hint.contains("TABMUX_STATE_DIR"), "{fault}");
    let dir = daemon.stop().await;
    own_the_place(&beside, Duration::ZERO).unwrap();
    drop(dir);
}

/// S1.12: what a killed daemon left does not matter.
#[tokio::test]
async fn stale_files_of_a_killed_daemon_do_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let paths = crate::testing::settings(dir.path()).paths;
    rundir::prepare_private(&paths.runtime_dir).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&paths.socket).unwrap());
    std::fs::write(&paths.pid_file, "1\n").unwrap();
    std::fs::write(&paths.lock, "").unwrap();
    let daemon = start_in(dir, |_| {}).await;
    daemon.cli().await;
    daemon.stop().await;
}

/// S1.9: of many that start at once one serves; the others wait for its lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_that_want_the_place_one_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let paths = crate::testing::settings(dir.path()).paths;
    let tries: Vec<_> = (0..20)
        .map(|_| {
            let paths = paths.clone();
            std::thread::spawn(move || own_the_place(&paths, Duration::ZERO))
        })
        .collect();
    let locks: Vec<_> = tries.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(locks.iter().filter(|lock| lock.is_ok()).count(), 1);
}

/// S1.10
#[tokio::test]
async fn an_empty_daemon_exits_by_itself_and_leaves_nothing() {
    let daemon = start(|settings| settings.clocks.exit_when_empty = Some(Duration::from_millis(50))).await;
    assert_eq!(daemon.task.await.unwrap().unwrap(), Exit::Empty);
    let paths = daemon.settings.paths;
    assert!(!paths.socket.exists() && !paths.pid_file.exists());
}

/// S1.10: a session keeps the daemon; its end begins the clock.
#[tokio::test]
async fn a_daemon_with_a_session_stays() {
    let daemon = start(|settings| settings.clocks.exit_when_empty = Some(Duration::from_millis(300))).await;
    let mut cli = daemon.cli().await;
    assert!(cli.ask(json!({"id": 1, "do": "call", "tool": "start_browser"})).await.get("ok").is_some());
    pause();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(!daemon.task.is_finished());
    resume();
    cli.ask(json!({"id": 2, "do": "call", "tool": "close_session"})).await;
    assert_eq!(daemon.task.await.unwrap().unwrap(), Exit::Empty);
    assert_eq!(cli.read().await, Some(json!({"tabmux": 1, "goodbye": "empty"})), "who is still connected hears why");
}

/// FACTS §3: a socket that was removed or replaced is put back.
#[tokio::test]
async fn a_socket_that_somebody_removed_is_put_back() {
    let daemon = start(|_| {}).await;
    let socket = daemon.settings.paths.socket.clone();
    std::fs::remove_file(&socket).unwrap();
    pause();
    tokio::time::sleep(SOCKET_WATCH * 2).await;
    resume();
    eventually("it is back", || socket.exists()).await;
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    daemon.stop().await;
}

/// The daemon answers what runs, says goodbye, and is gone within its bound.
#[tokio::test]
async fn stop_lets_a_running_call_finish_and_says_goodbye() {
    let daemon = start(|_| {}).await;
    let mut shim = daemon.connect().await;
    let key = "0123456789abcdef0123456789abcdef";
    shim.ask(json!({"tabmux": 1, "hello": {"role": "mcp", "program": "t", "pid": 1, "key": key}})).await;
    let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    shim.ask(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client})).await;
    let call =
        |id, name: &str, args| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": args}});
    shim.ask(call(1, "navigate", json!({"url": "http://a.test/"}))).await;
    shim.send(call(2, "evaluate", json!({"script": "sleep(200)"}))).await;
    let mut cli = daemon.cli().await;
    while cli.ask(json!({"id": 1, "do": "status"})).await["ok"]["calls"]["running"] != 1 {}
    let began = std::time::Instant::now();
    daemon.stop().await;
    assert!(began.elapsed() < Duration::from_secs(5));
    let answer = shim.read().await.unwrap();
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().starts_with("\"slept 200\""), "{answer}");
    assert_eq!(shim.read().await, Some(json!({"tabmux": 1, "goodbye": "stop"})));
    assert_eq!(shim.read().await, None);
}

/// The next daemon on the same directories serves, with nothing left of sessions that ended for good.
#[tokio::test]
async fn a_stopped_daemon_leaves_no_session_to_the_next() {
    let daemon = start(|_| {}).await;
    daemon.cli().await.ask(json!({"id": 1, "do": "call", "tool": "start_browser"})).await;
    let dir = daemon.stop().await;
    let next = start_in(dir, |_| {}).await;
    let list = next.cli().await.ask(json!({"id": 1, "do": "sessions", "all": true})).await;
    assert_eq!(list["ok"]["sessions"], json!([]));
    next.stop().await;
}

/// Peers that connect while the daemon exits are served by nobody rather than half.
#[tokio::test]
async fn peers_that_come_at_the_instant_of_the_exit_see_the_end_before_a_welcome() {
    // On a busy machine a short-lived daemon may be gone before anybody could come.
    for empty_ms in [30, 300, 3_000, 10_000] {
        if peers_until_the_exit(Duration::from_millis(empty_ms)).await > 0 {
            return;
        }
    }
    panic!("nobody ever came in time");
}

/// How many came to a daemon that exits after so long.
async fn peers_until_the_exit(empty: Duration) -> usize {
    let daemon = start(|settings| settings.clocks.exit_when_empty = Some(empty)).await;
    let socket = daemon.settings.paths.socket.clone();
    let hello = format!("{}\n", json!({"tabmux": 1, "hello": {"role": "mcp", "program": "t", "pid": 1}}));
    let mut came = 0;
    while let Ok(mut stream) = UnixStream::connect(&socket).await {
        drop(stream.write_all(hello.as_bytes()).await);
        if let Some(line) = Peer(BufReader::new(stream)).read().await {
            assert!(line.get("welcome").is_some(), "{line}");
        }
        came += 1;
    }
    assert_eq!(daemon.task.await.unwrap().unwrap(), Exit::Empty);
    came
}
