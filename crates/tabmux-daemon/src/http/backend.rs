//! What the HTTP door asks of the hub.

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};
use tabmux_core::{ClientId, Fault, GrantKey, TabNumber};
use tabmux_tools::Reply;
use tokio_util::sync::CancellationToken;

/// The hub, as the HTTP door sees it.
pub trait Backend: tabmux_mcp::Dispatch {
    /// The client an identity stands for; attaches it when it is new. HTTP callers have no connection to lose.
    fn http_client(&self, who: HttpIdentity) -> ClientId;
    /// A goodbye of that identity: closes its sessions at once (DELETE, C7).
    fn goodbye(&self, who: HttpIdentity) -> BoxFuture<'_, ()>;
    fn health(&self) -> Health;
    /// Runs one command of Seed 2's surface, where tab numbers are global.
    fn command(
        &self,
        client: ClientId,
        command: Command,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<CommandAnswer, CommandRefusal>>;
    /// Whether that identity has a session of this id: for `Anonymous`, one without an owner's identity and by
    /// its uuid only; else one of its own, or the one it was given. Attaches nobody.
    fn has_session(&self, who: &HttpIdentity, session: &str) -> bool;
    /// The grant a capability stands for now. Takes the same time whichever it is, or none.
    fn holder(&self, capability: &str) -> Option<GrantKey>;
}

/// Whom an HTTP request comes from (C11). A session in our sense is made by tools, never by having an identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HttpIdentity {
    /// The main token, and the `mcp-session-id` of an `initialize` made with it.
    McpSession(String),
    /// A named token.
    Token(String),
    /// The main token at `/mcp/NAME`.
    Path(String),
    /// A capability and nothing else, whatever the path.
    Grant(GrantKey),
    /// The main token and nothing else: sessions are named by their uuid only.
    Anonymous,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    pub sessions: usize,
    pub extension_connected: bool,
}

/// One command of Seed 2's surface, its name already a tool's.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub tool: String,
    /// The tool's arguments; `sessionId` is set for a caller that has nothing else.
    pub args: Map<String, Value>,
    /// The tab, by its number in the whole daemon (S2.14).
    pub tab: Option<TabNumber>,
}

#[derive(Clone, Debug, Default)]
pub struct CommandAnswer {
    /// Where the command ran, and what stood there afterwards (S2.26).
    pub tab: Option<TabNumber>,
    pub url: Option<String>,
    pub reply: Reply,
}

/// Why a command was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandRefusal {
    /// The tab is another session's; answered 409 on this surface only (S2.14, C17).
    ForeignTab,
    Fault(Fault),
}

impl From<Fault> for CommandRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// `GET /health`, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HealthReport {
    status: &'static str,
    extension_connected: bool,
    sessions: usize,
}

impl From<Health> for HealthReport {
    fn from(health: Health) -> Self {
        Self { status: "ok", extension_connected: health.extension_connected, sessions: health.sessions }
    }
}
