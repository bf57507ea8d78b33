//! What the end-to-end tests share: a private daemon in temporary directories, clients on each of its doors,
//! and waiting with a deadline. They know the shipped binary and CONTRACT.md, and nothing of the code.
#![allow(dead_code, unused_imports, unreachable_pub, missing_debug_implementations, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "only tests use it")]

pub mod chance;
pub mod display;
pub mod http;
pub mod lab;
pub mod mcp;
pub mod person;
pub mod port;
pub mod process;
pub mod site;
pub mod socket;
pub mod typist;
pub mod wait;

pub use chance::Chance;
pub use display::Display;
pub use http::Http;
pub use lab::{Lab, Printed};
pub use mcp::{Mcp, Reply};
pub use person::{Gate, Person, Said, Shown};
pub use socket::Door;
pub use typist::Typist;
pub use wait::until;

use std::time::Duration;

/// How long any single answer may take here, on a busy machine.
pub const SOON: Duration = Duration::from_secs(20);

/// A number for this run: the soak's, or the sample that CI runs.
pub fn amount(variable: &str, sample: usize) -> usize {
    std::env::var(variable).ok().map_or(sample, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// Whether this is the soak that sets this number. It has the machine to itself, so it may hold the daemon to the clock.
pub fn is_soak(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}

/// Runs one closure per item, all at the same time, and gives what they gave, in order.
pub fn at_once<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let gate = std::sync::Barrier::new(items.len());
    std::thread::scope(|scope| {
        let (gate, work) = (&gate, &work);
        let start = |item| {
            scope.spawn(move || {
                gate.wait();
                work(item)
            })
        };
        let running: Vec<_> = items.into_iter().map(start).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}
