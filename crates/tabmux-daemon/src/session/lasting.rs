//! How a session's context is made again: by the next daemon, or after its browser was lost. Secrets are left out; that there
//! were some is kept, so that their loss can be said.

use serde::{Deserialize, Serialize};
use tabmux_core::Session;
use tabmux_driver::ContextSpec;

use crate::hub::isolation_of;
use crate::sources::Whence;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Lasting {
    #[serde(flatten)]
    pub(crate) spec: ContextSpec,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) secrets: bool,
    /// The session it is a copy of: another may have its name by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    copy_of: Option<String>,
}

impl Lasting {
    pub(crate) fn of(spec: &ContextSpec, whence: Option<&Whence>) -> Self {
        let proxy = spec.proxy.as_ref().is_some_and(|proxy| proxy.credentials.is_some());
        let copy_of = whence.and_then(Whence::session).map(|id| id.to_string());
        Self { spec: spec.clone(), secrets: proxy || spec.emulation.credentials.is_some(), copy_of }
    }

    /// What it began with, as the session's record says it.
    pub(crate) fn whence(&self, source: &str) -> Whence {
        Whence::remembered(source, self.copy_of.as_deref().and_then(|id| id.parse().ok()))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// That there were secrets is kept, in whichever of the two places, and the secrets are not.
    #[test]
    fn secrets_are_known_to_have_been_there() {
        let credentials = || Some(tabmux_driver::Credentials { username: "ann".into(), password: "hunter2".into(), origin: None });
        let mut spec = ContextSpec::default();
        let plain = Lasting::of(&spec, None);
        assert!(!plain.secrets && !plain.written().contains("secrets"));
        spec.emulation.credentials = credentials();
        let emulated = Lasting::of(&spec, None);
        spec.emulation.credentials = None;
        spec.proxy = Some(tabmux_driver::Proxy { server: "http://p.test:1".into(), bypass: None, credentials: credentials() });
        for lasting in [emulated, Lasting::of(&spec, None)] {
            let written = lasting.written();
            assert!(written.contains("\"secrets\":true") && !written.contains("hunter2"), "{written}");
        }
    }
}
