//! A bounded log of what was sent, for tests that must know what never was.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Long scripts are cut here.
const KEPT_OF_A_FRAME: usize = 1000;

/// One command as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub session: Option<String>,
    pub method: &'static str,
    /// The beginning of the frame, parameters included.
    pub frame: String,
}

#[derive(Clone, Debug)]
pub struct Tap(Arc<Mutex<Log>>);

#[derive(Debug)]
struct Log {
    capacity: usize,
    sent: VecDeque<Sent>,
    dropped: u64,
}

impl Tap {
    pub(super) fn new(capacity: usize) -> Self {
        Self(Arc::new(Mutex::new(Log { capacity, sent: VecDeque::new(), dropped: 0 })))
    }

    pub fn sent(&self) -> Vec<Sent> {
        self.0.lock().expect("nothing panics under this lock").sent.iter().cloned().collect()
    }

    /// How many of the oldest did not fit; a test that relies on the whole log asserts none.
    pub fn dropped(&self) -> u64 {
        self.0.lock().expect("nothing panics under this lock").dropped
    }

    pub(super) fn record(&self, session: Option<&str>, method: &'static str, frame: &str) {
        let frame = frame[..frame.floor_char_boundary(KEPT_OF_A_FRAME)].to_owned();
        let mut log = self.0.lock().expect("nothing panics under this lock");
        log.sent.push_back(Sent { session: session.map(str::to_owned), method, frame });
        if log.sent.len() > log.capacity {
            log.sent.pop_front();
            log.dropped += 1;
        }
    }
}
