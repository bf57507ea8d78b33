//! What a canary is: something one agent leaves where another might find it.

use serde_json::Value;
use tabmux_core::Fault;

use super::agent::Agent;
use super::site::Site;
use super::unit::Kept;

/// One line of the table.
pub(super) struct Canary {
    pub(super) name: &'static str,
    pub(super) kept: Kept,
    pub(super) probe: fn(&mut Scene<'_>) -> Judgement,
}

/// Two agents, each on its home page, and a word that only this probe uses.
pub(super) struct Scene<'a> {
    pub(super) planter: &'a mut Agent,
    pub(super) looker: &'a mut Agent,
    pub(super) site: &'a Site,
    pub(super) mark: String,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Apart,
    /// How it was seen.
    Shared(String),
}

/// Why nothing can be said. That is never the same as kept apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotJudged(pub(super) String);

pub(super) type Judgement = Result<Seen, NotJudged>;

impl From<Fault> for NotJudged {
    fn from(fault: Fault) -> Self {
        Self(format!("[{}] {}", fault.code, fault.message))
    }
}

impl Seen {
    /// Shared where it was seen.
    pub(super) fn when(seen: bool, how: &str) -> Self {
        if seen { Self::Shared(how.to_owned()) } else { Self::Apart }
    }
}

impl Scene<'_> {
    /// For what a page can leave and see with scripts alone; `look` says whether it sees the `mark`. What its owner
    /// cannot see either, nobody was kept from.
    pub(super) fn by_script(&mut self, plant: &str, look: &str, how: &str) -> Judgement {
        self.planter.eval(&marked(plant, &self.mark))?;
        let seen = self.looker.eval(&marked(look, &self.mark))?;
        self.owner_must(look)?;
        match seen {
            Value::Bool(seen) => Ok(Seen::when(seen, how)),
            other => Err(NotJudged(format!("the page answered {other}"))),
        }
    }

    /// The planter must see its own canary, or the probe proves nothing.
    pub(super) fn owner_must(&mut self, look: &str) -> Result<(), NotJudged> {
        match self.planter.eval(&marked(look, &self.mark))? {
            Value::Bool(true) => Ok(()),
            _ => Err(NotJudged("not even its owner can see it in this browser".into())),
        }
    }

    pub(super) fn planter_runs(&mut self, script: &str) -> Result<Value, NotJudged> {
        Ok(self.planter.eval(&marked(script, &self.mark))?)
    }

    pub(super) fn looker_runs(&mut self, script: &str) -> Result<Value, NotJudged> {
        Ok(self.looker.eval(&marked(script, &self.mark))?)
    }
}

/// The body of an async function that knows its `mark`.
pub(super) fn marked(body: &str, mark: &str) -> String {
    format!("(async mark => {{ {body} }})({mark:?})")
}
