//! Reads an event. One that cannot be read is left out and counted: a newer browser may say things in another shape.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::value::RawValue;

use crate::lenient;
use crate::protocol::Event;

static UNREADABLE: AtomicU64 = AtomicU64::new(0);

/// How many events of all browsers could not be read since this process began.
pub fn unreadable_events() -> u64 {
    UNREADABLE.load(Relaxed)
}

pub(crate) fn read<E: Event>(params: &RawValue) -> Option<E> {
    let event = lenient::read(params.get().as_bytes());
    event.inspect_err(|error| unreadable(E::METHOD, error)).ok()
}

fn unreadable(method: &str, error: &serde_json::Error) {
    UNREADABLE.fetch_add(1, Relaxed);
    tracing::warn!(method, %error, "an event cannot be read");
}
