//! MCP over lines: one JSON-RPC message per line, from a socket, into rmcp and back. Whatever a peer writes, it
//! gets an answer and the connection goes on. Who the peer is, is deliberately absent.

use std::collections::{HashMap, VecDeque};

use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetMeta, InitializeRequestParams, NumberOrString, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::serve_directly_with_ct;
use rmcp::transport::Transport;
use serde_json::Value;
use tabmux_core::{Code, Fault};
use tabmux_wire::edges::find_id;
use tabmux_wire::lines::{Line, LineReader};
use tabmux_wire::outbox::{self, LineSender, Lost, Writer};
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::handler::Handler;
use crate::message::{self, INVALID_REQUEST, Refusal};
use crate::turn::Turns;

/// How many messages one JSON-RPC batch may hold (revision 2025-03-26 had batches).
const LARGEST_BATCH: usize = 256;

/// rmcp's end of one line connection.
#[derive(Debug)]
pub struct LineTransport<R> {
    lines: LineReader<R>,
    limit: usize,
    sender: LineSender,
    writer: Writer,
    /// Read, not yet handed out: the rest of a batch.
    waiting: VecDeque<ClientJsonRpcMessage>,
    ids: OpenRequests,
    turns: Turns,
    handshake: Handshake,
}

/// Whether the peer has said `initialize`, here or to a former daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    Awaited,
    Done,
}

/// The peer's request ids, each under a number of our own. rmcp would mix up two open requests with one id, and
/// an answer to a cancelled request with one to the next of the same id.
#[derive(Debug, Default)]
struct OpenRequests {
    last: i64,
    open: HashMap<i64, RequestId>,
}

/// Makes a transport of a reader of lines (what it has already read counts) and a writer.
pub fn open_lines<R, W>(lines: LineReader<R>, writer: W) -> (LineTransport<R>, LineSender)
where
    R: AsyncBufRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (sender, writer) = outbox::start(writer);
    let limit = tabmux_wire::MAX_FRAME_BYTES;
    let ids = OpenRequests::default();
    let transport = LineTransport {
        lines,
        limit,
        sender: sender.clone(),
        writer,
        waiting: VecDeque::new(),
        ids,
        turns: Turns::default(),
        handshake: Handshake::Awaited,
    };
    (transport, sender)
}

/// Serves one peer until it is gone and its last answers are written. A re-joined peer brings the parameters of
/// the `initialize` it sent to a former daemon and is served without a handshake.
///
/// rmcp's own `serve_server` is not used: it settles on one era with the first request, ends the connection on a
/// notification that comes too early, and refuses plain requests for ever once it has seen one of the new era.
/// `serve_directly` with the handshake as an ordinary request serves both eras, also mixed.
pub async fn serve_lines<R>(handler: Handler, mut transport: LineTransport<R>, rejoin: Option<Value>, ct: CancellationToken)
where
    R: AsyncBufRead + Unpin + Send + 'static,
{
    let peer = rejoin.and_then(|params| {
        transport.handshake = Handshake::Done;
        rejoined_peer(&handler, params)
    });
    let handler = handler.on_connection(transport.sender.lost_token().clone());
    // rmcp cancels the token it is given when the connection ends, so it gets one of its own.
    let running = serve_directly_with_ct(handler, transport, peer, ct.child_token());
    if let Err(error) = running.waiting().await {
        tracing::error!(%error, "an MCP connection ended in a panic");
    }
}

fn rejoined_peer(handler: &Handler, params: Value) -> Option<InitializeRequestParams> {
    let mut params: InitializeRequestParams =
        serde_json::from_value(params).inspect_err(|error| tracing::warn!(%error, "bad re-join")).ok()?;
    params.protocol_version = handler.negotiate_initialize(&params).ok()?.protocol_version;
    Some(params)
}

impl OpenRequests {
    fn admit(&mut self, theirs: RequestId) -> RequestId {
        self.last += 1;
        self.open.insert(self.last, theirs);
        NumberOrString::Number(self.last)
    }

    /// Our number of the newest open request with the peer's id.
    fn find(&self, theirs: &RequestId) -> Option<i64> {
        self.open.iter().filter(|(_, id)| *id == theirs).map(|(ours, _)| *ours).max()
    }

    fn close(&mut self, ours: &RequestId) -> Option<RequestId> {
        let NumberOrString::Number(ours) = ours else { return None };
        self.open.remove(ours)
    }
}

impl<R: AsyncBufRead + Unpin + Send + 'static> LineTransport<R> {
    fn take(&mut self, line: Line) {
        match line {
            Line::Whole(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Line::Whole(bytes) => match message::parse(&bytes) {
                Ok(Value::Array(batch)) => self.take_batch(batch),
                Ok(value) => self.take_message(value),
                Err(refusal) => self.refuse(&refusal),
            },
            Line::TooLong { bytes, head, tail } => {
                self.refuse(&Refusal::too_large(find_id(&head, &tail).unwrap_or(Value::Null), bytes, self.limit));
            }
            Line::End => {}
        }
    }

    fn take_batch(&mut self, batch: Vec<Value>) {
        if batch.is_empty() || batch.len() > LARGEST_BATCH {
            let message = format!("The batch has {} messages.", batch.len());
            let fault = Fault::new(Code::BadArgument, message, format!("Send 1 to {LARGEST_BATCH} messages in a batch."));
            return self.refuse(&Refusal::new(Value::Null, INVALID_REQUEST, fault));
        }
        for value in batch {
            self.take_message(value);
        }
    }

    fn take_message(&mut self, value: Value) {
        match message::read(value).and_then(|message| self.admit(message)) {
            Ok(Some(message)) => self.waiting.push_back(message),
            Ok(None) => {}
            Err(refusal) => self.refuse(&refusal),
        }
    }

    /// Lets a message in under our own id. `None` means that there is nothing to do.
    fn admit(&mut self, message: ClientJsonRpcMessage) -> Result<Option<ClientJsonRpcMessage>, Box<Refusal>> {
        match message {
            ClientJsonRpcMessage::Request(mut request) => {
                self.check_handshake(&request.request, &request.id)?;
                if let ClientRequest::CallToolRequest(call) = &mut request.request {
                    call.extensions.insert(self.turns.next());
                }
                request.id = self.ids.admit(request.id);
                self.sender.set_unanswered(self.ids.open.len());
                Ok(Some(ClientJsonRpcMessage::Request(request)))
            }
            ClientJsonRpcMessage::Notification(mut message) => {
                if let ClientNotification::CancelledNotification(cancelled) = &mut message.notification {
                    let ours = cancelled.params.request_id.as_ref().and_then(|theirs| self.ids.find(theirs));
                    let Some(ours) = ours else { return Ok(None) };
                    // A cancelled request is not answered, so nothing will ask for its id again.
                    self.ids.open.remove(&ours);
                    self.sender.set_unanswered(self.ids.open.len());
                    cancelled.params.request_id = Some(NumberOrString::Number(ours));
                }
                Ok(Some(ClientJsonRpcMessage::Notification(message)))
            }
            answer => Ok(Some(answer)),
        }
    }

    /// Before `initialize` only requests that carry their own protocol version are served (2026-07-28), `ping` and
    /// `server/discover`.
    fn check_handshake(&mut self, request: &ClientRequest, id: &RequestId) -> Result<(), Box<Refusal>> {
        match request {
            ClientRequest::InitializeRequest(_) => self.handshake = Handshake::Done,
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => {}
            _ if self.handshake == Handshake::Done || request.get_meta().protocol_version().is_some() => {}
            _ => {
                let hint =
                    "Send initialize first, or name io.modelcontextprotocol/protocolVersion and clientCapabilities in the request's _meta.";
                let fault = Fault::new(Code::ProtocolVersion, format!("{} came before initialize.", request.method()), hint);
                return Err(Refusal::new(id.clone().into_json_value(), INVALID_REQUEST, fault));
            }
        }
        Ok(())
    }

    fn refuse(&self, refusal: &Refusal) {
        tracing::debug!(fault = %refusal.fault, "refused a line");
        // A peer that is gone needs no answer; the next read notices.
        let _gone = self.sender.send_line(refusal.to_line());
    }
}

impl<R: AsyncBufRead + Unpin + Send + 'static> Transport<RoleServer> for LineTransport<R> {
    type Error = Lost;

    fn send(&mut self, mut message: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Lost>> + Send + 'static {
        let id = match &mut message {
            ServerJsonRpcMessage::Response(response) => Some(&mut response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_mut(),
            _ => None,
        };
        if let Some(id) = id {
            match self.ids.close(id) {
                Some(theirs) => *id = theirs,
                // Cancelled meanwhile: nobody waits, and under our number it could be taken for another answer.
                None => return std::future::ready(Ok(())),
            }
        }
        let sent = serde_json::to_string(&message).map_err(|_| Lost).and_then(|line| self.sender.send_line(line));
        self.sender.set_unanswered(self.ids.open.len());
        std::future::ready(sent)
    }

    /// Cancel-safe: what was read stays in `lines` or `waiting`.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let lost = self.sender.lost_token().clone();
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            let line = tokio::select! {
                () = lost.cancelled() => return None,
                line = async { self.sender.room().await; self.lines.next().await } => line,
            };
            match line {
                Ok(Line::End) | Err(_) => {
                    lost.cancel();
                    return None;
                }
                Ok(line) => self.take(line),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Lost> {
        self.writer.finish(&self.sender).await;
        self.sender.lost_token().cancel();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn nothing_is_kept_of_a_request_once_it_is_answered_or_cancelled() {
        let (mut transport, _sender) = open_lines(LineReader::new(&b""[..], 100), tokio::io::sink());
        for id in [1, 2] {
            transport.take_message(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        }
        assert_eq!(transport.ids.open.len(), 2);
        transport.take_message(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
        assert_eq!(transport.ids.open.len(), 1);
        let Some(ClientJsonRpcMessage::Request(ping)) = transport.waiting.remove(1) else { panic!("{:?}", transport.waiting) };
        let pong: ServerJsonRpcMessage = serde_json::from_value(json!({ "jsonrpc": "2.0", "id": ping.id, "result": {} })).unwrap();
        transport.send(pong).await.unwrap();
        assert!(transport.ids.open.is_empty());
    }
}
