//! Waiting for what another process does. Its exit, its files and its sockets send us no event, so this polls;
//! it is the only place in the tests that sleeps.

use std::time::{Duration, Instant};

/// Asks until there is an answer. Panics with `what` at the deadline.
pub fn until<T>(what: &str, deadline: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < deadline, "not within {deadline:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Lets time pass where time itself is what is tested (a stopped daemon, a peer that stays silent).
pub fn pass(time: Duration) {
    std::thread::sleep(time);
}
