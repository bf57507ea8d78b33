//! MCP over HTTP without a network: both eras, sessions that outlive the daemon, cancels, and hostile bodies.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod common;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use common::{Seen, acting, call, catalog, in_new_era, initialize, soon, text_of};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tabmux_core::ClientId;
use tabmux_mcp::{Dispatch, Fixtures, HttpCaller, HttpDoor, HttpSessions, ResponseBody, SessionStoreError};
use tokio_util::sync::CancellationToken;

#[derive(Default)]
struct Kept(Mutex<HashMap<String, Value>>);

#[async_trait]
impl HttpSessions for Kept {
    async fn load(&self, id: &str) -> Result<Option<Value>, SessionStoreError> {
        tokio::task::yield_now().await;
        Ok(self.0.lock().unwrap().get(id).cloned())
    }

    async fn store(&self, id: &str, initialize: Value) -> Result<(), SessionStoreError> {
        self.0.lock().unwrap().insert(id.to_owned(), initialize);
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        self.0.lock().unwrap().remove(id);
        Ok(())
    }
}

fn door(dispatch: Arc<dyn Dispatch>, store: &Arc<Kept>) -> HttpDoor {
    HttpDoor::new(dispatch, catalog(), Fixtures::None, store.clone(), CancellationToken::new())
}

fn request(method: Method, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri("/mcp").header("host", "localhost").header("content-type", "application/json");
    request = request.header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.extension(HttpCaller { client: ClientId(4) }).body(Full::new(body.into())).unwrap()
}

fn post(headers: &[(&str, &str)], message: &Value) -> Request<Full<Bytes>> {
    request(Method::POST, headers, message.to_string())
}

fn new_era_post(message: Value) -> Request<Full<Bytes>> {
    let tool = message["params"]["name"].as_str().unwrap().to_owned();
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool.as_str())];
    post(&headers, &in_new_era(message))
}

/// The one message in an answer, be it JSON or an event stream.
async fn message_of(response: Response<ResponseBody>) -> Value {
    let body = soon(response.into_body().collect()).await.unwrap().to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    let last = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim).rfind(|data| !data.is_empty());
    serde_json::from_str(last.unwrap_or(text)).unwrap_or_else(|_| panic!("no message in {text:?}"))
}

async fn open_session(door: &HttpDoor) -> String {
    let response = soon(door.handle(post(&[], &initialize(1, "2025-06-18")))).await;
    assert_eq!(response.status(), StatusCode::OK);
    let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    assert_eq!(message_of(response).await["result"]["protocolVersion"], "2025-06-18");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(soon(door.handle(post(&[("mcp-session-id", &id)], &ready))).await.status(), StatusCode::ACCEPTED);
    id
}

/// S2.6
#[tokio::test]
async fn initialize_gives_an_id_that_later_requests_are_served_under() {
    let store = Arc::new(Kept::default());
    let door = door(acting().0, &store);
    let id = open_session(&door).await;
    assert_eq!(store.0.lock().unwrap()[&id]["clientInfo"]["name"], "Cursor");
    let reply = message_of(soon(door.handle(post(&[("mcp-session-id", &id)], &call(2, "echo", &json!({}))))).await).await;
    assert_eq!(reply["result"]["_meta"]["tabmux/result"], json!({ "client": 4, "clientName": "Cursor", "agent": null }));
}

/// S2.7
#[tokio::test]
async fn an_instance_id_stands_for_the_session_id() {
    let door = door(acting().0, &Arc::default());
    let id = open_session(&door).await;
    let reply = message_of(soon(door.handle(post(&[("x-instance-id", &id)], &call(2, "echo", &json!({}))))).await).await;
    assert_eq!(text_of(&reply), "{}");
}

/// S1.41
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_id_outlives_the_daemon_for_many_requests_at_once() {
    let store = Arc::new(Kept::default());
    let id = open_session(&door(acting().0, &store)).await;
    for _ in 0..20 {
        let restarted = door(acting().0, &store);
        let requests = (0..20).map(|number| {
            let (door, id) = (restarted.clone(), id.clone());
            tokio::spawn(async move {
                let response = door.handle(post(&[("mcp-session-id", &id)], &call(number, "echo", &json!({ "n": number })))).await;
                assert_eq!(response.status(), StatusCode::OK);
                assert_eq!(text_of(&message_of(response).await), json!({ "n": number }).to_string());
            })
        });
        for request in requests.collect::<Vec<_>>() {
            soon(request).await.unwrap();
        }
    }
}

/// A client that goes away while its session is brought back leaves one that works.
#[tokio::test]
async fn a_client_that_hangs_up_early_does_not_break_its_session() {
    let store = Arc::new(Kept::default());
    let id = open_session(&door(acting().0, &store)).await;
    for steps in 0..20 {
        let restarted = door(acting().0, &store);
        let mut hung_up = Box::pin(restarted.handle(post(&[("mcp-session-id", &id)], &call(1, "echo", &json!({})))));
        for _ in 0..steps {
            if futures::poll!(&mut hung_up).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(hung_up);
        let response = soon(restarted.handle(post(&[("mcp-session-id", &id)], &call(2, "echo", &json!({}))))).await;
        assert_eq!(response.status(), StatusCode::OK, "hung up after {steps} steps");
        assert_eq!(text_of(&message_of(response).await), "{}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_forgotten_in_memory_only() {
    let store = Arc::new(Kept::default());
    let door = door(acting().0, &store);
    let id = open_session(&door).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(store.0.lock().unwrap().contains_key(&id));
    let reply = message_of(door.handle(post(&[("mcp-session-id", &id)], &call(2, "echo", &json!({})))).await).await;
    assert_eq!(text_of(&reply), "{}");
}

#[tokio::test(start_paused = true)]
async fn a_long_call_is_not_cut_off_as_idle() {
    let (dispatch, mut seen) = acting();
    let door = door(dispatch.clone(), &Arc::default());
    let id = open_session(&door).await;
    let response = door.handle(post(&[("mcp-session-id", &id)], &call(2, "wait", &json!({})))).await;
    assert_eq!(seen.recv().await, Some(Seen::Started));
    tokio::time::sleep(Duration::from_secs(10 * 60)).await;
    dispatch.go.notify_one();
    assert_eq!(text_of(&message_of(response).await), "waited");
}

#[tokio::test]
async fn delete_ends_a_session_for_good_and_an_unknown_one_is_not_found() {
    let store = Arc::new(Kept::default());
    let door = door(acting().0, &store);
    let id = open_session(&door).await;
    let gone = soon(door.handle(request(Method::DELETE, &[("mcp-session-id", &id)], ""))).await;
    assert_eq!(gone.status(), StatusCode::NO_CONTENT);
    assert!(store.0.lock().unwrap().is_empty());
    for id in [id.as_str(), "never-was"] {
        let response = soon(door.handle(post(&[("mcp-session-id", id)], &call(2, "echo", &json!({}))))).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn the_new_era_is_served_without_a_session_and_an_old_id_does_not_matter() {
    let door = door(acting().0, &Arc::default());
    let mut request = new_era_post(call(1, "echo", &json!({ "a": 1 })));
    request.headers_mut().insert("mcp-session-id", "stale".parse().unwrap());
    let response = soon(door.handle(request)).await;
    assert_eq!(response.headers().get("mcp-session-id"), None);
    let reply = message_of(response).await;
    assert_eq!(text_of(&reply), r#"{"a":1}"#);
    assert_eq!(reply["result"]["_meta"]["tabmux/result"]["clientName"], "Inspector");
}

#[tokio::test]
async fn a_long_call_of_the_new_era_delays_no_session_that_comes_back() {
    let (dispatch, mut seen) = acting();
    let store = Arc::new(Kept::default());
    let id = open_session(&door(dispatch.clone(), &store)).await;
    let restarted = door(dispatch.clone(), &store);
    let mut long = new_era_post(call(1, "wait", &json!({})));
    long.headers_mut().insert("mcp-session-id", "stale".parse().unwrap());
    let running = tokio::spawn({
        let door = restarted.clone();
        async move { message_of(door.handle(long).await).await }
    });
    assert_eq!(soon(seen.recv()).await, Some(Seen::Started));
    let reply = message_of(soon(restarted.handle(post(&[("mcp-session-id", &id)], &call(2, "echo", &json!({}))))).await).await;
    assert_eq!(text_of(&reply), "{}");
    dispatch.go.notify_one();
    assert_eq!(text_of(&soon(running).await.unwrap()), "waited");
}

#[tokio::test]
async fn in_the_new_era_a_dropped_connection_cancels_the_call() {
    let (dispatch, mut seen) = acting();
    let door = door(dispatch, &Arc::default());
    let running = tokio::spawn(async move { door.handle(new_era_post(call(1, "wait", &json!({})))).await });
    assert_eq!(soon(seen.recv()).await, Some(Seen::Started));
    running.abort();
    assert_eq!(soon(seen.recv()).await, Some(Seen::Cancelled));
}

#[tokio::test]
async fn in_the_old_era_only_a_cancel_notification_cancels() {
    let (dispatch, mut seen) = acting();
    let door = door(dispatch.clone(), &Arc::default());
    let id = open_session(&door).await;
    let session = [("mcp-session-id", id.as_str())];
    for finish in [Seen::Finished, Seen::Cancelled] {
        drop(soon(door.handle(post(&session, &call(2, "wait", &json!({}))))).await);
        assert_eq!(soon(seen.recv()).await, Some(Seen::Started));
        assert_eq!(text_of(&message_of(soon(door.handle(post(&session, &call(3, "echo", &json!({}))))).await).await), "{}");
        assert!(seen.try_recv().is_err(), "a dropped connection is no cancel");
        if finish == Seen::Finished {
            dispatch.go.notify_one();
        } else {
            let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
            soon(door.handle(post(&session, &cancel))).await;
        }
        assert_eq!(soon(seen.recv()).await, Some(finish));
    }
}

/// rmcp knows an answer's stream by the request's id: the same one twice would get the other's result.
#[tokio::test]
async fn in_the_old_era_an_id_that_is_still_being_answered_is_refused() {
    let (dispatch, mut seen) = acting();
    let door = door(dispatch.clone(), &Arc::default());
    let [one, two] = [open_session(&door).await, open_session(&door).await];
    let echo = |session: &str, id: Value| post(&[("mcp-session-id", session)], &call(id, "echo", &json!({})));
    for _ in 0..2 {
        let first = soon(door.handle(post(&[("mcp-session-id", &one)], &call(99, "wait", &json!({}))))).await;
        assert_eq!(soon(seen.recv()).await, Some(Seen::Started));
        let refused = soon(door.handle(echo(&one, json!(99)))).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        let refused = message_of(refused).await;
        assert_eq!((&refused["id"], &refused["error"]["data"]["code"]), (&json!(99), &json!("bad_argument")));
        assert!(refused["error"]["message"].as_str().unwrap().contains("id 99 is still being answered."), "{refused}");
        for (session, id) in [(&one, json!("99")), (&one, json!(98)), (&two, json!(99))] {
            assert_eq!(text_of(&message_of(soon(door.handle(echo(session, id))).await).await), "{}", "another request");
        }
        dispatch.go.notify_one();
        assert_eq!(text_of(&message_of(first).await), "waited", "and the first has its own answer");
        assert_eq!(soon(seen.recv()).await, Some(Seen::Finished));
    }
    let lost = soon(door.handle(post(&[("mcp-session-id", &one)], &call(99, "wait", &json!({}))))).await;
    assert_eq!(soon(seen.recv()).await, Some(Seen::Started));
    drop(lost);
    assert_eq!(soon(door.handle(echo(&one, json!(99)))).await.status(), StatusCode::BAD_REQUEST, "a lost connection is no end");
}

/// Also by a client that is not done with reading the last answer: its id is free as soon as the answer is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_may_be_used_again_as_soon_as_it_is_answered() {
    let door = door(acting().0, &Arc::default());
    let id = open_session(&door).await;
    for _ in 0..500 {
        let answer = soon(door.handle(post(&[("mcp-session-id", &id)], &call(2, "echo", &json!({}))))).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let mut body = answer.into_body();
        loop {
            let frame = soon(body.frame()).await.unwrap().unwrap().into_data().unwrap();
            if String::from_utf8_lossy(&frame).contains("\"result\"") {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_panic_is_answered_over_http_too() {
    let door = door(acting().0, &Arc::default());
    let reply = message_of(soon(door.handle(new_era_post(call(1, "panic", &json!({}))))).await).await;
    assert!(text_of(&reply).starts_with("[internal] panic "), "{reply}");
}

#[tokio::test]
async fn hostile_bodies_get_a_clear_answer() {
    let door = door(acting().0, &Arc::default());
    for (body, status, word) in [
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#.to_vec(), 400, "stands twice"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}".to_vec(), 400, "not UTF-8"),
        ("[".repeat(100_000).into_bytes(), 400, "recursion limit"),
        (b"{}".to_vec(), 400, "jsonrpc"),
        (b"".to_vec(), 400, "not valid JSON"),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#.to_vec(), 400, "batch"),
        (vec![b' '; tabmux_wire::MAX_FRAME_BYTES + 1], 413, "[frame_too_large]"),
    ] {
        let response = soon(door.handle(request(Method::POST, &[], body))).await;
        assert_eq!(response.status(), status, "{word}");
        let reply = message_of(response).await;
        assert!(reply["error"]["message"].as_str().unwrap().contains(word), "{reply}");
    }
    let plain = Request::builder()
        .method(Method::POST)
        .uri("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream");
    let response = soon(door.handle(plain.body(Full::new(Bytes::from(initialize(1, "2025-06-18").to_string()))).unwrap())).await;
    assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

/// RFC 9110, 8.3.1
#[tokio::test]
async fn the_name_of_a_content_type_has_no_case() {
    let door = door(acting().0, &Arc::default());
    let mut shouted = post(&[], &initialize(1, "2025-06-18"));
    shouted.headers_mut().insert("content-type", "Application/JSON; charset=UTF-8".parse().unwrap());
    assert_eq!(soon(door.handle(shouted)).await.status(), StatusCode::OK);
}

/// Whatever rmcp itself refuses is refused with a stable code and a way out, under the status it chose.
#[tokio::test]
async fn every_refusal_carries_a_code_and_a_way_out() {
    let door = door(acting().0, &Arc::default());
    let list = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/list" });
    let mut unacceptable = post(&[], &list);
    unacceptable.headers_mut().insert("accept", "text/html".parse().unwrap());
    let mut form = post(&[], &list);
    form.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    let unknown = |method: &str| {
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        post(&headers, &in_new_era(json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": {} })))
    };
    for (asked, status, code) in [
        (unknown("foo/bar"), 404, "unsupported"),
        (unknown("initialize"), 404, "unsupported"),
        (unacceptable, 406, "bad_argument"),
        (form, 415, "bad_argument"),
        (post(&[("mcp-session-id", "nobody")], &list), 404, "session_not_found"),
        (request(Method::GET, &[("mcp-session-id", "nobody")], ""), 404, "session_not_found"),
        (request(Method::DELETE, &[], ""), 400, "bad_argument"),
        (request(Method::PUT, &[], ""), 405, "unsupported"),
        (post(&[("mcp-protocol-version", "1999-01-01")], &list), 400, "bad_argument"),
        (request(Method::POST, &[], "nonsense"), 400, "bad_argument"),
    ] {
        let response = door.handle(asked).await;
        assert_eq!(response.status(), status);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{status}: {body:?}"));
        let data = &body["error"]["data"];
        assert_eq!(data["code"], code, "{status}: {body}");
        assert!(data["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{status}: {body}");
    }
}
