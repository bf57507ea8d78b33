//! A port to be named in advance, where the daemon cannot be left to choose.

use std::net::TcpListener;

use super::{Chance, SOON, until};

/// A free port that the system gives to nobody who did not ask for this very one, so that it stays free until it is used.
pub fn quiet_port() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").expect("Linux has /proc");
    let given_out: usize = range.split_whitespace().next().and_then(|first| first.parse().ok()).expect("two numbers");
    let mut chance = Chance::announced("a port");
    until("a port is free", SOON, || {
        let port = u16::try_from(1024 + chance.below(given_out.saturating_sub(1024).max(1))).expect("below the range's end");
        TcpListener::bind(("127.0.0.1", port)).ok().map(|_| port)
    })
}
