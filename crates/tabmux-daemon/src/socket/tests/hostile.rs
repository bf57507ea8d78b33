//! Peers that send rubbish, too much, nothing at all, or do not read.

use std::time::Duration;

use serde_json::json;
use tabmux_wire::MAX_FRAME_BYTES;
use tokio::io::AsyncWriteExt;
use tokio::time::pause;

use super::{Street, code};
use crate::testing::eventually;

#[tokio::test]
async fn a_first_line_that_is_none_is_answered_and_the_connection_ends() {
    let street = Street::new();
    for line in [
        &b"hello"[..],
        b"",
        b"[]",
        b"5",
        b"{}",
        b"{\"id\":1}",
        b"{\"type\":\"REGISTER\",\"type\":\"PING\"}",
        b"{\"type\":\"\xff\"}",
        b"{\"type\":",
    ] {
        let mut peer = street.connect();
        peer.send_bytes(&[line, b"\n"].concat()).await;
        let answer = peer.read().await;
        assert_eq!((code(&answer), &answer["type"]), ("bad_argument", &json!("ERROR")), "{answer}");
        assert!(peer.next().await.is_none());
    }
    let mut peer = street.connect();
    peer.send_bytes(&[&[b'['; 100_000][..], b"\n"].concat()).await;
    assert_eq!(code(&peer.read().await), "bad_argument");
}

#[tokio::test]
async fn a_line_over_the_limit_is_refused_without_being_kept() {
    let street = Street::new();
    let mut peer = street.connect();
    let (mut lines, mut write) = (peer.lines, peer.write);
    let flood = tokio::spawn(async move {
        let chunk = vec![b'x'; 1024 * 1024];
        for _ in 0..(MAX_FRAME_BYTES / chunk.len() + 4) {
            drop(write.write_all(&chunk).await);
        }
        drop(write.write_all(b"\n").await);
    });
    let answer: serde_json::Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!(code(&answer), "frame_too_large");
    flood.await.unwrap();
    peer = street.connect();
    peer.ask(json!({"type": "REGISTER", "id": 1})).await;
    peer.send_bytes(&vec![b'x'; MAX_FRAME_BYTES + 1]).await;
    peer.send_bytes(b"\n").await;
    assert_eq!(code(&peer.read().await), "frame_too_large");
    assert_eq!(peer.ask(json!({"type": "PING", "id": 2})).await["type"], "PONG", "the connection goes on");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_says_nothing_is_let_go_after_ten_seconds() {
    let street = Street::new();
    let mut peer = street.connect();
    let began = tokio::time::Instant::now();
    peer.send_bytes(b"{\"type\":").await;
    let answer = peer.read().await;
    assert_eq!((code(&answer), began.elapsed().as_secs()), ("timeout", 10));
    assert!(peer.next().await.is_none());
}

/// What comes after the last newline is no message.
#[tokio::test]
async fn half_a_line_at_the_end_is_not_obeyed() {
    let street = Street::new();
    let mut peer = street.connect();
    peer.send_bytes(b"{\"type\":\"REGISTER\",\"id\":1}").await;
    peer.write.shutdown().await.unwrap();
    assert!(peer.next().await.is_none());
    assert_eq!(street.house.sessions(), 0);
}

/// A peer that does not read holds up only itself, and takes bounded memory.
#[tokio::test]
async fn a_peer_that_does_not_read_is_not_read_from_and_disturbs_nobody() {
    let street = Street::new();
    let mut deaf = street.connect();
    deaf.ask(json!({"type": "REGISTER", "id": 1})).await;
    let request = json!({"type": "REQUEST", "id": 2, "action": "evaluate", "params": {"script": "\"x\".repeat(150000)"}});
    let line = format!("{request}\n");
    let mut sent = 0u32;
    let mut stuck = 0;
    while stuck < 50 {
        match deaf.write.try_write(line.as_bytes()) {
            Ok(_) => (sent, stuck) = (sent + 1, 0),
            Err(_) => {
                stuck += 1;
                let mut other = street.connect();
                assert_eq!(other.ask(json!({"type": "PING", "id": 1})).await["type"], "PONG");
            }
        }
        assert!(sent < 100_000, "it is read from for ever");
    }
    let waiting = street.house.hub.look(tabmux_core::Registry::visits);
    assert!(waiting <= 128, "{waiting} calls are inside for one deaf peer");
    drop(deaf);
    eventually("it is gone", || street.house.hub.look(|registry| registry.counts().clients) == 0).await;
    eventually("its calls too", || street.house.hub.look(tabmux_core::Registry::visits) == 0).await;
}

/// A peer that reads nothing for a minute is gone.
#[tokio::test]
async fn a_stalled_peer_is_given_up() {
    let street = Street::new();
    let mut deaf = street.connect();
    deaf.ask(json!({"type": "REGISTER", "id": 1})).await;
    let request = json!({"type": "REQUEST", "id": 2, "action": "evaluate", "params": {"script": "\"x\".repeat(150000)"}});
    for _ in 0..40 {
        deaf.send(request.clone()).await;
    }
    let hub = &street.house.hub;
    let total = || hub.counters.calls.load(std::sync::atomic::Ordering::Relaxed);
    eventually("its calls have run", || total() == 40 && hub.look(tabmux_core::Registry::visits) == 0).await;
    pause();
    tokio::time::sleep(Duration::from_secs(61)).await;
    eventually("it is gone", || street.house.hub.look(|registry| registry.counts().clients) == 0).await;
    drop(deaf);
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_and_the_others_stay() {
    let street = Street::new();
    let mut peers: Vec<_> = (0..super::super::MAX_CONNECTIONS).map(|_| street.connect()).collect();
    eventually("all are in", || street.door.places.available_permits() == 0).await;
    let mut one_more = street.connect();
    let answer = one_more.read().await;
    assert_eq!(code(&answer), "capacity", "{answer}");
    assert_eq!(peers[7].ask(json!({"type": "PING", "id": 1})).await["type"], "PONG");
    peers.truncate(10);
    eventually("places are free again", || street.door.places.available_permits() > 0).await;
    assert_eq!(street.connect().ask(json!({"type": "PING", "id": 1})).await["type"], "PONG");
}
