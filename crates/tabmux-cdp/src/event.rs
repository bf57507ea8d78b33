//! Reads an event. One that cannot be read is left out: a newer browser may say things in another shape.

use serde_json::value::RawValue;

use crate::protocol::Event;

pub(crate) fn read<E: Event>(params: &RawValue) -> Option<E> {
    serde_json::from_str(params.get()).inspect_err(|error| tracing::debug!(method = E::METHOD, %error, "an event cannot be read")).ok()
}
