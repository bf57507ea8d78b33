//! MCP over lines, as a shim's stream is served: both eras, re-joins, cancels, and every hostile line.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Seen, acting, call, catalog, in_new_era, initialize, initialize_params, soon, text_of};
use serde_json::{Value, json};
use tabmux_core::ClientId;
use tabmux_mcp::{Dispatch, Handler, open_lines, serve_lines};
use tabmux_tools::Level;
use tabmux_wire::MAX_FRAME_BYTES;
use tabmux_wire::lines::LineReader;
use tabmux_wire::outbox::LineSender;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    sender: LineSender,
    serving: JoinHandle<()>,
    ct: CancellationToken,
}

impl Client {
    fn new(dispatch: Arc<dyn Dispatch>) -> Self {
        Self::serve(Handler::new(dispatch, catalog(), ClientId(7)), None)
    }

    async fn initialized(dispatch: Arc<dyn Dispatch>) -> Self {
        let mut client = Self::new(dispatch);
        client.send(&initialize("hello", "2025-11-25")).await;
        assert_eq!(client.next().await["id"], "hello");
        client
    }

    fn serve(handler: Handler, rejoin: Option<Value>) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(theirs);
        let (transport, sender) = open_lines(LineReader::new(BufReader::new(read), MAX_FRAME_BYTES), write);
        let ct = CancellationToken::new();
        let serving = tokio::spawn(serve_lines(handler, transport, rejoin, ct.clone()));
        let (read, write) = tokio::io::split(ours);
        Self { lines: BufReader::new(read).lines(), write, sender, serving, ct }
    }

    async fn send(&mut self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes()).await;
    }

    async fn send_bytes(&mut self, bytes: &[u8]) {
        soon(async {
            self.write.write_all(bytes).await.unwrap();
            self.write.write_all(b"\n").await.unwrap();
        })
        .await;
    }

    async fn next(&mut self) -> Value {
        let line = soon(self.lines.next_line()).await.unwrap().expect("the connection is open");
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        let reply = self.next().await;
        assert_eq!(reply["id"], message["id"], "{reply}");
        reply
    }
}

/// S1.13
#[tokio::test]
async fn every_revision_with_a_handshake_lists_and_calls() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::new(acting().0);
        let hello = client.ask(&initialize(0, version)).await;
        assert_eq!(hello["result"]["protocolVersion"], version);
        assert_eq!(hello["result"]["serverInfo"]["name"], "tabmux");
        assert_eq!(hello["result"]["capabilities"], json!({ "tools": {} }));
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        let list = client.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
        let names: Vec<_> = list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["wait", "echo", "big", "panic", "fail"]);
        assert_eq!(list["result"]["tools"][1]["annotations"]["readOnlyHint"], true);
        assert_eq!(list["result"].get("ttlMs"), None);
        let reply = client.ask(&call(2, "echo", &json!({ "a": 1 }))).await;
        assert_eq!((text_of(&reply), &reply["result"]["isError"]), (r#"{"a":1}"#, &json!(false)));
        assert_eq!(reply["result"]["_meta"]["tabmux/result"], json!({ "client": 7, "clientName": "Cursor", "agent": null }));
    }
}

#[tokio::test]
async fn the_new_era_needs_no_handshake_and_gets_caching_hints() {
    let mut client = Client::new(acting().0);
    let discovered = client.ask(&in_new_era(json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {} }))).await;
    assert!(discovered["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{discovered}");
    let list = client.ask(&in_new_era(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} }))).await;
    assert_eq!((&list["result"]["cacheScope"], list["result"]["ttlMs"].is_u64()), (&json!("public"), true), "{list}");
    let mut request = in_new_era(call("x", "echo", &json!({})));
    request["params"]["_meta"]["threadId"] = json!("agent-1");
    let reply = client.ask(&request).await;
    assert_eq!(reply["result"]["_meta"]["tabmux/result"], json!({ "client": 7, "clientName": "Inspector", "agent": "agent-1" }));
}

/// Claude Code probes with `server/discover` and may still initialise; so may a client that has already called.
#[tokio::test]
async fn a_client_may_initialise_after_it_spoke_the_new_era() {
    let mut client = Client::new(acting().0);
    client.ask(&in_new_era(json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {} }))).await;
    client.ask(&in_new_era(call(2, "echo", &json!({})))).await;
    assert_eq!(client.ask(&initialize(3, "2025-06-18")).await["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(text_of(&client.ask(&call(4, "echo", &json!({}))).await), "{}");
    assert_eq!(text_of(&client.ask(&in_new_era(call(5, "echo", &json!({})))).await), "{}");
}

#[tokio::test]
async fn what_comes_too_early_is_answered_or_dropped_and_the_connection_goes_on() {
    let mut client = Client::new(acting().0);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } })).await;
    client.send(&json!({ "jsonrpc": "2.0", "id": 9, "result": {} })).await;
    let early = client.ask(&call(1, "echo", &json!({}))).await;
    assert_eq!((&early["error"]["code"], &early["error"]["data"]["code"]), (&json!(-32600), &json!("protocol_version")));
    assert_eq!(client.ask(&json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await["result"], json!({}));
    let unknown = client.ask(&initialize(3, "1999-01-01")).await;
    assert_eq!(unknown["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(text_of(&client.ask(&call(4, "echo", &json!({}))).await), "{}");
}

/// S1.41
#[tokio::test]
async fn a_rejoined_peer_is_served_without_a_handshake() {
    let handler = Handler::new(acting().0, catalog(), ClientId(3));
    let mut client = Client::serve(handler, Some(initialize_params("2025-06-18")));
    let reply = client.ask(&call(41, "echo", &json!({}))).await;
    assert_eq!(reply["result"]["_meta"]["tabmux/result"]["clientName"], "Cursor");
    assert_eq!(reply["result"].get("resultType"), None, "an old-era peer gets the old shape");
}

/// The new revision has no handshake and no `ping`; who initialises with it gets the newest that has.
#[tokio::test]
async fn who_initialises_with_the_new_revision_is_served_as_agreed() {
    let mut fresh = Client::new(acting().0);
    assert_eq!(fresh.ask(&initialize(1, "2026-07-28")).await["result"]["protocolVersion"], "2025-11-25");
    let rejoined = Client::serve(Handler::new(acting().0, catalog(), ClientId(3)), Some(initialize_params("2026-07-28")));
    for mut client in [fresh, rejoined] {
        assert_eq!(client.ask(&json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await["result"], json!({}));
    }
}

#[tokio::test]
async fn hostile_lines_are_answered_and_the_connection_goes_on() {
    let mut client = Client::initialized(acting().0).await;
    let too_long = format!(r#"{{"jsonrpc":"2.0","id":77,"method":"ping","params":{{"x":"{}"}}}}"#, "x".repeat(MAX_FRAME_BYTES));
    for (line, id, code, word) in [
        (too_long.as_bytes(), json!(77), -32600, "[frame_too_large]"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xff\"}", json!(5), -32700, "not UTF-8"),
        (b"not json", json!(null), -32700, "not valid JSON"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":6,\"id\":6,\"method\":\"ping\"}", json!(6), -32700, "\"id\" stands twice"),
        ("[".repeat(100_000).as_bytes(), json!(null), -32700, "recursion limit"),
        (b"{\"id\":8,\"hello\":1}", json!(8), -32600, "jsonrpc"),
        (b"[]", json!(null), -32600, "batch"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":3}}", json!(9), -32602, "tools/call"),
    ] {
        client.send_bytes(line).await;
        let reply = client.next().await;
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&id, &json!(code)), "{reply}");
        assert!(reply["error"]["message"].as_str().unwrap().contains(word), "{reply}");
    }
    client.send_bytes(b"  ").await;
    assert_eq!(text_of(&client.ask(&call(10, "echo", &json!({}))).await), "{}");
}

#[tokio::test]
async fn each_message_of_a_batch_is_answered() {
    let mut client = Client::initialized(acting().0).await;
    let batch = json!([call(1, "echo", &json!({ "n": 1 })), { "jsonrpc": "2.0", "method": "notifications/x" }, 5, call(2, "echo", &json!({ "n": 2 }))]);
    client.send(&batch).await;
    let mut answers = [client.next().await, client.next().await, client.next().await];
    answers.sort_by_key(|answer| answer["id"].as_i64());
    assert_eq!(answers[0]["error"]["code"], -32600);
    assert_eq!((text_of(&answers[1]), text_of(&answers[2])), (r#"{"n":1}"#, r#"{"n":2}"#));
    client.send(&Value::Array(vec![json!(1); 300])).await;
    assert!(client.next().await["error"]["message"].as_str().unwrap().contains("300 messages"));
}

#[tokio::test]
async fn what_is_not_declared_is_not_found_and_an_unknown_tool_is_told_the_nearest() {
    let mut client = Client::initialized(acting().0).await;
    for method in ["prompts/list", "resources/list", "resources/templates/list", "nonsense/x"] {
        let reply = client.ask(&json!({ "jsonrpc": "2.0", "id": method, "method": method })).await;
        assert_eq!(reply["error"]["code"], -32601, "{reply}");
        assert_eq!(reply["error"]["message"], format!("Unknown method {method}."));
        assert_eq!(reply["error"]["data"]["code"], "unsupported");
    }
    let reference = json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "b" } });
    let reply = client.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "completion/complete", "params": reference })).await;
    assert_eq!(reply["error"]["code"], -32601, "{reply}");
    let reply = client.ask(&call(2, "ecko", &json!({}))).await;
    assert_eq!((&reply["error"]["code"], &reply["error"]["data"]["nearest"]), (&json!(-32602), &json!("echo")));
    let reply = client.ask(&call(3, "test_simple_text", &json!({}))).await;
    assert_eq!(reply["error"]["code"], -32602, "fixtures are not there by default");
}

#[tokio::test]
async fn an_endpoint_filter_hides_tools_and_leaves_them_callable() {
    let handler = Handler::new(acting().0, catalog(), ClientId(1)).showing(Level::Slim);
    let mut client = Client::serve(handler, Some(initialize_params("2025-11-25")));
    let list = client.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(text_of(&client.ask(&call(2, "echo", &json!({}))).await), "{}");
}

#[tokio::test]
async fn a_failed_call_says_code_sentence_and_way_out() {
    let mut client = Client::initialized(acting().0).await;
    let reply = client.ask(&call(1, "fail", &json!({}))).await;
    assert_eq!(
        (text_of(&reply), &reply["result"]["isError"]),
        ("[session_required] No session: none active. Call navigate.", &json!(true))
    );
    assert_eq!(reply["result"]["_meta"]["tabmux/error"]["code"], "session_required");
}

#[tokio::test]
async fn a_panic_ends_its_call_only_and_is_answered() {
    let mut client = Client::initialized(acting().0).await;
    let reply = client.ask(&call(1, "panic", &json!({}))).await;
    assert!(text_of(&reply).starts_with("[internal] panic "), "{reply}");
    assert_eq!(text_of(&client.ask(&call(2, "echo", &json!({}))).await), "{}");
}

#[tokio::test]
async fn a_cancel_reaches_the_call_and_its_id_can_be_used_again() {
    let (dispatch, mut seen) = acting();
    let mut client = Client::initialized(dispatch.clone()).await;
    client.send(&call(5, "wait", &json!({}))).await;
    assert_eq!(soon(seen.recv()).await, Some(Seen::Started));
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } })).await;
    let reply = client.ask(&call(5, "echo", &json!({ "again": true }))).await;
    assert_eq!(text_of(&reply), r#"{"again":true}"#);
    assert_eq!(soon(seen.recv()).await, Some(Seen::Cancelled));
    assert_eq!(text_of(&client.ask(&call(6, "echo", &json!({}))).await), "{}", "the cancelled call is not answered");
}

#[tokio::test]
async fn two_open_requests_with_one_id_are_both_answered() {
    let (dispatch, mut seen) = acting();
    let mut client = Client::initialized(dispatch.clone()).await;
    client.send(&call(1, "wait", &json!({}))).await;
    assert_eq!(soon(seen.recv()).await, Some(Seen::Started));
    assert_eq!(text_of(&client.ask(&call(1, "echo", &json!({}))).await), "{}");
    dispatch.go.notify_one();
    let reply = client.next().await;
    assert_eq!((&reply["id"], text_of(&reply)), (&json!(1), "waited"));
}

/// S2.25
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_clients_with_the_same_ids_each_get_their_own_answers() {
    let dispatch = acting().0;
    let clients = (0..8_u64).map(|number| {
        let handler = Handler::new(dispatch.clone(), catalog(), ClientId(number));
        tokio::spawn(async move {
            let mut client = Client::serve(handler, Some(initialize_params("2025-11-25")));
            for id in 0..100 {
                client.send(&call(id, "echo", &json!({ "of": number, "id": id }))).await;
            }
            let mut open: std::collections::HashSet<i64> = (0..100).collect();
            while !open.is_empty() {
                let reply = client.next().await;
                let id = reply["id"].as_i64().unwrap();
                assert!(open.remove(&id), "{id} was answered twice");
                assert_eq!(text_of(&reply), json!({ "of": number, "id": id }).to_string());
                assert_eq!(reply["result"]["_meta"]["tabmux/result"]["client"], number);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        soon(client).await.unwrap();
    }
}

#[tokio::test]
async fn a_lost_peer_is_noticed_at_once_and_its_running_call_finishes() {
    let (dispatch, mut seen) = acting();
    let mut client = Client::initialized(dispatch.clone()).await;
    client.send(&call(1, "wait", &json!({}))).await;
    assert_eq!(soon(seen.recv()).await, Some(Seen::Started));
    client.write.shutdown().await.unwrap();
    soon(client.sender.lost()).await;
    dispatch.go.notify_one();
    assert_eq!(soon(seen.recv()).await, Some(Seen::Finished));
    assert_eq!(text_of(&client.next().await), "waited", "who closed only its writing end still reads the answer");
    soon(client.serving).await.unwrap();
    assert!(!client.ct.is_cancelled(), "the daemon's token is not this connection's to cancel");
}

#[tokio::test(start_paused = true)]
async fn a_call_outlives_a_lost_peer_by_more_than_the_drain() {
    let (dispatch, mut seen) = acting();
    let mut client = Client::initialized(dispatch.clone()).await;
    client.send(&call(1, "wait", &json!({}))).await;
    assert_eq!(seen.recv().await, Some(Seen::Started));
    client.write.shutdown().await.unwrap();
    client.serving.await.unwrap();
    dispatch.go.notify_one();
    assert_eq!(seen.recv().await, Some(Seen::Finished));
}

#[tokio::test]
async fn the_daemons_own_line_goes_out_before_the_connection_ends() {
    let mut client = Client::initialized(acting().0).await;
    client.sender.send_line(r#"{"tabmux":1,"goodbye":"stop"}"#.into()).unwrap();
    client.ct.cancel();
    assert_eq!(client.next().await, json!({ "tabmux": 1, "goodbye": "stop" }));
    assert!(soon(client.lines.next_line()).await.unwrap().is_none());
    soon(client.serving).await.unwrap();
    assert!(client.sender.send_line("late".into()).is_err());
}

/// Floods with calls until the daemon reads no more, and says how many were taken.
async fn flood(client: &mut Client) -> usize {
    let request = call(1, "big", &json!({ "bytes": 500_000 })).to_string() + &" ".repeat(1000) + "\n";
    for sent in 0..10_000 {
        if tokio::time::timeout(Duration::from_secs(5), client.write.write_all(request.as_bytes())).await.is_err() {
            return sent;
        }
    }
    panic!("a peer that does not read is still read from");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_is_not_read_from_and_loses_nothing() {
    let mut client = Client::initialized(acting().0).await;
    let sent = flood(&mut client).await;
    assert!(sent < 1000, "{sent} calls were taken");
    for _ in 0..sent {
        assert_eq!(text_of(&client.next().await).len(), 500_000);
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_nothing_for_a_minute_is_closed() {
    let mut client = Client::initialized(acting().0).await;
    flood(&mut client).await;
    tokio::time::timeout(Duration::from_secs(120), client.sender.lost()).await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), client.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn calls_beyond_the_limit_of_open_ones_are_refused_at_once() {
    let (dispatch, mut seen) = acting();
    let mut client = Client::initialized(dispatch.clone()).await;
    for id in 0..1024 {
        client.send(&call(id, "wait", &json!({}))).await;
        assert_eq!(soon(seen.recv()).await, Some(Seen::Started));
    }
    let reply = client.ask(&call("one more", "echo", &json!({}))).await;
    assert!(text_of(&reply).starts_with("[queue_full] "), "{reply}");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 3 } })).await;
    assert_eq!(soon(seen.recv()).await, Some(Seen::Cancelled));
}
