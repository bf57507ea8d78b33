//! Bad input and bad surroundings: the answer is clear, the daemon stays up, its memory stays bounded, and the
//! calm client beside it notices nothing.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Door, Lab, Mcp, SOON, process, until};

const MEGABYTE: usize = 1024 * 1024;
/// A debug build's daemon with room to work; far below what the hostile input weighs.
const MEMORY_LIMIT_KB: u64 = 64 * 1024;
/// The same beside the 32 MB that peers may leave unread, and what the allocator keeps of them.
const UNREAD_LIMIT_KB: u64 = 128 * 1024;

/// A home whose daemon serves one calm client.
struct Scene {
    calm: Mcp,
    daemon: u32,
    lab: Lab,
}

impl Scene {
    fn new() -> Self {
        let lab = Lab::new();
        let calm = lab.ready_client();
        calm.ok("start_browser", &json!({"sessionId": "calm"}));
        let daemon = lab.daemon_pid();
        Self { calm, daemon, lab }
    }

    fn door(&self) -> Door {
        Door::open(&self.lab.socket())
    }

    /// The same daemon, within its memory, and the calm client is served promptly.
    fn assert_calm(&self, after: &str) {
        self.assert_calm_within(after, MEMORY_LIMIT_KB);
    }

    fn assert_calm_within(&self, after: &str, limit_kb: u64) {
        let began = Instant::now();
        self.calm.ok("evaluate", &json!({"sessionId": "calm", "script": "1"}));
        let took = began.elapsed();
        assert!(took < Duration::from_secs(3), "after {after} the calm client waited {took:?}");
        assert_eq!(self.lab.daemon_pid(), self.daemon, "after {after} it is another daemon");
        let peak = process::peak_rss_kb(self.daemon);
        assert!(peak < limit_kb, "after {after} the daemon had {peak} kB");
        println!("after {after}: served in {took:?}, peak {peak} kB");
    }
}

/// Sends a line of the given size in pieces. The daemon may hang up on it; it may not take it all in.
fn send_long_line(door: &mut Door, head: &str, megabytes: usize, tail: &str) {
    let piece = vec![b'x'; MEGABYTE];
    if door.try_send_bytes(head.as_bytes()).is_ok() {
        let all_taken = (0..megabytes).all(|_| door.try_send_bytes(&piece).is_ok());
        let _ = all_taken && door.try_send_bytes(tail.as_bytes()).is_ok();
    }
}

fn assert_refused(answer: Option<&Value>, code: &str, what: &str) {
    let answer = answer.unwrap_or_else(|| panic!("{what}: the daemon hung up without a word"));
    assert!(answer.to_string().contains(code), "{what}: {answer}");
}

/// S1.13
#[test]
fn a_line_of_256_megabytes_is_refused() {
    let scene = Scene::new();
    let mut door = scene.door();
    send_long_line(&mut door, "", 256, "\n");
    assert_refused(door.next().as_ref(), "frame_too_large", "socket");
    scene.assert_calm("a line of 256 MB on the socket");
    let shim = scene.lab.ready_client();
    shim.write_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":\"big\",\"method\":\"tools/call\",\"params\":{\"name\":\"");
    let piece = vec![b'x'; MEGABYTE];
    (0..256).for_each(|_| shim.write_bytes(&piece));
    shim.write_bytes(b"\"}}\n");
    let answer = shim.reply(&json!("big"), SOON);
    assert!(answer.to_string().contains("frame_too_large"), "{answer}");
    assert!(process::peak_rss_kb(shim.pid()) < MEMORY_LIMIT_KB, "the shim took it all in");
    shim.ok("list_sessions", &json!({}));
    scene.assert_calm("a line of 256 MB through a shim");
}

/// S1.13
#[test]
fn a_frame_of_64_megabytes_is_refused_on_every_door() {
    let scene = Scene::new();
    let mut door = scene.door();
    send_long_line(&mut door, "{\"type\":\"REGISTER\",\"id\":\"1\",\"pad\":\"", 64, "\"}\n");
    assert_refused(door.next().as_ref(), "frame_too_large", "socket");
    let http = scene.lab.http();
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(64 * MEGABYTE));
    let instance = http.initialize("/mcp");
    for path in ["/mcp", "/commands"] {
        let answer = http.request("POST", path, &[("X-Instance-ID", &instance)], body.as_bytes());
        assert_eq!(answer.status, 413, "{path}: {:?}", answer.headers);
    }
    scene.assert_calm("frames of 64 MB");
}

/// S1.13
#[test]
fn depth_broken_utf8_and_double_keys_get_a_clear_answer() {
    let scene = Scene::new();
    let deep = [b"{\"type\":".to_vec(), vec![b'['; 100_000], b"\n".to_vec()].concat();
    let broken = b"{\"type\":\"REGISTER\",\"id\":\"\xff\xfe\"}\n".to_vec();
    let double = b"{\"type\":\"REGISTER\",\"id\":\"1\",\"id\":\"2\"}\n".to_vec();
    let http = scene.lab.http();
    let instance = http.initialize("/mcp");
    for (line, what) in [
        (&deep, "depth"),
        (&broken, "UTF-8"),
        (&double, "double key"),
        (&b"nonsense\n".to_vec(), "no JSON"),
        (&b"[]\n".to_vec(), "an array"),
    ] {
        let mut door = scene.door();
        door.send_bytes(line);
        assert_refused(door.next().as_ref(), "bad_argument", what);
        let answer = http.request("POST", "/commands", &[("X-Instance-ID", &instance)], line.trim_ascii_end());
        assert_eq!(answer.status, 400, "{what}: {answer:?}");
    }
    scene.assert_calm("depth 100,000, broken UTF-8, double keys");
}

/// Garbage between good messages does not cost an MCP client its connection.
#[test]
fn an_mcp_client_survives_its_own_garbage() {
    let scene = Scene::new();
    let shim = scene.lab.ready_client();
    shim.write_bytes(&[vec![b'['; 100_000], b"\n".to_vec()].concat());
    shim.write_bytes(b"\xff\xfe\xfd\n\n{}\nnot json\n{\"jsonrpc\":\"2.0\"}\n");
    shim.write_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":\"dup\",\"id\":\"dup\",\"method\":\"ping\"}\n");
    shim.ok("list_sessions", &json!({}));
    assert!(shim.is_running());
    scene.assert_calm("garbage through a shim");
}

/// A field nobody knows is named together with one that there is, on every door but MCP's envelope, where the
/// protocol asks for tolerance.
#[test]
fn unknown_fields_are_named_on_every_door() {
    let scene = Scene::new();
    let refused = |answer: &Value, known: &str, what: &str| {
        let said = answer.to_string();
        assert!(["bad_argument", "bogus", known].iter().all(|part| said.contains(part)), "{what}: {said}");
    };
    let hello = json!({"role": "cli", "program": "0.0.0", "pid": 1});
    let mut odd = hello.clone();
    odd["bogus"] = json!(1);
    refused(&scene.door().ask(&json!({"tabmux": 1, "hello": odd})), "program", "hello");
    refused(&scene.door().ask(&json!({"tabmux": 1, "hello": hello, "bogus": 1})), "hello", "the hello's line");
    let mut control = scene.door();
    control.ask(&json!({"tabmux": 1, "hello": hello}));
    for (ask, known) in [(json!({"do": "status"}), "do"), (json!({"do": "call", "tool": "list_sessions", "args": {}}), "tool")] {
        let mut ask = ask;
        (ask["id"], ask["bogus"]) = (json!(7), json!(1));
        let answer = control.ask(&ask);
        refused(&answer, known, "control");
        assert_eq!(answer["id"], 7);
    }
    let mut seed1 = scene.door();
    for kind in ["REGISTER", "REQUEST", "PING", "DISCONNECT", "STATUS"] {
        let answer = seed1.ask(&json!({"type": kind, "id": "1", "bogus": 1}));
        refused(&answer, "version", kind);
        assert_eq!(answer["id"], "1");
    }
    assert_eq!(seed1.ask(&json!({"type": "PING", "id": "2", "sessionId": "sess_a1b2c3d4", "version": 1}))["type"], "PONG");
    let mut seed3 = scene.door();
    for method in ["open", "tab", "dispose", "list"] {
        let method = format!("browser.agent_session.{method}");
        refused(&seed3.ask(&json!({"id": 1, "method": method, "params": {}, "bogus": 1})), "params", &method);
        refused(&seed3.ask(&json!({"id": 1, "method": method, "params": {"bogus": 1}})), "profile_id", &method);
        refused(&seed3.ask(&json!({"id": 1, "method": method, "params": {"caller": {"bogus": 1}}})), "token", &method);
    }
    scene.assert_calm("unknown fields on the socket");
}

/// S2.27
#[test]
fn unknown_fields_over_http_are_named_and_mcps_envelope_tolerates_them() {
    let scene = Scene::new();
    let http = scene.lab.http();
    let instance = http.initialize("/mcp");
    let body = json!({"name": "list_sessions", "payload": {}, "bogus": 1}).to_string();
    let command = http.request("POST", "/commands", &[("X-Instance-ID", &instance)], body.as_bytes());
    assert_eq!(command.status, 400, "{command:?}");
    let said = command.json().to_string();
    assert!(["bad_argument", "bogus", "originId"].iter().all(|part| said.contains(part)), "{said}");
    let shim = scene.lab.ready_client();
    let odd = shim.fails("list_sessions", &json!({"bogus": 1}), "bad_argument");
    assert!(odd.contains("bogus") && odd.contains("The arguments are"), "{odd}");
    let call = json!({"name": "list_sessions", "arguments": {}, "bogus": 1, "_meta": {"example.test/bogus": 1}});
    shim.write(&json!({"jsonrpc": "2.0", "id": "odd", "method": "tools/call", "params": call, "bogus": 1}));
    let answer = shim.reply(&json!("odd"), SOON);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    scene.assert_calm("unknown fields over HTTP and MCP");
}

#[test]
fn wrong_versions_are_named() {
    let scene = Scene::new();
    let hello = json!({"role": "cli", "program": "0.0.0", "pid": 1});
    for version in [json!(0), json!(2), json!(99), json!("1")] {
        for frame in [
            json!({"tabmux": version, "hello": hello}),
            json!({"type": "REGISTER", "id": "1", "version": version}),
            json!({"id": 1, "method": "browser.agent_session.list", "version": version}),
        ] {
            assert_refused(Some(&scene.door().ask(&frame)), "protocol_version", &frame.to_string());
        }
    }
    let http = scene.lab.http();
    let old = http.post("/mcp", &[("mcp-protocol-version", "1999-01-01")], &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    assert_eq!(old.status, 400, "{old:?}");
    scene.assert_calm("unknown versions");
}

/// As long as an answer's text can be; a socket holds one.
const BIG: &str = "\"x\".repeat(200000)";

/// A peer of Seed 1, and the request that it will repeat.
fn seed1_peer(mut door: Door) -> (Door, Value) {
    let session = door.ask(&json!({"type": "REGISTER", "id": "1"}))["sessionId"].clone();
    let request = json!({"type": "REQUEST", "id": "2", "sessionId": session, "action": "evaluate", "params": {"script": BIG}});
    (door, request)
}

/// The same behind a versioned hello.
fn mcp_peer(mut door: Door) -> (Door, Value) {
    let rpc = |id: u32, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let client = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "sleeper", "version": "0"}});
    door.ask(&json!({"tabmux": 1, "hello": {"role": "mcp", "program": "sleeper", "pid": 1}}));
    door.ask(&rpc(1, "initialize", client));
    door.ask(&rpc(2, "tools/call", json!({"name": "start_browser", "arguments": {}})));
    (door, rpc(3, "tools/call", json!({"name": "evaluate", "arguments": {"script": BIG}})))
}

/// What eight peers leave unread is three times what all peers together may; the calm client is served meanwhile.
#[test]
fn a_peer_that_never_reads_harms_only_itself() {
    let scene = Scene::new();
    let mut sleepers: Vec<_> = (0..4).flat_map(|_| [seed1_peer(scene.door()), mcp_peer(scene.door())]).collect();
    for (door, request) in &mut sleepers {
        let lines = format!("{request}\n").repeat(100);
        door.try_send_bytes(lines.as_bytes()).expect("a few kB fit the socket");
    }
    for _ in 0..20 {
        let began = Instant::now();
        scene.calm.ok("evaluate", &json!({"sessionId": "calm", "script": "1"}));
        assert!(began.elapsed() < Duration::from_secs(3), "the calm client waited {:?}", began.elapsed());
    }
    until("all that was asked has run", Duration::from_secs(60), || {
        let calls = scene.lab.status()["calls"].clone();
        (calls["total"].as_u64() >= Some(500) && calls["running"] == 0 && calls["queued"] == 0).then_some(())
    });
    scene.assert_calm_within("peers that never read", UNREAD_LIMIT_KB);
    drop(sleepers);
    scene.assert_calm_within("peers that never read went away", UNREAD_LIMIT_KB);
}

#[test]
fn half_open_peers_take_no_seat() {
    let scene = Scene::new();
    let silent: Vec<_> = (0..200).map(|_| scene.door()).collect();
    let mut half = scene.door();
    half.send_bytes(b"{\"type\":\"REGIS");
    half.shut_writing();
    assert_eq!(half.next(), None, "half a line is no message");
    scene.lab.ready_client().ok("list_sessions", &json!({}));
    let tcp: Vec<_> = (0..50).map(|_| std::net::TcpStream::connect(("127.0.0.1", scene.lab.http().port)).unwrap()).collect();
    scene.assert_calm("200 silent peers and 50 silent TCP connections");
    drop((silent, tcp));
}

#[test]
fn without_file_descriptors_the_daemon_stays_up_and_recovers() {
    let lab = Lab::new();
    let mut limited = Command::new("sh");
    lab.environment(&mut limited);
    let started = lab.run_command(limited.args(["-c", "ulimit -n 64; exec \"$0\" new -s first", env!("CARGO_BIN_EXE_tabmux")]));
    assert_eq!(started.code, 0, "{started:?}");
    let daemon = lab.daemon_pid();
    let calm = lab.ready_client();
    calm.ok("start_browser", &json!({"sessionId": "calm"}));
    let crowd: Vec<_> = (0..100).filter_map(|_| UnixStream::connect(lab.socket()).ok()).collect();
    assert!(crowd.len() >= 64, "the backlog takes {}", crowd.len());
    for _ in 0..20 {
        calm.ok("evaluate", &json!({"sessionId": "calm", "script": "1"}));
    }
    assert!(process::is_alive(daemon));
    drop(crowd);
    until("new clients are served again", SOON, || (lab.run(&["status", "--json"]).code == 0).then_some(()));
    assert_eq!(lab.daemon_pid(), daemon);
    lab.ready_client().ok("list_sessions", &json!({}));
}

/// A directory that can be full: a tiny file system of its own, which only root can mount.
struct TinyDisk {
    lab: Lab,
    at: std::path::PathBuf,
}

impl TinyDisk {
    /// `variable` names the directory that is on it.
    fn mount(variable: &str) -> Result<Self, String> {
        let at = tempfile::Builder::new().prefix("tmfull").tempdir_in("/tmp").map_err(|error| error.to_string())?.keep();
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k,mode=0700", "tmpfs"]).arg(&at).output();
        let output = output.map_err(|error| error.to_string())?;
        if !output.status.success() {
            let _ = std::fs::remove_dir(&at);
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        Ok(Self { lab: Lab::with(&[(variable, at.to_str().expect("a plain path"))]), at })
    }

    /// Fills it to the last byte, and gives the file to remove again.
    fn fill(&self) -> std::path::PathBuf {
        let filler = self.at.join("filler");
        let full = std::fs::write(&filler, vec![0; MEGABYTE]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        filler
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        for pid in self.lab.daemons() {
            process::kill(pid);
        }
        until("the daemon is gone", SOON, || self.lab.daemons().is_empty().then_some(()));
        let _ = Command::new("umount").arg(&self.at).status();
        let _ = std::fs::remove_dir(&self.at);
    }
}

/// The lock says that a daemon lives; the pid file is for people.
#[test]
fn a_full_disk_costs_the_pid_file_and_not_the_daemon() {
    let disk = match TinyDisk::mount("TABMUX_RUNTIME_DIR") {
        Ok(disk) => disk,
        Err(why) => return println!("not run: a full disk needs a mount of its own, and {why}"),
    };
    disk.fill();
    disk.lab.ready_client().ok("start_browser", &json!({"sessionId": "here"}));
    assert!(!disk.at.join("tabmux.pid").exists());
    let log = std::fs::read_to_string(disk.lab.state_dir().join("daemon.log")).unwrap();
    assert!(log.contains("no pid file") && log.contains("no_space"), "{log}");
    assert_eq!(disk.lab.run(&["stop"]).code, 0);
}

#[test]
fn a_full_disk_is_said_and_the_daemon_stays_up() {
    let disk = match TinyDisk::mount("TABMUX_STATE_DIR") {
        Ok(disk) => disk,
        Err(why) => return println!("not run: a full disk needs a mount of its own, and {why}"),
    };
    let lab = &disk.lab;
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "before"}));
    let daemon = lab.daemon_pid();
    let filler = disk.fill();
    let replies: Vec<_> = (0..50).map(|n| client.call("start_browser", &json!({"sessionId": format!("s{n}")}))).collect();
    let refused = replies.iter().find(|reply| reply.failed()).expect("the journal cannot grow on a full disk");
    assert_eq!(refused.code(), "no_space", "{refused:?}");
    client.ok("evaluate", &json!({"sessionId": "before", "script": "1"}));
    assert_eq!(lab.daemon_pid(), daemon);
    std::fs::remove_file(filler).unwrap();
    client.ok("start_browser", &json!({"sessionId": "after"}));
}

#[test]
fn without_home_the_set_directories_are_enough() {
    let lab = Lab::new();
    let mut command = lab.command(&["new", "-s", "homeless"]);
    let printed = lab.run_command(command.env_remove("HOME"));
    assert_eq!(printed.code, 0, "{printed:?}");
    lab.ready_client().ok("list_sessions", &json!({}));
}

#[test]
fn a_runtime_directory_of_200_characters_works() {
    let parent = tempfile::tempdir().unwrap();
    let long = parent.path().join("x".repeat(200 - parent.path().as_os_str().len() - 1));
    let lab = Lab::with(&[("TABMUX_RUNTIME_DIR", long.to_str().unwrap())]);
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": "https://long.test/"}));
    lab.stop();
}

/// The runtime directory must be refused: no daemon, one clear sentence, exit 69 or 78.
fn assert_directory_refused(lab: &Lab, named: &str) {
    let printed = lab.run(&["new", "-s", "never"]);
    assert!([69, 78].contains(&printed.code), "{named}: {printed:?}");
    assert!(printed.stderr.contains(named), "it says {named}: {printed:?}");
    assert!(printed.stderr.contains(lab.runtime_dir().to_str().unwrap()), "it names the directory: {printed:?}");
    assert_eq!(lab.daemons(), Vec::<u32>::new());
}

/// S1.30
#[test]
fn a_runtime_directory_that_is_a_symlink_is_refused() {
    let lab = Lab::new();
    let real = lab.path().join("real");
    std::fs::create_dir(&real).unwrap();
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o700)).unwrap();
    symlink(&real, lab.runtime_dir()).unwrap();
    assert_directory_refused(&lab, "symbolic link");
}

/// S1.30
#[test]
fn a_runtime_directory_that_others_may_write_is_refused() {
    let lab = Lab::new();
    std::fs::create_dir(lab.runtime_dir()).unwrap();
    std::fs::set_permissions(lab.runtime_dir(), PermissionsExt::from_mode(0o770)).unwrap();
    assert_directory_refused(&lab, "0770");
}

/// S1.30
#[test]
fn another_users_runtime_directory_is_refused() {
    if !process::is_root() {
        return println!("not run: only root can give a directory away");
    }
    let lab = Lab::new();
    std::fs::create_dir(lab.runtime_dir()).unwrap();
    std::fs::set_permissions(lab.runtime_dir(), PermissionsExt::from_mode(0o700)).unwrap();
    chown(lab.runtime_dir(), Some(12345), Some(12345)).unwrap();
    assert_directory_refused(&lab, "12345");
}

/// S1.12, S1.30: a file, and a dead listener's socket, where the daemon's socket belongs.
#[test]
fn a_squatted_socket_path_does_not_keep_the_daemon_out() {
    for squat in ["file", "dead socket"] {
        let lab = Lab::new();
        std::fs::create_dir(lab.runtime_dir()).unwrap();
        std::fs::set_permissions(lab.runtime_dir(), PermissionsExt::from_mode(0o700)).unwrap();
        match squat {
            "file" => std::fs::write(lab.socket(), b"not a socket").unwrap(),
            _ => drop(UnixListener::bind(lab.socket()).unwrap()),
        }
        let client = lab.ready_client();
        client.ok("list_sessions", &json!({}));
        lab.stop();
    }
}

/// S1.9, S1.30: somebody listens there who is not a daemon.
#[test]
fn a_squatter_that_never_answers_is_found_out() {
    let lab = Lab::new();
    std::fs::create_dir(lab.runtime_dir()).unwrap();
    std::fs::set_permissions(lab.runtime_dir(), PermissionsExt::from_mode(0o700)).unwrap();
    let squatter = UnixListener::bind(lab.socket()).unwrap();
    let began = Instant::now();
    let printed = lab.run_within(&mut lab.command(&["new", "-s", "x"]), Duration::from_secs(90));
    println!("with a silent squatter: exit {} after {:?}: {}", printed.code, began.elapsed(), printed.stderr);
    // The free lock gives it away.
    assert!(printed.code == 69 && printed.stderr.contains("no tabmux daemon"), "{printed:?}");
    drop(squatter);
}
