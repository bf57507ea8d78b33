//! Who a peer is. An identity is never a right by itself: a door derives it from a secret the peer showed
//! (its hash), from a token, or from the connection, and every ownership decision compares identities.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What owns sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Identity {
    /// The human: plain command line, dashboard, side panel.
    Operator,
    /// A peer that showed a secret of its own; this is the secret's hash. One live connection at a time drives it.
    Secret(Arc<str>),
    /// The holder of a named token.
    Token(Arc<str>),
    /// The HTTP path `/mcp/NAME`.
    Path(Arc<str>),
    /// An old-era HTTP client, by its `mcp-session-id`.
    Http(Arc<str>),
    /// Who shows a capability and nothing else; this is its hash. It makes no sessions, and has the one it was given.
    Grant(crate::GrantKey),
    /// A caller nothing tells apart from others. It owns nothing; its handle is a session's uuid (C11).
    Nobody,
}

/// One of those who use a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    Owner,
    Holder(crate::GrantId),
    /// With a session that is somebody else's.
    Operator,
}

impl Identity {
    /// Whether two live connections may not act as this identity at once. Only such an identity stands and falls with
    /// its connection, so only its sessions become orphans. Any other is held by a token, a path or an id, which a
    /// shim, commands and several HTTP clients may show at once and again later: like an HTTP caller it has no
    /// connection to lose (C7), and its sessions end by `close_session`, the idle clock, or the goodbye of its last client.
    pub(crate) fn is_exclusive(&self) -> bool {
        matches!(self, Self::Secret(_))
    }

    /// Whether nobody can say goodbye for all who stand behind it: the operator's windows and commands come and go,
    /// and strangers are told apart by nothing.
    pub(crate) fn is_many(&self) -> bool {
        matches!(self, Self::Operator | Self::Nobody)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.write_str("operator"),
            Self::Secret(hash) => write!(f, "secret:{hash}"),
            Self::Token(name) => write!(f, "token:{name}"),
            Self::Path(name) => write!(f, "path:{name}"),
            Self::Http(id) => write!(f, "http:{id}"),
            Self::Grant(key) => write!(f, "grant:{key}"),
            Self::Nobody => f.write_str("nobody"),
        }
    }
}

impl FromStr for Identity {
    type Err = crate::NotAnId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once(':') {
            None if text == "operator" => Self::Operator,
            None if text == "nobody" => Self::Nobody,
            Some(("secret", hash)) => Self::Secret(hash.into()),
            Some(("token", name)) => Self::Token(name.into()),
            Some(("path", name)) => Self::Path(name.into()),
            Some(("http", id)) => Self::Http(id.into()),
            Some(("grant", key)) => Self::Grant(key.parse()?),
            _ => return Err(crate::NotAnId),
        })
    }
}

/// Whether a peer has a connection that can be lost (C7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Its end without a goodbye makes its sessions orphans, if its identity is bound to it.
    Connection,
    /// HTTP callers and one-shot commands: only a goodbye or a clock ends their sessions.
    None,
}

/// How a peer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It said so: its sessions close at once, unless other clients share its identity.
    Goodbye,
    /// Its connection ended; a crash cannot be told from an exit.
    Lost,
}

/// What a lost connection does to its sessions (C7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLost {
    Grace,
    Close,
    Keep,
}

/// One call's caller: the peer, and the agent within it where the peer names one (C8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller<'a> {
    pub client: crate::ClientId,
    pub agent: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_read_back_as_they_print() {
        let all = [
            Identity::Operator,
            Identity::Secret("ab:c".into()),
            Identity::Token("ci".into()),
            Identity::Path("web".into()),
            Identity::Http("7f2d".into()),
            Identity::Grant(crate::GrantKey([7; 32])),
            Identity::Nobody,
        ];
        for identity in all {
            assert_eq!(identity.to_string().parse(), Ok(identity));
        }
        for text in ["", "oper", "secret", "other:x", "grant:7"] {
            assert_eq!(text.parse::<Identity>(), Err(crate::NotAnId), "{text}");
        }
    }
}
