//! What a peer may take of the daemon, and no more.

use tabmux_wire::MAX_FRAME_BYTES;

use super::*;

#[tokio::test]
async fn a_body_over_the_limit_is_refused_whether_it_says_so_or_not() {
    let door = TestDoor::open().await;
    let large = "x".repeat(MAX_FRAME_BYTES + 1);
    let announced = door.send("POST /mcp", &[], &large).await;
    assert_eq!((announced.status, &announced.body["error"]["data"]["code"]), (413, &json!("frame_too_large")));
    let chunked = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let unannounced = door.send("POST /mcp", &[("Transfer-Encoding", "chunked"), ("Content-Length", LEFT_OUT)], &chunked).await;
    assert_eq!(unannounced.status, 413);
    let fits = format!("\"{}\"", "x".repeat(MAX_FRAME_BYTES - 2));
    assert_eq!(door.send("POST /mcp", &[], &fits).await.status, 200);
}

/// A peer that announces much and waits is answered before it sends anything.
#[tokio::test]
async fn a_large_body_that_is_only_announced_is_refused_before_it_comes() {
    let door = TestDoor::open().await;
    let length = (256 * 1024 * 1024).to_string();
    let headers = [("Content-Length", length.as_str()), ("Content-Type", "application/json"), ("Expect", "100-continue")];
    assert_eq!(door.send("POST /mcp", &headers, "").await.status, 413);
}

#[tokio::test]
async fn a_refused_peer_that_goes_on_sending_still_reads_why() {
    let door = TestDoor::open().await;
    let body = "x".repeat(64 * 1024 * 1024);
    let answer = door.send("POST /mcp", &[("Authorization", "Bearer wrong")], &body).await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn json_is_read_strictly() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    let deep = "[".repeat(100_000);
    for body in ["{", r#"{"a":1,"a":2}"#, deep.as_str()] {
        let mcp = door.send("POST /mcp", &[], body).await;
        assert_eq!((mcp.status, &mcp.body["error"]["code"]), (400, &json!(-32700)), "{:.20}", body);
        let commands = door.send("POST /commands", &[("X-Instance-ID", &id)], body).await;
        assert_eq!((commands.status, commands.code()), (400, "bad_argument"), "{:.20}", body);
    }
}

#[tokio::test]
async fn headers_without_end_are_refused() {
    let door = TestDoor::open().await;
    let long = "x".repeat(100_000);
    assert_eq!(door.send("GET /health", &[("X-Long", &long)], "").await.status, 431);
    let many: Vec<(&str, &str)> = vec![("X-Many", "1"); 200];
    assert_eq!(door.send("GET /health", &many, "").await.status, 431);
}

/// Nothing, half a request line, half a body, and an idle kept-alive connection.
#[tokio::test]
async fn peers_that_stop_in_the_middle_are_closed() {
    let short = Duration::from_millis(100);
    let door = TestDoor::with(Bounds { header_read: short, body_read: short, ..Bounds::default() }, &[]).await;
    for text in ["", "GET /hea", "GET /health HTTP/1.1\r\nHost: x"] {
        let mut stream = TcpStream::connect(door.addr).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("closed in time").unwrap();
    }
    let kept_alive = door.raw(&format!("GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", door.addr)).await;
    assert_eq!(kept_alive.status, 200, "answered, then closed for idleness");
    let half = door.send("POST /mcp", &[("Content-Length", "10")], "{").await;
    assert_eq!((half.status, &half.body["error"]["data"]["code"]), (408, &json!("timeout")));
}

/// The peer asks again and again and reads nothing, until its answers fill every buffer.
#[tokio::test]
async fn a_peer_that_does_not_read_is_closed() {
    let door = TestDoor::with(Bounds { stalled_write: Duration::from_millis(200), ..Bounds::default() }, &[]).await;
    let stream = TcpStream::connect(door.addr).await.unwrap();
    let request = format!("GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", door.addr).repeat(1000);
    let (_unread, mut writing) = stream.into_split();
    let flood = async { while writing.write_all(request.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, flood).await.expect("the door closed the connection");
}

#[tokio::test]
async fn connections_over_the_limit_are_told_so_and_seats_come_back() {
    let door = TestDoor::with(Bounds { connections: 2, ..Bounds::default() }, &[]).await;
    let request = format!("GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", door.addr);
    let mut seated = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(door.addr).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.readable().await.unwrap();
        seated.push(stream);
    }
    let mut third = TcpStream::connect(door.addr).await.unwrap();
    let turned_away = read_answer(&mut third).await;
    assert_eq!((turned_away.status, turned_away.code()), (429, "capacity"));
    drop(seated);
    let served = async {
        loop {
            let mut stream = TcpStream::connect(door.addr).await.unwrap();
            stream.write_all(format!("GET /health HTTP/1.1\r\nConnection: close\r\nHost: {}\r\n\r\n", door.addr).as_bytes()).await.unwrap();
            let mut bytes = Vec::new();
            if stream.read_to_end(&mut bytes).await.is_ok() && bytes.starts_with(b"HTTP/1.1 200") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, served).await.expect("a seat is free again");
}

#[tokio::test]
async fn a_closed_door_lets_nobody_in_and_ends_idle_connections() {
    let door = TestDoor::open().await;
    let mut idle = TcpStream::connect(door.addr).await.unwrap();
    idle.write_all(format!("GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", door.addr).as_bytes()).await.unwrap();
    idle.readable().await.unwrap();
    door.ct.cancel();
    tokio::time::timeout(PATIENCE, door.door.closed()).await.expect("closed in time");
    assert!(TcpStream::connect(door.addr).await.is_err());
    assert_eq!(read_answer(&mut idle).await.status, 200);
}
