//! The ids tabmux mints itself. Each prints with a prefix that says what it is, so that a number in a log or
//! a reply can never be taken for another kind. Ids of protocols (JSON-RPC, CDP) never appear in this room.

use std::fmt;
use std::str::FromStr;

/// A session's short id, `sess_` and 8 hex digits (S1.20, C5). Not a secret and it gives no rights.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// A session's UUID, the handle of callers that have no identity of their own (C5, C11).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub u128);

/// A tab's number inside its session, `t1`, `t2`, … never reused (C17).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TabId(pub u32);

/// A tab's number in the whole daemon. Only the protocol-v2 surface shows it (S2.14, C17).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TabNumber(pub u64);

/// One attached peer: a connection, or an HTTP caller that has none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// Counts the hand-overs of a session; a command of a former driver carries an old one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);

/// A text that is not an id of the wanted kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnId;

macro_rules! prefixed {
    ($type:ident, $($format:tt)+) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $($format)+, self.0)
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

prefixed!(SessionId, "sess_{:08x}");
prefixed!(TabId, "t{}");
prefixed!(TabNumber, "{}");
prefixed!(ClientId, "c{}");
prefixed!(Epoch, "epoch {}");

impl FromStr for SessionId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let hex = text.strip_prefix("sess_").ok_or(NotAnId)?;
        if hex.len() != 8 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(NotAnId);
        }
        u32::from_str_radix(hex, 16).map(Self).map_err(|_| NotAnId)
    }
}

impl FromStr for TabId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let digits = text.strip_prefix('t').ok_or(NotAnId)?;
        if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(NotAnId);
        }
        digits.parse().map(Self).map_err(|_| NotAnId)
    }
}

impl Uuid {
    /// A version-4 UUID made of 128 random bits.
    pub fn from_random(bits: u128) -> Self {
        let versioned = (bits & !(0xf << 76)) | (0x4 << 76);
        Self((versioned & !(0x3 << 62)) | (0x2 << 62))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        f.write_str(&parts.join("-"))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let dashes_fit = text.len() == 36 && text.char_indices().all(|(at, c)| (c == '-') == matches!(at, 8 | 13 | 18 | 23));
        if !dashes_fit {
            return Err(NotAnId);
        }
        let hex: String = text.chars().filter(|c| *c != '-').collect();
        if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(NotAnId);
        }
        u128::from_str_radix(&hex, 16).map(Self).map_err(|_| NotAnId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1.20, S3.34
    #[test]
    fn ids_print_with_their_prefix_and_read_back() {
        assert_eq!(SessionId(0x1f).to_string(), "sess_0000001f");
        assert_eq!("sess_0000001f".parse(), Ok(SessionId(0x1f)));
        assert_eq!(TabId(3).to_string(), "t3");
        assert_eq!("t3".parse(), Ok(TabId(3)));
        let uuid = Uuid::from_random(0x1234_5678_9abc_def0_1234_5678_9abc_def0);
        assert_eq!(uuid.to_string(), "12345678-9abc-4ef0-9234-56789abcdef0");
        assert_eq!(uuid.to_string().parse(), Ok(uuid));
        assert_eq!(format!("{uuid:?} {:?} {:?}", TabId(3), ClientId(4)), format!("{uuid} t3 c4"));
    }

    #[test]
    fn random_bits_of_any_kind_make_a_version_4_uuid() {
        assert_eq!(Uuid::from_random(u128::MAX).to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(Uuid::from_random(0).to_string(), "00000000-0000-4000-8000-000000000000");
    }

    #[test]
    fn near_misses_are_no_ids() {
        for text in ["sess_1f", "sess_+000001f", "sess_0000001g", "SESS_0000001f", ""] {
            assert_eq!(text.parse::<SessionId>(), Err(NotAnId), "{text}");
        }
        for text in ["t", "t0", "t01", "t+1", "1", "t4294967296"] {
            assert_eq!(text.parse::<TabId>(), Err(NotAnId), "{text}");
        }
        for text in [
            "123456789abc4ef0923456789abcdef0",
            "12345678-9abc-4ef0-9234-56789abcdeg0",
            "1234567-89abc-4ef0-9234-56789abcdef0",
            "+2345678-9abc-4ef0-9234-56789abcdef0",
        ] {
            assert_eq!(text.parse::<Uuid>(), Err(NotAnId), "{text}");
        }
    }
}
