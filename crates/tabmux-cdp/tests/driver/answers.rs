//! What an act asked somebody else for is told with it: of a server, over a socket, or of a worker. How long the answer took, the
//! page says itself, so nothing here depends on how fast the machine is.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::json;
use tokio::net::TcpListener;

use crate::act::{Stage, soon};

/// What comes within this time has to be told; what takes longer on a busy machine may be.
const IN_TIME_MS: f64 = 60.0;

/// How long who is asked thinks about it.
const DELAYS_MS: [u64; 3] = [5, 20, 50];

/// A server of sockets that answers everything after as many milliseconds as it is told.
async fn sockets() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut socket = tokio_tungstenite::accept_async(stream).await.expect("a browser shakes hands");
                while let Some(Ok(message)) = socket.next().await {
                    let delay = message.to_text().ok().and_then(|text| text.parse().ok()).unwrap_or_default();
                    // It thinks about it, for as long as it was told to.
                    let _ = tokio::time::timeout(Duration::from_millis(delay), std::future::pending::<()>()).await;
                    if socket.send(message).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    format!("ws://{address}")
}

/// Clicks until an answer came in time, for each delay; those must have been told.
async fn is_told(stage: &Stage) {
    soon(stage.page.changes(500)).await.expect("it can be looked at");
    for delay in DELAYS_MS {
        for attempt in 0..20 {
            stage.run(&format!("window.delay = {delay}; window.took = null; 0")).await;
            soon(stage.page.changes(500)).await.expect("it can be looked at");
            stage.click("#b").await;
            let told = soon(stage.page.changes(500)).await.expect("it can be looked at").text;
            let took =
                stage.run("new Promise((done) => { (function look() { took === null ? setTimeout(look, 5) : done(took); })(); })").await;
            let in_time = took.as_f64().expect("a time") < IN_TIME_MS + f64::from(u32::try_from(delay).expect("small"));
            if in_time {
                assert!(told.contains("answer"), "after {delay} ms, in {took} ms: {told:?}");
                break;
            }
            assert!(attempt < 19, "an answer that is given after {delay} ms takes {took} ms, twenty times over");
        }
    }
}

const ANSWERED: &str = "let asked = 0; const ask = () => { asked = performance.now(); }; \
    const answered = () => { took = performance.now() - asked; const p = document.createElement('p'); p.textContent = `answer ${asked}`; room.append(p); };";

async fn stage_with(script: &str) -> Stage {
    let stage = Stage::at("room.html").await;
    stage.furnish("<button id=b>Ask</button>", &format!("{ANSWERED} {script}")).await;
    stage
}

#[tokio::test]
async fn what_a_socket_answers_is_told_with_the_act() {
    let server = sockets().await;
    let script = format!(
        "const socket = new WebSocket('{server}'); socket.onmessage = answered; b.onclick = () => {{ ask(); socket.send(delay); }}; \
         window.open = new Promise((done) => {{ socket.onopen = () => done(1); }});"
    );
    let stage = stage_with(&script).await;
    assert_eq!(stage.run("window.open").await, json!(1));
    is_told(&stage).await;
}

#[tokio::test]
async fn what_a_worker_answers_is_told_with_the_act() {
    let script = "const work = URL.createObjectURL(new Blob(['onmessage = ({ data }) => setTimeout(() => postMessage(data), data)'])); \
        const worker = new Worker(work); window.ready = new Promise((done) => { worker.onmessage = () => { worker.onmessage = answered; done(1); }; }); \
        worker.postMessage(0); b.onclick = () => { ask(); worker.postMessage(delay); };";
    let stage = stage_with(script).await;
    assert_eq!(stage.run("window.ready").await, json!(1));
    is_told(&stage).await;
}

/// One that is open, one that was closed, one that nobody answered.
#[tokio::test]
async fn a_socket_is_listed_among_the_requests_with_what_became_of_it() {
    let server = sockets().await;
    let stage = Stage::at("room.html").await;
    let open =
        "new Promise((done) => { const socket = new WebSocket(URL); socket.onopen = () => done(1); socket.onerror = () => done(0); })";
    assert_eq!(stage.run(&open.replace("URL", &format!("'{server}/open'"))).await, json!(1));
    let closed = format!(
        "new Promise((done) => {{ const socket = new WebSocket('{server}/closed'); socket.onopen = () => socket.close(); socket.onclose = () => setTimeout(done, 0, 1); }})"
    );
    assert_eq!(stage.run(&closed).await, json!(1));
    let refused = TcpListener::bind("127.0.0.1:0").await.expect("a free port").local_addr().expect("it has an address");
    assert_eq!(stage.run(&open.replace("URL", &format!("'ws://{refused}/refused'"))).await, json!(0));
    let sockets: Vec<_> = stage.page.requests().0.into_iter().filter(|request| request.kind == "websocket").collect();
    let [open, closed, refused] = sockets.as_slice() else { panic!("{sockets:?}") };
    assert!(open.url.ends_with("/open") && open.status == Some(101) && open.duration_ms.is_none(), "{open:?}");
    assert!(closed.url.ends_with("/closed") && closed.status == Some(101) && closed.duration_ms.is_some(), "{closed:?}");
    assert!(refused.url.ends_with("/refused") && refused.failure.as_ref().is_some_and(|why| why.contains("REFUSED")), "{refused:?}");
}
