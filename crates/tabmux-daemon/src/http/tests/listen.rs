//! Getting a port.

use super::*;

fn behind(state: &tempfile::TempDir) -> Behind {
    let hub = Arc::new(TestHub::default());
    Behind {
        backend: Arc::<TestHub>::clone(&hub),
        tokens: Arc::new(Tokens::open(state.path()).unwrap()),
        sessions: Arc::new(HttpSessionsTable::new([], Arc::<TestHub>::clone(&hub))),
        mcp: mcp_service(&hub),
    }
}

async fn start(listen: &Listen) -> Result<Option<HttpDoor>, ListenError> {
    let state = tempfile::tempdir().unwrap();
    HttpDoor::start(listen, behind(&state), Bounds::default(), CancellationToken::new()).await
}

/// S1.29
#[tokio::test]
async fn a_taken_port_is_refused_and_its_holder_is_named_and_left_alone() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = holder.local_addr().unwrap();
    let error = start(&listen_on(addr.port())).await.unwrap_err();
    let ListenError::Taken { holder: found, .. } = &error else { panic!("{error}") };
    let name = std::fs::read_to_string("/proc/self/comm").unwrap().trim_end().to_owned();
    assert_eq!(*found, Holder::Process { pid: std::process::id(), name });
    let fault = error.fault();
    assert!(fault.message.contains(&std::process::id().to_string()) && fault.hint.contains("on_conflict"), "{fault}");
    std::net::TcpStream::connect(addr).expect("the holder still listens");
}

#[tokio::test]
async fn the_next_free_port_is_taken_only_when_that_is_set() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let listen = Listen { on_conflict: OnConflict::Next, ..listen_on(port) };
    let door = start(&listen).await.unwrap().unwrap();
    assert!(door.addr.port() > port && door.addr.port() <= port + 100, "{} after {port}", door.addr);
}

#[tokio::test]
async fn also_ports_are_served_and_missing_ones_are_said() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().port();
    let door = start(&Listen { also: vec![0, taken], ..listen_on(0) }).await.unwrap().unwrap();
    assert!(matches!(&door.missing[..], [ListenError::Taken { addr, .. }] if addr.port() == taken), "{:?}", door.missing);
    let also = door.also[0];
    let mut stream = TcpStream::connect(also).await.unwrap();
    stream.write_all(format!("GET /health HTTP/1.1\r\nConnection: close\r\nHost: {also}\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(read_answer(&mut stream).await.status, 200);
}

#[tokio::test]
async fn no_other_interface_than_loopback_is_ever_opened() {
    let listen = Listen { addr: Some("0.0.0.0:0".parse().unwrap()), ..listen_on(0) };
    assert!(matches!(start(&listen).await, Err(ListenError::NotLoopback { .. })));
    assert!(start(&Listen { addr: None, ..listen_on(0) }).await.unwrap().is_none(), "no door when none is asked for");
}
