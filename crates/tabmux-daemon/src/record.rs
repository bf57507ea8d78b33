//! How what lasts is written down: the registry's records as JSON, and back. The journal keeps whole records,
//! so that replaying is only replacing, and a person can read them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tabmux_core::{
    Epoch, Identity, Kind, Loss, Persist, Phase, Scoping, Seat, Session, SessionId, Tab, TabId, TabNumber, WindowId, WindowScope,
};

use crate::grant_record::GrantRecord;

/// One journal record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    Session(SessionRecord),
    Gone(String),
    Current(CurrentRecord),
    /// An old-era HTTP client: its id, the token that made it, its `initialize` parameters.
    Http(HttpRecord),
    HttpGone(String),
    /// The daemon-wide number the next tab gets.
    NextTab(u64),
    /// What others may do with a session.
    Grant(GrantRecord),
    GrantGone(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HttpRecord {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) holder: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) initialize: Option<serde_json::Value>,
    /// Which one to forget first.
    #[serde(default)]
    pub(crate) changed_unix_ms: i64,
}

impl HttpRecord {
    pub(crate) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), holder: None, initialize: None, changed_unix_ms: 0 }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CurrentRecord {
    pub(crate) owner: String,
    pub(crate) agent: Option<String>,
    pub(crate) session: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    pub(crate) id: String,
    uuid: String,
    name: String,
    kind: String,
    owner: String,
    clone: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    phase: String,
    isolation: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    settings: String,
    context: Option<String>,
    #[serde(default)]
    made: u64,
    created_unix_ms: i64,
    epoch: u64,
    tabs: Vec<TabRecord>,
    current_tab: Option<u32>,
    next_tab: u32,
    #[serde(default)]
    windows: Vec<i64>,
    #[serde(default)]
    unscoped: bool,
    /// Former drivers: who, and what they called it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    loss: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unfinished: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TabRecord {
    id: u32,
    number: u64,
    handle: String,
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<i64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stranger: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memento: Option<String>,
}

impl Record {
    /// About how long it is when written.
    pub(crate) fn size(&self) -> u64 {
        let bytes = match self {
            Self::Session(session) => {
                let tab = |tab: &TabRecord| tab.url.len() + tab.memento.as_ref().map_or(0, String::len) + 128;
                session.tabs.iter().map(tab).sum::<usize>() + session.settings.len() + 512
            }
            Self::Http(http) => http.initialize.as_ref().map_or(0, |params| params.to_string().len()) + 256,
            Self::Grant(grant) => grant.size(),
            Self::Gone(_) | Self::Current(_) | Self::HttpGone(_) | Self::NextTab(_) | Self::GrantGone(_) => 256,
        };
        bytes as u64
    }
}

impl From<Persist> for Record {
    fn from(persist: Persist) -> Self {
        match persist {
            Persist::Session(session) => Self::Session(SessionRecord::from(&*session)),
            Persist::Gone(id) => Self::Gone(id.to_string()),
            Persist::NextTab(number) => Self::NextTab(number.0),
            Persist::Grant(shared) => Self::Grant(GrantRecord::of(&shared)),
            Persist::GrantGone(key) => Self::GrantGone(key.to_string()),
            Persist::Current { owner, agent, session } => Self::Current(CurrentRecord {
                owner: owner.to_string(),
                agent: agent.map(|agent| agent.to_string()),
                session: session.map(|id| id.to_string()),
            }),
        }
    }
}

impl From<&Session> for SessionRecord {
    fn from(session: &Session) -> Self {
        let tab = |(id, tab): (&TabId, &Tab)| TabRecord {
            id: id.0,
            number: tab.number.0,
            handle: tab.handle.to_string(),
            url: tab.url.clone(),
            window: session.windows.places.get(id).map(|window| window.0),
            stranger: session.windows.strangers.contains(id),
            memento: tab.memento.clone(),
        };
        Self {
            id: session.id.to_string(),
            uuid: session.uuid.to_string(),
            name: session.name.clone(),
            kind: session.kind.name().to_owned(),
            owner: session.owner.to_string(),
            clone: session.seat == Seat::Clone,
            source: session.source.clone(),
            phase: session.phase.name().to_owned(),
            isolation: session.isolation.clone(),
            settings: session.settings.clone(),
            context: session.context.as_deref().map(str::to_owned),
            made: session.made,
            created_unix_ms: session.created_unix_ms,
            epoch: session.epoch.0,
            tabs: session.tabs.iter().map(tab).collect(),
            current_tab: session.current_tab.map(|tab| tab.0),
            next_tab: session.next_tab,
            windows: session.windows.windows.iter().map(|window| window.0).collect(),
            unscoped: session.windows.scoping == Scoping::Off,
            former: session.former.iter().map(|(who, name)| (who.to_string(), name.clone())).collect(),
            loss: session.loss.name().to_owned(),
            unfinished: session.unfinished,
        }
    }
}

impl SessionRecord {
    /// The session this record tells of; `None` when a later version wrote something unknown to this one.
    pub(crate) fn into_session(self) -> Option<Session> {
        let strangers = self.tabs.iter().filter(|tab| tab.stranger).map(|tab| TabId(tab.id)).collect();
        let places = self.tabs.iter().filter_map(|tab| Some((TabId(tab.id), WindowId(tab.window?)))).collect();
        let tabs: BTreeMap<TabId, Tab> = self
            .tabs
            .into_iter()
            .map(|TabRecord { id, number, handle, url, memento, .. }| {
                (TabId(id), Tab { number: TabNumber(number), handle: Arc::from(handle), url, memento })
            })
            .collect();
        Some(Session {
            id: self.id.parse::<SessionId>().ok()?,
            uuid: self.uuid.parse().ok()?,
            name: self.name,
            kind: Kind::from_name(&self.kind)?,
            owner: self.owner.parse::<Identity>().ok()?,
            seat: if self.clone { Seat::Clone } else { Seat::Plain },
            source: self.source,
            phase: Phase::from_name(&self.phase)?,
            isolation: self.isolation,
            settings: self.settings,
            context: self.context.map(Arc::from),
            made: self.made,
            created_unix_ms: self.created_unix_ms,
            epoch: Epoch(self.epoch),
            tabs,
            current_tab: self.current_tab.map(TabId),
            next_tab: self.next_tab,
            windows: WindowScope {
                scoping: if self.unscoped { Scoping::Off } else { Scoping::Windows },
                windows: self.windows.into_iter().map(WindowId).collect::<BTreeSet<_>>(),
                places,
                strangers,
                full: BTreeSet::new(),
            },
            former: self.former.into_iter().filter_map(|(who, name)| Some((who.parse().ok()?, name))).collect(),
            loss: Loss::from_name(&self.loss)?,
            unfinished: self.unfinished,
        })
    }
}

/// Everything that lasts, put together from a snapshot and the records after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lasting {
    pub(crate) sessions: BTreeMap<String, SessionRecord>,
    pub(crate) currents: Vec<CurrentRecord>,
    pub(crate) http: BTreeMap<String, HttpRecord>,
    #[serde(default)]
    pub(crate) next_tab: u64,
    #[serde(default)]
    pub(crate) grants: BTreeMap<String, GrantRecord>,
}

impl Lasting {
    pub(crate) fn apply(&mut self, record: Record) {
        match record {
            Record::Session(session) => {
                self.sessions.insert(session.id.clone(), session);
            }
            Record::Gone(id) => {
                self.sessions.remove(&id);
            }
            Record::Current(current) => {
                self.currents.retain(|other| (&other.owner, &other.agent) != (&current.owner, &current.agent));
                if current.session.is_some() {
                    self.currents.push(current);
                }
            }
            Record::Http(http) => {
                self.http.insert(http.id.clone(), http);
            }
            Record::HttpGone(id) => {
                self.http.remove(&id);
            }
            Record::NextTab(number) => self.next_tab = number,
            Record::Grant(grant) => {
                self.grants.insert(grant.key.clone(), grant);
            }
            Record::GrantGone(key) => {
                self.grants.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        Session {
            id: SessionId(7),
            uuid: tabmux_core::Uuid::from_random(42),
            name: "web".into(),
            kind: Kind::Ios,
            owner: Identity::Token("ci".into()),
            seat: Seat::Clone,
            source: Some("profile:work".into()),
            phase: Phase::Closing,
            isolation: "window".into(),
            settings: "{\"headless\":true}".into(),
            context: Some("ctx-1".into()),
            made: 12,
            created_unix_ms: 1_700_000_000_000,
            epoch: Epoch(3),
            tabs: BTreeMap::from([(
                TabId(2),
                Tab { number: TabNumber(9), handle: "page-1".into(), url: "https://a.test/".into(), memento: Some("m".into()) },
            )]),
            current_tab: Some(TabId(2)),
            next_tab: 3,
            windows: WindowScope {
                scoping: Scoping::Off,
                windows: BTreeSet::from([WindowId(4)]),
                places: BTreeMap::from([(TabId(2), WindowId(4))]),
                strangers: BTreeSet::from([TabId(2)]),
                full: BTreeSet::new(),
            },
            former: vec![(Identity::Secret("ab".into()), "old".into())],
            loss: Loss::Untold,
            unfinished: true,
        }
    }

    #[test]
    fn a_session_reads_back_from_its_record_in_full() {
        let record = SessionRecord::from(&session());
        let text = serde_json::to_string(&record).unwrap();
        let read: SessionRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(read.into_session(), Some(session()));
    }

    #[test]
    fn later_records_replace_earlier_ones() {
        let mut lasting = Lasting::default();
        let record = SessionRecord::from(&session());
        lasting.apply(Record::Session(record.clone()));
        lasting.apply(Record::Session(SessionRecord { name: "other".into(), ..record.clone() }));
        assert_eq!(lasting.sessions[&record.id].name, "other");
        let current = |session: Option<&str>| {
            Record::Current(CurrentRecord { owner: "operator".into(), agent: None, session: session.map(str::to_owned) })
        };
        lasting.apply(current(Some("sess_00000001")));
        lasting.apply(current(Some("sess_00000002")));
        assert_eq!(lasting.currents.len(), 1);
        lasting.apply(current(None));
        lasting.apply(Record::Gone(record.id));
        assert_eq!(lasting, Lasting::default());
    }
}
