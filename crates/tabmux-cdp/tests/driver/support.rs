//! What the tests on real Chromium need: a browser of their own and a small site.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use tabmux_cdp::CdpBrowser;
use tabmux_cdp::attach::{AttachError, Endpoint, Located, Profiles, locate};
use tabmux_cdp::find::{Binary, Places, Want};
use tabmux_cdp::keeper::{KeeperHome, keepers};
use tabmux_cdp::launch::{Launch, LaunchError, Mode};
use tabmux_cdp::protocol::page::CreateIsolatedWorld;
use tabmux_cdp::protocol::runtime::Evaluate;
use tabmux_cdp::protocol::system_info::GetProcessInfo;
use tabmux_cdp::protocol::target::AttachToTarget;
use tabmux_driver::{Browser, Page};

use crate::display::Display;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Serves `http://127.0.0.1:PORT` until the test ends: every path is a page whose title is the value of `?title=` and whose
/// body is what `body` gives for the path.
pub(crate) async fn site(body: impl Fn(&str) -> String + Send + Sync + 'static) -> String {
    serve(move |request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        match path {
            "/nothing" => response("204 No Content", ""),
            "/download" => response("200 OK\r\nContent-Disposition: attachment; filename=a.bin", ""),
            _ => {
                let title = path.split_once("title=").map_or("", |(_, title)| title);
                page(&format!("<title>{title}</title><body>{}", body(path)))
            }
        }
    })
    .await
}

/// Serves what `answer` gives for each request, head and all.
pub(crate) async fn serve(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move { converse(stream, &*answer).await });
        }
    });
    format!("http://{address}")
}

pub(crate) fn response(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

pub(crate) fn page(body: &str) -> String {
    response("200 OK\r\nContent-Type: text/html; charset=utf-8", &format!("<!doctype html>{body}"))
}

async fn converse(mut stream: TcpStream, answer: &(dyn Fn(&str) -> String + Send + Sync)) -> Option<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&chunk[..read]);
    }
    stream.write_all(answer(&String::from_utf8_lossy(&request)).as_bytes()).await.ok()?;
    stream.shutdown().await.ok()
}

/// A headless browser of this test's own. Its keeper ends it soon after the test has dropped it.
pub(crate) async fn chromium() -> Arc<CdpBrowser> {
    let binary = Places::here(None).find(Want::Plain).expect("a Chromium is installed");
    CdpBrowser::launch(&home(), &Launch::new(binary, Mode::Headless)).await.expect("the browser starts")
}

/// An unseen browser of this kind, started as `change` says.
pub(crate) async fn chromium_with(want: Want, change: impl FnOnce(&mut Launch)) -> Arc<CdpBrowser> {
    let binary = Places::here(None).find(want).expect("a Chromium is installed");
    let mut launch = Launch::new(binary, Mode::Headless);
    change(&mut launch);
    CdpBrowser::launch(&home(), &launch).await.expect("the browser starts")
}

/// The kind that is preferred for agents, or a full one; both unseen.
pub(crate) async fn chromium_for(want: Want) -> Arc<CdpBrowser> {
    match want {
        Want::Plain => chromium().await,
        Want::Full => full_chromium(None).await,
    }
}

/// A full browser that outlives whoever launched it, and where the next one finds it.
pub(crate) async fn full_chromium_and_home() -> (Arc<CdpBrowser>, KeeperHome) {
    let home = KeeperHome { grace: Some(Duration::from_secs(20)), ..home() };
    let binary = Places::here(None).find(Want::Full).expect("a full Chromium is installed");
    (CdpBrowser::launch(&home, &Launch::new(binary, Mode::Headless)).await.expect("the browser starts"), home)
}

/// As when a daemon dies and another one takes its browser over.
pub(crate) async fn next_daemon(home: &KeeperHome, browser: Arc<CdpBrowser>) -> Arc<CdpBrowser> {
    browser.connection().close("the daemon died");
    drop(browser);
    let socket = keepers(&home.runtime_dir).pop().expect("it has a keeper");
    loop {
        match CdpBrowser::take_over(home, &socket).await {
            Ok(browser) => return browser,
            // Not yet let go.
            Err(LaunchError::Claimed { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A full browser, on this display if there is one.
pub(crate) async fn full_chromium(display: Option<&Display>) -> Arc<CdpBrowser> {
    let mut home = home();
    let mode = if display.is_some() { Mode::Headed } else { Mode::Headless };
    if let Some(display) = display {
        let keeper = std::mem::replace(&mut home.exe, "/usr/bin/env".into());
        home.words = vec![format!("DISPLAY={}", display.name).into(), keeper.into()];
    }
    let binary = Places::here(None).find(Want::Full).expect("a full Chromium is installed");
    CdpBrowser::launch(&home, &Launch::new(binary, mode)).await.expect("the browser starts")
}

/// A browser as a person has it: it listens on a port of its own choice, and nobody here has a page in it. It ends when what
/// is given is dropped. Also its WebSocket.
pub(crate) async fn somebodys() -> (Arc<CdpBrowser>, Located) {
    // Hundreds of tabs of one site in a few processes.
    somebodys_with(&["--remote-debugging-port=0", "--process-per-site", "--renderer-process-limit=2"]).await
}

pub(crate) async fn somebodys_with(args: &[&str]) -> (Arc<CdpBrowser>, Located) {
    let binary = Places::here(None).find(Want::Full).expect("a full Chromium is installed");
    let (home, mut launch) = (home(), Launch::new(binary, Mode::Headless));
    launch.args = args.iter().map(|&arg| arg.to_owned()).collect();
    let browser = CdpBrowser::launch(&home, &launch).await.expect("the browser starts");
    let profiles = Profiles { dirs: vec![home.profiles_dir.join(&browser.info().id).join("profile")], else_at: None };
    let located = loop {
        let profiles = profiles.clone();
        let looked = tokio::task::spawn_blocking(move || locate(&Endpoint::Auto, &profiles)).await.expect("no panic");
        match looked {
            Ok(located) => break located,
            // The pipe serves before the port does; each question gives it time.
            Err(AttachError::NoneFound) => drop(browser.connection().call(None, &GetProcessInfo::default()).await.expect("it lives")),
            Err(error) => panic!("{error}"),
        }
    };
    (browser, located)
}

/// A full browser that takes no extension over its wire, as some that people start.
pub(crate) async fn everyday_chromium() -> Arc<CdpBrowser> {
    let home = home();
    let full = Places::here(None).find(Want::Full).expect("a full Chromium is installed");
    let path = home.runtime_dir.join("everyday.sh");
    let skip = "for a do shift; case $a in --enable-unsafe-extension-debugging) ;; *) set -- \"$@\" \"$a\" ;; esac; done";
    std::fs::write(&path, format!("#!/bin/sh\n{skip}\nexec {} --disable-extensions \"$@\"\n", full.path.display()))
        .expect("the directory is ours");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the file is ours");
    CdpBrowser::launch(&home, &Launch::new(Binary { path, kind: full.kind }, Mode::Headless)).await.expect("the browser starts")
}

fn home() -> KeeperHome {
    // Not removed with the test: its keeper still needs it to clean up.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory").keep();
    KeeperHome {
        exe: env!("CARGO_BIN_EXE_tabmux-test-keeper").into(),
        words: Vec::new(),
        runtime_dir: place.clone(),
        profiles_dir: place,
        grace: Some(Duration::from_millis(1)),
    }
}

pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("not zero");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("our own browser");
}

/// Kills everything that draws pages; the browser itself lives on.
pub(crate) async fn kill_renderers(browser: &CdpBrowser) {
    let known = browser.connection().call(None, &GetProcessInfo::default()).await.expect("the browser knows its processes");
    for process in known.process_info.iter().filter(|process| process.kind == "renderer") {
        kill(u32::try_from(process.id).expect("a pid"));
    }
}

/// Runs an expression where our own scripts run in the page, over an attachment of the test's own.
pub(crate) async fn in_our_world(browser: &CdpBrowser, page: &Arc<dyn Page>, expression: &str) -> serde_json::Value {
    let (connection, target) = (browser.connection(), page.handle().0.clone());
    let attach = AttachToTarget { target_id: target.clone(), flatten: Some(true) };
    let session = connection.call(None, &attach).await.expect("our own page").session_id;
    let world = CreateIsolatedWorld { frame_id: target, world_name: Some("tabmux".into()), ..CreateIsolatedWorld::default() };
    let context_id = Some(connection.call(Some(&session), &world).await.expect("a page has worlds").execution_context_id);
    let evaluate = Evaluate { expression: expression.into(), context_id, return_by_value: Some(true), ..Evaluate::default() };
    let reply = connection.call(Some(&session), &evaluate).await.expect("it runs");
    reply.result.value.unwrap_or_default()
}
