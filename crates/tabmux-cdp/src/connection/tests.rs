use std::sync::Mutex;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;
use crate::protocol::browser::GetVersion;
use crate::protocol::input::InsertText;
use crate::protocol::runtime::{Evaluate, EvaluateReply};
use crate::transport::Start;

const LIMIT: Duration = Duration::from_secs(20);

/// The browser's side, played by the test.
struct Peer {
    read: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
}

impl Peer {
    async fn bytes(&mut self) -> Vec<u8> {
        let mut frame = Vec::new();
        timeout(LIMIT, self.read.read_until(0, &mut frame)).await.expect("a command").unwrap();
        frame
    }

    /// The next command's id.
    async fn heard(&mut self) -> i64 {
        let frame = self.bytes().await;
        let command: Value = serde_json::from_slice(frame.strip_suffix(b"\0").expect("a whole frame")).unwrap();
        command["id"].as_i64().unwrap()
    }

    async fn say(&mut self, text: &str) {
        self.write.write_all(text.as_bytes()).await.unwrap();
        self.write.write_all(b"\0").await.unwrap();
    }

    async fn answer(&mut self, id: i64, value: impl Into<Value>) {
        let value: Value = value.into();
        self.say(&json!({"id": id, "result": {"result": {"type": "object", "value": value}}, "sessionId": "s"}).to_string()).await;
    }

    async fn event(&mut self, session: &str, n: usize) {
        self.say(&json!({"method": "Test.event", "params": {"n": n}, "sessionId": session}).to_string()).await;
    }

    async fn detach(&mut self, session: &str) {
        self.say(&json!({"method": "Target.detachedFromTarget", "params": {"sessionId": session}}).to_string()).await;
    }
}

/// Writes down what it hears; at the word `panic` it does.
struct Ear(mpsc::UnboundedSender<String>);

impl Listener for Ear {
    fn event(&self, method: &str, params: &RawValue) {
        assert!(method != "Test.panic", "as told");
        let _ = self.0.send(format!("{method} {params}"));
    }

    fn gone(&self, why: &CdpError) {
        let _ = self.0.send(format!("gone: {why}"));
    }
}

struct Heard(mpsc::UnboundedReceiver<String>);

impl Heard {
    async fn next(&mut self) -> Option<String> {
        timeout(LIMIT, self.0.recv()).await.expect("something to hear, or the listener's end")
    }
}

fn ear() -> (Arc<dyn Listener>, Heard) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Arc::new(Ear(sender)), Heard(receiver))
}

fn start_at(first_id: i32, start: Start) -> (Connection, Peer, Heard) {
    let (ours, theirs) = tokio::io::duplex(4096);
    let (read, write) = tokio::io::split(ours);
    let (root, heard) = ear();
    let connection = Connection::start(Transport::over(read, write, start), first_id, root);
    let (read, write) = tokio::io::split(theirs);
    (connection, Peer { read: BufReader::new(read), write }, heard)
}

fn start() -> (Connection, Peer, Heard) {
    start_at(1, Start::Fresh)
}

fn ask(connection: &Connection, session: &str) -> impl Future<Output = Result<Value>> + use<> {
    let reply = connection.send(Some(session), &Evaluate { expression: "1".into(), ..Evaluate::default() });
    async move { Ok(timeout(LIMIT, reply).await.expect("a reply")?.result.value.unwrap_or_default()) }
}

#[tokio::test]
async fn replies_may_come_in_any_order() {
    let (connection, mut peer, _root) = start();
    let (a, b) = (ask(&connection, "s"), ask(&connection, "s"));
    assert_eq!((peer.heard().await, peer.heard().await), (1, 2));
    peer.answer(2, "b").await;
    peer.answer(1, "a").await;
    assert_eq!((a.await, b.await), (Ok("a".into()), Ok("b".into())));
    assert_eq!(connection.counts(), Counts { calls: 2, replies: 2, ..Counts::default() });
}

#[tokio::test]
async fn a_dropped_call_is_forgotten_and_its_late_reply_counted() {
    let (connection, mut peer, _root) = start();
    drop(ask(&connection, "s"));
    assert_eq!(connection.counts().pending, 0);
    let kept = ask(&connection, "s");
    peer.answer(1, "late").await;
    peer.say("no CDP at all").await;
    peer.answer(2, "kept").await;
    assert_eq!(kept.await, Ok("kept".into()));
    assert_eq!(connection.counts(), Counts { calls: 2, replies: 1, stray: 2, ..Counts::default() });
}

#[tokio::test]
async fn a_detach_ends_the_calls_of_its_session_only_and_tells_its_listener() {
    let (connection, mut peer, mut root) = start();
    let (listener, mut heard) = ear();
    connection.listen("s", listener);
    let (lost, other) = (ask(&connection, "s"), ask(&connection, "t"));
    peer.detach("s").await;
    assert_eq!(lost.await, Err(CdpError::SessionGone));
    assert_eq!(heard.next().await.as_deref(), Some("gone: the target is gone"));
    assert_eq!(heard.next().await, None, "the listener is let go");
    assert_eq!(root.next().await.as_deref(), Some(r#"Target.detachedFromTarget {"sessionId":"s"}"#));
    peer.answer(2, 2).await;
    assert_eq!(other.await, Ok(2.into()));

    let (late, mut heard) = ear();
    connection.listen("s", late);
    assert_eq!(heard.next().await.as_deref(), Some("gone: the target is gone"));
}

#[tokio::test]
async fn a_crash_ends_the_calls_and_the_session_stays() {
    let (connection, mut peer, _root) = start();
    let (listener, mut heard) = ear();
    connection.listen("s", listener);
    let (lost, other) = (ask(&connection, "s"), ask(&connection, "t"));
    connection.fail("s", CdpError::Crashed);
    assert_eq!(lost.await, Err(CdpError::Crashed));
    let again = ask(&connection, "s");
    peer.event("s", 1).await;
    peer.answer(3, 3).await;
    peer.answer(2, 2).await;
    assert_eq!((again.await, other.await), (Ok(3.into()), Ok(2.into())));
    assert_eq!(heard.next().await.as_deref(), Some(r#"Test.event {"n":1}"#));
}

#[tokio::test]
async fn a_forgotten_session_is_let_go_unheard() {
    let (connection, _peer, _root) = start();
    let (listener, mut heard) = ear();
    connection.listen("s", listener);
    let lost = ask(&connection, "s");
    connection.forget("s");
    assert_eq!((lost.await, heard.next().await), (Err(CdpError::SessionGone), None));
}

#[tokio::test]
async fn the_end_of_the_connection_reaches_everybody() {
    let (connection, peer, mut root) = start();
    let (listener, mut heard) = ear();
    connection.listen("s", listener);
    let (call, closed) = (ask(&connection, "s"), connection.closed());
    drop(peer);
    let why = timeout(LIMIT, closed).await.unwrap();
    assert_eq!(why, "the browser closed the connection");
    let gone = CdpError::Disconnected(why.clone());
    assert_eq!(call.await, Err(gone.clone()));
    for heard in [&mut root, &mut heard] {
        assert_eq!(heard.next().await, Some(format!("gone: {why}")));
        assert_eq!(heard.next().await, None);
    }
    assert_eq!(ask(&connection, "s").await, Err(gone));
    let (late, mut heard) = ear();
    connection.listen("s", late);
    assert_eq!(heard.next().await, Some(format!("gone: {why}")));
    assert_eq!(connection.counts().pending, 0);
}

#[tokio::test]
async fn the_last_owner_closes_the_transport() {
    let (connection, mut peer, _root) = start();
    let (clone, call) = (connection.clone(), ask(&connection, "s"));
    drop(connection);
    assert_eq!(peer.heard().await, 1);
    drop(clone);
    let mut rest = Vec::new();
    timeout(LIMIT, peer.read.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(matches!(call.await, Err(CdpError::Disconnected(_))));
}

#[tokio::test]
async fn a_take_over_ends_the_torn_command_and_skips_the_torn_frame() {
    let (connection, mut peer, _root) = start_at(1000, Start::TakeOver);
    assert_eq!(peer.bytes().await, b"\0", "before anything is asked");
    let call = ask(&connection, "s");
    assert_eq!(peer.heard().await, 1000);
    peer.say(r#"{"id":1000,"x":{}}}"#).await;
    peer.answer(1000, "whole").await;
    assert_eq!(call.await, Ok("whole".into()));
    assert_eq!(connection.counts().stray, 0);
}

#[tokio::test]
async fn a_take_over_does_not_lose_a_whole_first_frame() {
    let (connection, mut peer, _root) = start_at(1000, Start::TakeOver);
    let call = ask(&connection, "s");
    peer.answer(1000, "whole").await;
    assert_eq!(call.await, Ok("whole".into()));
}

#[tokio::test]
async fn ten_thousand_calls_are_under_way_in_order_and_no_more() {
    let (connection, mut peer, _root) = start();
    let calls: Vec<_> = (0..10_000).map(|_| ask(&connection, "s")).collect();
    assert_eq!(ask(&connection, "s").await, Err(CdpError::Busy { method: "Runtime.evaluate" }));
    let answering = async {
        for id in 1..=10_000 {
            assert_eq!(peer.heard().await, id);
            peer.answer(id, id).await;
        }
    };
    let (replies, ()) = tokio::join!(join_all(calls), answering);
    let expected: Vec<_> = (1..=10_000).map(|id| Ok(Value::from(id))).collect();
    assert!(replies == expected);
    assert_eq!(connection.counts(), Counts { calls: 10_000, replies: 10_000, ..Counts::default() });
}

#[tokio::test]
async fn a_browser_that_does_not_read_fills_the_queue_and_no_more() {
    let (connection, _peer, _root) = start();
    let sent = std::iter::repeat_with(|| drop(ask(&connection, "s"))).take(30_000).count();
    let (taken, pending) = (connection.counts().calls, connection.counts().pending);
    assert!(sent == 30_000 && taken == 20_000 && pending == 0, "{taken} {pending}");

    let (connection, _peer, _root) = start();
    let large = InsertText { text: "x".repeat(33 << 20) };
    let first = connection.send(None, &large);
    let second = connection.send(None, &large);
    assert_eq!(timeout(LIMIT, second).await.unwrap().unwrap_err(), CdpError::Busy { method: "Input.insertText" });
    drop(first);
}

#[tokio::test]
async fn after_the_last_id_comes_the_first_that_is_free() {
    let (connection, mut peer, _root) = start_at(1, Start::Fresh);
    let first = ask(&connection, "s");
    connection.0.shared.set_next_id(i32::MAX);
    let (last, wrapped) = (ask(&connection, "s"), ask(&connection, "s"));
    assert_eq!([peer.heard().await, peer.heard().await, peer.heard().await], [1, i64::from(i32::MAX), 2]);
    for (id, value) in [(2, "wrapped"), (i64::from(i32::MAX), "last"), (1, "first")] {
        peer.answer(id, value).await;
    }
    assert_eq!((first.await, last.await, wrapped.await), (Ok("first".into()), Ok("last".into()), Ok("wrapped".into())));
}

#[tokio::test]
async fn events_before_the_listener_are_kept_in_order() {
    let (connection, mut peer, _root) = start();
    for n in 0..100 {
        peer.event("s", n).await;
    }
    let call = ask(&connection, "s");
    peer.answer(1, 0).await;
    call.await.unwrap();
    assert_eq!(connection.counts().events, 0, "all have come, none was heard");
    let (listener, mut heard) = ear();
    connection.listen("s", listener);
    peer.event("s", 100).await;
    for n in 0..=100 {
        assert_eq!(heard.next().await, Some(format!(r#"Test.event {{"n":{n}}}"#)));
    }
    assert_eq!((connection.counts().events, connection.counts().lost), (101, 0));
}

/// While a listener is still told what it missed, more comes.
#[tokio::test]
async fn events_do_not_overtake_those_that_were_kept() {
    /// Is slow about the first event: says that it has begun, and goes on when told.
    struct Slow(mpsc::UnboundedSender<()>, Mutex<std::sync::mpsc::Receiver<()>>, mpsc::UnboundedSender<String>);
    impl Listener for Slow {
        fn event(&self, _: &str, params: &RawValue) {
            if params.get() == r#"{"n":0}"# {
                self.0.send(()).unwrap();
                self.1.lock().unwrap().recv_timeout(LIMIT).unwrap();
            }
            self.2.send(params.get().to_owned()).unwrap();
        }
        fn gone(&self, _: &CdpError) {}
    }
    async fn arrive(connection: &Connection, peer: &mut Peer, n: usize) {
        peer.event("s", n).await;
        let call = ask(connection, "other");
        let id = peer.heard().await;
        peer.answer(id, 0).await;
        call.await.unwrap();
    }
    let (connection, mut peer, _root) = start();
    let ((begun, mut has_begun), (go_on, may_go_on)) = (mpsc::unbounded_channel(), std::sync::mpsc::channel());
    let (sender, receiver) = mpsc::unbounded_channel();
    arrive(&connection, &mut peer, 0).await;
    let slow = Arc::new(Slow(begun, Mutex::new(may_go_on), sender));
    let listening = tokio::task::spawn_blocking({
        let connection = connection.clone();
        move || connection.listen("s", slow)
    });
    timeout(LIMIT, has_begun.recv()).await.unwrap().unwrap();
    arrive(&connection, &mut peer, 1).await;
    go_on.send(()).unwrap();
    listening.await.unwrap();
    peer.event("s", 2).await;
    let mut heard = Heard(receiver);
    for n in 0..3 {
        assert_eq!(heard.next().await, Some(format!(r#"{{"n":{n}}}"#)));
    }
}

#[tokio::test]
async fn a_listener_that_panics_does_not_end_the_reader() {
    let (connection, mut peer, mut root) = start();
    peer.say(r#"{"method":"Test.panic","params":{}}"#).await;
    peer.say(r#"{"method":"Test.event"}"#).await;
    assert_eq!(root.next().await.as_deref(), Some("Test.event {}"));
    let call = ask(&connection, "s");
    peer.answer(1, 1).await;
    assert_eq!(call.await, Ok(1.into()));
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_limit_ends_at_it() {
    let (connection, _peer, _root) = start();
    let reply = connection.call_in(Some("s"), &GetVersion {}, Duration::from_secs(3)).await;
    assert_eq!(reply.unwrap_err(), CdpError::Late { method: "Browser.getVersion" });
    assert_eq!(connection.counts().pending, 0);
}

#[tokio::test]
async fn a_large_reply_arrives_whole() {
    let (connection, mut peer, _root) = start();
    let text = "ä\"\\".repeat(1 << 20);
    let (large, small) = (ask(&connection, "s"), ask(&connection, "t"));
    let answering = async {
        peer.answer(1, text.clone()).await;
        peer.answer(2, "small").await;
    };
    let (large, small, ()) = tokio::join!(large, small, answering);
    assert!(large == Ok(text.into()) && small == Ok("small".into()));
}

#[tokio::test]
async fn the_tap_keeps_the_last_commands() {
    let (connection, _peer, _root) = start();
    drop(ask(&connection, "before"));
    let tap = connection.tap(2);
    for session in ["a", "b", "c"] {
        drop(ask(&connection, session));
    }
    let sent: Vec<_> = tap.sent().into_iter().map(|sent| (sent.session, sent.method)).collect();
    assert_eq!(sent, [(Some("b".into()), "Runtime.evaluate"), (Some("c".into()), "Runtime.evaluate")]);
    assert_eq!((tap.dropped(), tap.sent()[0].frame.contains(r#""expression":"1""#)), (1, true));
}

/// Over a WebSocket, with a message longer than the library's own limits.
#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_carries_large_messages_and_says_why_it_closed() {
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::{CloseFrame, frame::coding::CloseCode};
    const SIZE: usize = 65 << 20;
    let door = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/devtools/browser/x", door.local_addr().unwrap());
    let browser = tokio::spawn(async move {
        use futures::{SinkExt, StreamExt};
        let mut socket = tokio_tungstenite::accept_async(door.accept().await.unwrap().0).await.unwrap();
        let asked = socket.next().await.unwrap().unwrap().into_text().unwrap();
        assert!(asked.starts_with(r#"{"id":1,"method":"Runtime.evaluate""#));
        socket.send(Message::Ping("still there?".into())).await.unwrap();
        let text = format!(r#"{{"id":1,"result":{{"result":{{"type":"string","value":"{}"}}}}}}"#, "x".repeat(SIZE));
        socket.send(Message::text(text)).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::Pong("still there?".into()));
        socket.close(Some(CloseFrame { code: CloseCode::Error, reason: "the node died".into() })).await.unwrap();
    });
    let (root, _heard) = ear();
    let connection = Connection::start(Transport::websocket(&url, LIMIT).await.unwrap(), 1, root);
    let closed = connection.closed();
    let reply: EvaluateReply = connection.call_in(None, &Evaluate::default(), LIMIT).await.unwrap();
    assert_eq!(reply.result.value.unwrap().as_str().unwrap().len(), SIZE);
    let why = timeout(LIMIT, closed).await.unwrap();
    assert!(why.contains("the node died"), "{why}");
    browser.await.unwrap();
}

#[tokio::test]
async fn a_websocket_that_nobody_answers_is_given_up() {
    let door = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", door.local_addr().unwrap());
    let error = Transport::websocket(&url, Duration::from_millis(50)).await.unwrap_err();
    assert!(error.to_string().contains("no answer within 50ms"), "{error}");
    drop(door);
    assert!(matches!(Transport::websocket(&url, LIMIT).await, Err(CdpError::Disconnected(_))));
}
