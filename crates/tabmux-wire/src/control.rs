//! What the command line asks the daemon after its hello: one JSON request per line, one reply per request, matched by `id`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `{"id":1,"do":"call","tool":"navigate","args":{…}}`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    pub id: u64,
    #[serde(flatten)]
    pub ask: Ask,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Ask {
    /// Any tool from the table. `args` may hold `sessionId` and `tabId` like every tool's arguments.
    Call {
        tool: String,
        #[serde(default)]
        args: Map<String, Value>,
    },
    /// Everything `tabmux status --json` prints.
    Status,
    /// The sessions of the caller, or of everybody (`--all`; the operator only).
    Sessions {
        #[serde(default)]
        all: bool,
    },
    Rename {
        session: String,
        name: String,
    },
    /// Ends one session. The operator may name anybody's by id or uuid, or by name where only one has it.
    Kill {
        session: String,
    },
    /// Copies of a live session with its pages, all from one reading; none is the current one. They are the caller's.
    Fork {
        #[serde(default)]
        session: Option<String>,
        count: u32,
        /// What their names begin with.
        #[serde(default)]
        prefix: Option<String>,
    },
    /// Writes what a session holds into a profile: one that must not be there yet, or whichever.
    ProfileSave {
        name: String,
        #[serde(default)]
        session: Option<String>,
        #[serde(default)]
        new: bool,
    },
    /// Drain, say goodbye, end. Answered before the daemon exits.
    Stop,
    /// Drain and end, but leave sessions and browsers to the newer daemon that asks. Answered before the daemon exits.
    MakeWay,
    TokenNew {
        name: String,
    },
    TokenList,
    TokenRevoke {
        name: String,
    },
}

impl Ask {
    /// What a request of this kind may say. serde cannot refuse the rest, because `Request` flattens it.
    pub fn fields(&self) -> &'static [&'static str] {
        match self {
            Self::Call { .. } => &["id", "do", "tool", "args"],
            Self::Status | Self::Stop | Self::MakeWay | Self::TokenList => &["id", "do"],
            Self::Sessions { .. } => &["id", "do", "all"],
            Self::Rename { .. } => &["id", "do", "session", "name"],
            Self::Kill { .. } => &["id", "do", "session"],
            Self::Fork { .. } => &["id", "do", "session", "count", "prefix"],
            Self::ProfileSave { .. } => &["id", "do", "name", "session", "new"],
            Self::TokenNew { .. } | Self::TokenRevoke { .. } => &["id", "do", "name"],
        }
    }
}

/// `{"id":1,"ok":…}` or `{"id":1,"error":{…}}`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Response {
    pub id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WireFault>,
}

/// A fault as it crosses a wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireFault {
    pub code: String,
    pub message: String,
    pub hint: String,
}

impl From<&tabmux_core::Fault> for WireFault {
    fn from(fault: &tabmux_core::Fault) -> Self {
        Self { code: fault.code.name().into(), message: fault.message.clone(), hint: fault.hint.clone() }
    }
}

impl From<WireFault> for tabmux_core::Fault {
    fn from(wire: WireFault) -> Self {
        let code = tabmux_core::Code::from_name(&wire.code).unwrap_or(tabmux_core::Code::Internal);
        Self::new(code, wire.message, wire.hint)
    }
}
