//! Connections: so many at most, each with a clock on everything it may make us wait for.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::guard::Failures;
use super::routes::Door;
use super::{Behind, Bounds};

const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 32 * 1024;
const READ_BUFFER: usize = 64 * 1024;
/// How long accepting rests when the system has no file descriptor left.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// What a peer reads when all seats are taken.
const TURNED_AWAY: &[u8] =
    b"HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Type: application/json\r\nRetry-After: 1\r\n\r\n\
{\"error\":{\"code\":\"capacity\",\"message\":\"Too many connections are open.\",\"hint\":\"Close some, or try again in a second.\"}}";

/// Serves all listeners until `ct`; the tracker is done when nothing is left.
pub(super) fn start(listeners: Vec<TcpListener>, behind: Behind, bounds: Bounds, ct: &CancellationToken) -> TaskTracker {
    let tracker = TaskTracker::new();
    let door = Arc::new(Door { behind, bounds, failures: Failures::default() });
    let seats = Arc::new(Semaphore::new(bounds.connections));
    for listener in listeners {
        tracker.spawn(accept(listener, Arc::clone(&door), Arc::clone(&seats), tracker.clone(), ct.clone()));
    }
    tracker.close();
    tracker
}

async fn accept(listener: TcpListener, door: Arc<Door>, seats: Arc<Semaphore>, tracker: TaskTracker, ct: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = ct.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => match Arc::clone(&seats).try_acquire_owned() {
                Ok(seat) => {
                    let (door, ct) = (Arc::clone(&door), ct.clone());
                    tracker.spawn(async move {
                        let _seat = seat;
                        serve(stream, door, ct).await;
                    });
                }
                Err(_) => turn_away(stream),
            },
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

/// Says why, without waiting: a peer that is turned away may cost nothing.
fn turn_away(stream: TcpStream) {
    let said = stream.into_std().and_then(|mut stream| stream.write(TURNED_AWAY));
    tracing::debug!(?said, "a connection was turned away: all seats are taken");
}

async fn serve(stream: TcpStream, door: Arc<Door>, ct: CancellationToken) {
    let Ok(local) = stream.local_addr() else { return };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "answers may be delayed by the kernel");
    }
    let bounds = door.bounds;
    let ended = connection(stream, local, door, bounds, ct).await;
    tracing::trace!(?ended, "a connection ended");
}

async fn connection(
    stream: TcpStream,
    local: SocketAddr,
    door: Arc<Door>,
    bounds: Bounds,
    ct: CancellationToken,
) -> Result<(), hyper::Error> {
    let service = service_fn(move |request| {
        let door = Arc::clone(&door);
        Box::pin(async move { Ok::<_, Infallible>(door.answer(request, local).await) })
    });
    let io = TokioIo::new(Unstalled { stream, limit: bounds.stalled_write, stalled: None });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.header_read)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEADER_BYTES)
        .max_buf_size(READ_BUFFER)
        .serve_connection(io, service);
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = ct.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    tokio::time::timeout(bounds.drain, connection).await.unwrap_or(Ok(()))
}

/// A stream whose peer must go on reading: a write that makes no headway for `limit` fails.
struct Unstalled {
    stream: TcpStream,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Unstalled {
    fn watch<T>(&mut self, cx: &mut Context<'_>, write: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.stalled = None;
            return write;
        }
        let limit = self.limit;
        let clock = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(clock.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Unstalled {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Unstalled {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, write)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, parts: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.watch(cx, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
