//! What somebody else may do with a session. Whoever shows the capability holds the grant; of the capability only the hash is
//! known here, so that neither this room nor the journal could give one away.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::{Identity, NotAnId, SessionId};

/// How a capability begins wherever one is written; no session can be called so.
pub const CAPABILITY: &str = "tmx_";

/// The hash of a capability.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrantKey(pub [u8; 32]);

/// A grant's short id, the beginning of its hash, for lists, logs and revoking. Not a secret and it gives no rights.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrantId(pub u32);

/// How far a grant goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Tools that only look.
    #[default]
    Read,
    /// All tools that work on pages.
    Act,
    /// The whole session: the first use makes it the user's.
    HandOver,
}

/// How often a grant can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uses {
    #[default]
    Many,
    /// For one call.
    Once,
}

/// One grant. What it says holds by itself: what it inherits from the grant it was made from is in it already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub key: GrantKey,
    pub session: SessionId,
    pub giver: Identity,
    /// The grant it was made from, with which it ends.
    pub parent: Option<GrantKey>,
    pub right: Right,
    /// `None`: all that the right allows.
    pub tools: Option<BTreeSet<String>>,
    /// Each list allows some sites, and a page must be allowed by all of them; opaque here.
    pub domains: Vec<Vec<String>>,
    pub uses: Uses,
    /// Of a hand-over: who took the session. Nobody else can use it any more.
    pub taken_by: Option<Identity>,
    /// For people only; no decision uses it.
    pub created_unix_ms: i64,
}

/// What a new grant is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub right: Right,
    pub tools: Option<BTreeSet<String>>,
    pub domains: Vec<String>,
    /// `None`: as long as the session, or the grant it comes from.
    pub ttl_ms: Option<u64>,
    pub uses: Uses,
    pub created_unix_ms: i64,
}

/// What a call is about to do, as grants see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deed<'a> {
    pub tool: &'a str,
    pub touch: Touch,
}

/// What a call does to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Leaves everything as it is.
    Looks,
    /// Works on its pages.
    Acts,
    /// Decides about the session itself, as closing it does: where it lives, and what it goes on with. No grant is for that.
    Governs,
}

impl Grant {
    pub fn id(&self) -> GrantId {
        self.key.id()
    }

    /// Whether a call may do this.
    pub(crate) fn allows(&self, deed: Deed<'_>) -> bool {
        let far_enough = match deed.touch {
            Touch::Looks => true,
            Touch::Acts => self.right > Right::Read,
            Touch::Governs => false,
        };
        far_enough && self.tools.as_ref().is_none_or(|tools| tools.contains(deed.tool))
    }
}

impl GrantKey {
    pub fn id(self) -> GrantId {
        let [a, b, c, d, ..] = self.0;
        GrantId(u32::from_be_bytes([a, b, c, d]))
    }
}

impl Right {
    pub const ALL: [Self; 3] = [Self::Read, Self::Act, Self::HandOver];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Act => "act",
            Self::HandOver => "hand_over",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.name() == name)
    }
}

impl fmt::Display for GrantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for GrantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for GrantKey {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotAnId);
        }
        let mut key = [0; 32];
        for (byte, at) in key.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| NotAnId)?;
        }
        Ok(Self(key))
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "g_{:08x}", self.0)
    }
}

impl fmt::Debug for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for GrantId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let hex = text.strip_prefix("g_").filter(|hex| hex.len() == 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).map(Self).ok_or(NotAnId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_ids_print_and_read_back_and_near_misses_do_not() {
        let mut bytes = [0x5a; 32];
        bytes[..5].copy_from_slice(&[0, 1, 0xfe, 0xff, 7]);
        let key = GrantKey(bytes);
        assert_eq!((key.to_string().parse(), key.id().to_string().as_str()), (Ok(key), "g_0001feff"));
        assert_eq!("g_0001feff".parse(), Ok(key.id()));
        for text in ["", "g_", "g_001feff", "g_0001fefg", "G_0001feff", "0001feff"] {
            assert_eq!(text.parse::<GrantId>(), Err(NotAnId), "{text}");
        }
        assert_eq!(key.to_string()[1..].parse::<GrantKey>(), Err(NotAnId));
        assert_eq!(Right::ALL.map(|right| Right::from_name(right.name())), Right::ALL.map(Some));
    }
}
