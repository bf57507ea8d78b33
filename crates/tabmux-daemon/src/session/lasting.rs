//! How a session's context is made again: by the next daemon, or after its browser was lost. Secrets are left out; that there
//! were some is kept, so that their loss can be said.

use serde::{Deserialize, Serialize};
use tabmux_core::Session;
use tabmux_driver::ContextSpec;

use crate::hub::isolation_of;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Lasting {
    #[serde(flatten)]
    pub(crate) spec: ContextSpec,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) secrets: bool,
}

impl Lasting {
    pub(crate) fn of(spec: &ContextSpec) -> Self {
        let proxy = spec.proxy.as_ref().is_some_and(|proxy| proxy.credentials.is_some());
        Self { spec: spec.clone(), secrets: proxy || spec.emulation.credentials.is_some() }
    }

    /// As the journal keeps it.
    pub(crate) fn written(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are JSON")
    }

    /// What this version cannot read is as if nothing had been asked for.
    pub(crate) fn read(session: &Session) -> Self {
        let mut lasting: Self = serde_json::from_str(&session.settings).unwrap_or_default();
        lasting.spec.isolation = isolation_of(&session.isolation);
        lasting
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}
