//! Shapes and versions of what crosses the daemon's Unix socket. Decisions are deliberately absent: a shape
//! here says what a peer wrote, never whether it may.

pub mod control;
pub mod edges;
pub mod hello;
pub mod lines;
pub mod names;
pub mod outbox;
pub mod strict;

/// The version of the socket's own protocol. A peer without one speaks version 1 (C10).
pub const VERSION: u32 = 1;

/// The longest line, HTTP body or frame any door takes. Larger things go by file.
pub const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;
