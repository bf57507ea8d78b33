//! The connection on a real Chromium, over its pipe.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use std::io::pipe;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use serde_json::value::RawValue;
use tabmux_cdp::protocol::{browser, page, runtime, target};
use tabmux_cdp::{CdpError, Connection, Listener, Start, Transport};
use tokio::sync::mpsc;
use tokio::time::timeout;

const BROWSER: &str = "/usr/lib/chromium/chromium-headless-shell";
const LIMIT: Duration = Duration::from_secs(60);

struct Chromium {
    process: Child,
    from_browser: OwnedFd,
    to_browser: OwnedFd,
    _profile: tempfile::TempDir,
}

impl Chromium {
    fn launch() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let (commands, to_browser) = pipe().unwrap();
        let (from_browser, replies) = pipe().unwrap();
        let mut command = Command::new(BROWSER);
        command
            .args(["--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .fd_mappings(vec![FdMapping { parent_fd: commands.into(), child_fd: 3 }, FdMapping { parent_fd: replies.into(), child_fd: 4 }])
            .unwrap();
        let process = command.spawn().unwrap_or_else(|error| panic!("install chromium-headless-shell for this test: {BROWSER}: {error}"));
        Self { process, from_browser: from_browser.into(), to_browser: to_browser.into(), _profile: profile }
    }

    /// A connection over duplicates of the pipes, so that it can end and another take over.
    fn connect(&self, first_id: i32, start: Start) -> (Connection, mpsc::UnboundedReceiver<String>) {
        let (from_browser, to_browser) = (self.from_browser.try_clone().unwrap(), self.to_browser.try_clone().unwrap());
        let (root, heard) = ear();
        (Connection::start(Transport::pipe(from_browser, to_browser, start).unwrap(), first_id, root), heard)
    }

    /// Closes the pipe, which ends the browser.
    async fn end(self) {
        let Self { mut process, from_browser, to_browser, _profile } = self;
        drop((from_browser, to_browser));
        let ended = tokio::task::spawn_blocking(move || process.wait());
        timeout(LIMIT, ended).await.expect("the browser ends with its pipe").unwrap().unwrap();
    }
}

struct Ear(mpsc::UnboundedSender<String>);

fn ear() -> (Arc<dyn Listener>, mpsc::UnboundedReceiver<String>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Arc::new(Ear(sender)), receiver)
}

impl Listener for Ear {
    fn event(&self, method: &str, _: &RawValue) {
        let _ = self.0.send(method.to_owned());
    }

    fn gone(&self, why: &CdpError) {
        let _ = self.0.send(format!("gone: {why}"));
    }
}

async fn call<C: tabmux_cdp::protocol::Command>(connection: &Connection, session: Option<&str>, command: C) -> C::Reply {
    connection.call_in(session, &command, LIMIT).await.unwrap()
}

/// A page of its own context, attached to.
async fn page(connection: &Connection) -> (String, String) {
    let context = call(connection, None, target::CreateBrowserContext::default()).await.browser_context_id;
    let create = target::CreateTarget { url: "about:blank".into(), browser_context_id: Some(context), ..Default::default() };
    let target_id = call(connection, None, create).await.target_id;
    let attach = target::AttachToTarget { target_id: target_id.clone(), flatten: Some(true) };
    (target_id, call(connection, None, attach).await.session_id)
}

fn script(expression: impl Into<String>) -> runtime::Evaluate {
    runtime::Evaluate { expression: expression.into(), return_by_value: Some(true), ..Default::default() }
}

async fn heard(ear: &mut mpsc::UnboundedReceiver<String>, wanted: &str) {
    while timeout(LIMIT, ear.recv()).await.expect(wanted).expect(wanted) != wanted {}
}

#[tokio::test]
async fn a_thousand_scripts_are_a_thousand_calls() {
    let chromium = Chromium::launch();
    let (connection, _root) = chromium.connect(1, Start::Fresh);
    let version = call(&connection, None, browser::GetVersion {}).await;
    assert!(version.product.contains("Chrome"), "{}", version.product);
    let (_, session) = page(&connection).await;

    let (tap, before) = (connection.tap(2000), connection.counts());
    let replies: Vec<_> = (0..1000).map(|n| connection.send(Some(&session), &script(format!("{n} * 2")))).collect();
    for (n, reply) in replies.into_iter().enumerate() {
        let value = timeout(LIMIT, reply).await.unwrap().unwrap().result.value.unwrap();
        assert_eq!(value, 2 * n);
    }
    let after = connection.counts();
    assert_eq!((after.calls - before.calls, after.replies - before.replies, after.pending, after.stray), (1000, 1000, 0, 0));
    assert_eq!((tap.sent().len(), tap.dropped()), (1000, 0));
    assert!(tap.sent().iter().all(|sent| sent.method == "Runtime.evaluate" && sent.session.as_ref() == Some(&session)));

    let refused = connection.call_in(Some(&session), &runtime::ReleaseObject::default(), LIMIT).await;
    assert!(matches!(refused, Err(CdpError::Refused { method: "Runtime.releaseObject", .. })), "{refused:?}");
    drop(connection);
    chromium.end().await;
}

#[tokio::test]
async fn events_reach_the_listener_of_their_page_and_a_closed_page_is_gone() {
    let chromium = Chromium::launch();
    let (connection, _root) = chromium.connect(1, Start::Fresh);
    let (target_id, session) = page(&connection).await;
    let (listener, mut ears) = ear();
    call(&connection, Some(&session), page::Enable::default()).await;
    call(&connection, Some(&session), runtime::Enable {}).await;
    connection.listen(&session, listener);
    heard(&mut ears, "Runtime.executionContextCreated").await;
    let url = "data:text/html,<title>here</title>".to_owned();
    call(&connection, Some(&session), page::Navigate { url, ..Default::default() }).await;
    heard(&mut ears, "Page.loadEventFired").await;
    let large = call(&connection, Some(&session), script("'ä'.repeat(5e6)")).await.result.value.unwrap();
    assert_eq!(large.as_str().unwrap().len(), 10_000_000);

    let hung = connection.send(Some(&session), &script("for (;;) {}"));
    call(&connection, None, target::CloseTarget { target_id }).await;
    assert_eq!(timeout(LIMIT, hung).await.unwrap().unwrap_err(), CdpError::SessionGone);
    heard(&mut ears, "gone: the target is gone").await;
    let late = connection.call_in(Some(&session), &script("1"), LIMIT).await;
    assert_eq!(late.unwrap_err(), CdpError::SessionGone);
    assert_eq!(connection.counts().lost, 0);
    drop(connection);
    chromium.end().await;
}

/// The former owner ends with replies unread, or with a command half written; sessions and page state live on.
#[tokio::test]
async fn another_connection_takes_the_pipe_over() {
    use std::io::Write;
    let chromium = Chromium::launch();
    let (first, _root) = chromium.connect(1, Start::Fresh);
    let (_, session) = page(&first).await;
    call(&first, Some(&session), script("window.kept = 42")).await;
    let unread: Vec<_> = (0..50).map(|_| first.send(Some(&session), &script("'x'.repeat(2000)"))).collect();
    drop((first, unread));

    // The runtime has one thread, so the former tasks end before the next connection reads.
    tokio::task::yield_now().await;
    let (second, _root) = chromium.connect(1_000_000, Start::TakeOver);
    let value = call(&second, Some(&session), script("window.kept")).await.result.value;
    assert_eq!(value, Some(42.into()));
    second.close("done here");
    assert_eq!(timeout(LIMIT, second.closed()).await.unwrap(), "done here");
    tokio::task::yield_now().await;

    let mut torn = std::fs::File::from(chromium.to_browser.try_clone().unwrap());
    torn.write_all(br#"{"id":2000000,"method":"Browser.clo"#).unwrap();
    let (third, _root) = chromium.connect(3_000_000, Start::TakeOver);
    let value = call(&third, Some(&session), script("++window.kept")).await.result.value;
    assert_eq!(value, Some(43.into()));
    drop((second, third, torn));
    chromium.end().await;
}
