//! How a grant is written down. What is left of its time is written with when that was, so that neither a crash nor a restart
//! lengthens it: the next daemon takes off what the wall's clock says has passed, and if that was set back, nothing.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tabmux_core::{Grant, Right, Shared, Uses};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GrantRecord {
    /// The capability's hash.
    pub(crate) key: String,
    session: String,
    giver: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    mode: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    domains: Vec<Vec<String>>,
    once: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken_by: Option<String>,
    created_unix_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left_ms: Option<u64>,
    written_unix_ms: i64,
}

impl GrantRecord {
    pub(crate) fn of(shared: &Shared) -> Self {
        let grant = &shared.grant;
        Self {
            key: grant.key.to_string(),
            session: grant.session.to_string(),
            giver: grant.giver.to_string(),
            parent: grant.parent.map(|parent| parent.to_string()),
            mode: grant.right.name().to_owned(),
            tools: grant.tools.as_ref().map(|tools| tools.iter().cloned().collect()),
            domains: grant.domains.clone(),
            once: grant.uses == Uses::Once,
            taken_by: grant.taken_by.as_ref().map(ToString::to_string),
            created_unix_ms: grant.created_unix_ms,
            left_ms: shared.left_ms,
            written_unix_ms: crate::clock::unix_ms(),
        }
    }

    /// About how long it is when written.
    pub(crate) fn size(&self) -> usize {
        let texts = self.tools.iter().flatten().chain(self.domains.iter().flatten());
        texts.map(|text| text.len() + 4).sum::<usize>() + 512
    }

    /// The grant with what is left of it now; `None` when a later version wrote something unknown to this one, which then allows nothing.
    pub(crate) fn into_shared(self, now_unix_ms: i64) -> Option<Shared> {
        let passed = u64::try_from(now_unix_ms.saturating_sub(self.written_unix_ms)).unwrap_or_default();
        let grant = Grant {
            key: self.key.parse().ok()?,
            session: self.session.parse().ok()?,
            giver: self.giver.parse().ok()?,
            parent: self.parent.map(|parent| parent.parse()).transpose().ok()?,
            right: Right::from_name(&self.mode)?,
            tools: self.tools.map(|tools| tools.into_iter().collect()),
            domains: self.domains,
            uses: if self.once { Uses::Once } else { Uses::Many },
            taken_by: self.taken_by.map(|taker| taker.parse()).transpose().ok()?,
            created_unix_ms: self.created_unix_ms,
        };
        Some(Shared { grant: Arc::new(grant), left_ms: self.left_ms.map(|left| left.saturating_sub(passed)) })
    }
}

#[cfg(test)]
mod tests {
    use tabmux_core::{GrantKey, Identity, SessionId};

    use super::*;

    #[test]
    fn a_grant_reads_back_in_full_and_its_time_goes_on_without_a_daemon() {
        let grant = Grant {
            key: GrantKey([3; 32]),
            session: SessionId(7),
            giver: Identity::Token("ci".into()),
            parent: Some(GrantKey([4; 32])),
            right: Right::HandOver,
            tools: Some(["snapshot".to_owned()].into()),
            domains: vec![vec!["a.test".into()]],
            uses: Uses::Once,
            taken_by: Some(Identity::Grant(GrantKey([3; 32]))),
            created_unix_ms: 5,
        };
        let shared = Shared { grant: Arc::new(grant), left_ms: Some(1000) };
        let text = serde_json::to_string(&GrantRecord::of(&shared)).unwrap();
        let read = || serde_json::from_str::<GrantRecord>(&text).unwrap();
        let written = read().written_unix_ms;
        for (passed, left) in [(0, 1000), (400, 600), (5000, 0), (-5000, 1000)] {
            assert_eq!(read().into_shared(written + passed), Some(Shared { left_ms: Some(left), ..shared.clone() }), "{passed}");
        }
        let unknown = GrantRecord { mode: "lend".into(), ..read() };
        assert_eq!(unknown.into_shared(written), None);
    }
}
