//! Forks: one live session into several copies with its pages, from one reading of it; and its state, for a profile.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Map, Value, json};
use tabmux_core::{Code, Fault, Opened};
use tabmux_driver::Isolation;
use tabmux_tools::{Forked, PageTool, Run, SessionView};
use tokio::time::Instant;

use super::desk::{Undo, view};
use super::{CallerOf, Hub, State};
use crate::profiles::Taken;
use crate::session::{Fork, Making};
use crate::sources::{self, Whence};

/// How long making all copies, or reading all of a session, may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// More than any limit on copies that makes sense.
const MOST: u32 = 100;

/// What is wanted.
#[derive(Debug)]
pub(crate) struct ForkOf {
    /// The session; none for the current one.
    pub(crate) session: Option<String>,
    pub(crate) count: u32,
    /// What the copies' names begin with; none for the session's own name.
    pub(crate) prefix: Option<String>,
}

/// What there is a seat for, and why not for more.
struct Reserved {
    copies: Vec<Opened>,
    refused: Option<Fault>,
    fork: Arc<Fork>,
}

impl Hub {
    /// Makes copies that belong to whoever asks. What was made stays, also where seats ran out: then the answer says both.
    pub(crate) async fn fork(self: &Arc<Self>, caller: &CallerOf, wanted: ForkOf) -> Result<Forked, Fault> {
        if !(1..=MOST).contains(&wanted.count) {
            let message = format!("{} copies cannot be made at once.", wanted.count);
            return Err(Fault::new(Code::BadArgument, message, format!("Ask for 1 to {MOST}.")));
        }
        let Reserved { copies: reserved, refused, fork } = {
            let mut state = self.lock();
            let reserved = self.reserve_copies(&mut state, caller, &wanted);
            let safe = self.carry_out(&mut state);
            drop(state);
            self.watch_over(safe);
            reserved?
        };
        // Given up halfway, all of them go again.
        let mut undo: Vec<Undo<'_>> = reserved.iter().map(|copy| Undo { hub: self, session: Some(copy.session) }).collect();
        let deadline = Instant::now() + PATIENCE;
        let opening = join_all(reserved.into_iter().map(|copy| self.open_copy(caller, copy, deadline)));
        // Told that they are made, one may log out in the source or close it.
        let (made, ()) = futures::join!(opening, fork.is_whole());
        for (undo, made) in undo.iter_mut().zip(&made) {
            undo.session = undo.session.filter(|_| made.is_err());
        }
        let (made, failed): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
        let sessions: Vec<SessionView> = made.into_iter().flatten().collect();
        let fault = failed.into_iter().find_map(Result::err).or(refused);
        match fault {
            Some(fault) if sessions.is_empty() => Err(fault),
            fault => {
                let said = |fault: &Fault| format!("{} of {} copies were made: {}", sessions.len(), wanted.count, fault.message);
                let missing = fault.map(|fault| Fault { message: said(&fault), ..fault });
                Ok(Forked { sessions, missing })
            }
        }
    }

    /// Takes as many seats as there are, under one lock. The first refusal ends it.
    fn reserve_copies(self: &Arc<Self>, state: &mut State, caller: &CallerOf, wanted: &ForkOf) -> Result<Reserved, Fault> {
        let id = state.registry.resolve(caller.as_caller(), wanted.session.as_deref(), self.clock.now())?;
        let source = state.sessions.get(&id).cloned().ok_or_else(super::desk::closed)?;
        let name = state.registry.session(id).map(|session| session.name.clone()).unwrap_or_default();
        let mut spec = source.spec();
        if spec.isolation.shares_profile() {
            spec.isolation = Isolation::Context;
        }
        (spec.source, spec.footprint) = (None, tabmux_driver::Footprint::default());
        self.browsers.check(&spec)?;
        let fork = Fork::of(source);
        let prefix = wanted.prefix.as_deref().unwrap_or(&name);
        let (mut reserved, mut number) = (Vec::new(), 0);
        while reserved.len() < wanted.count as usize {
            number += 1;
            let making =
                Making { spec: spec.clone(), whence: Some(Whence::Session { id, name: name.clone() }), fork: Some(Arc::clone(&fork)) };
            match self.seat_locked(state, caller, Some(&format!("{prefix}-{number}")), making) {
                Ok(opened) => reserved.push(opened),
                Err(fault) if fault.code == Code::SessionExists => {}
                Err(fault) if reserved.is_empty() => return Err(fault),
                Err(fault) => return Ok(Reserved { copies: reserved, refused: Some(fault), fork }),
            }
        }
        Ok(Reserved { copies: reserved, refused: None, fork })
    }

    async fn open_copy(self: &Arc<Self>, caller: &CallerOf, copy: Opened, deadline: Instant) -> Result<SessionView, Fault> {
        let id = copy.session;
        self.run_inside(caller, copy.uuid, looking()?, Map::new(), deadline).await?;
        let now = self.clock.moment();
        let view = self.look(|registry| registry.listing(id).map(|listed| view(listed, now, self.browsers.name())));
        let news = self.handle(id).map(|handle| handle.news()).unwrap_or_default();
        let warning = (!news.is_empty()).then(|| news.join(" "));
        view.map(|view| SessionView { warning, ..view }).ok_or_else(super::desk::closed)
    }

    /// Writes what a session holds into a profile. The door lets only the operator ask.
    pub(crate) async fn save_profile(
        self: &Arc<Self>,
        caller: &CallerOf,
        session: Option<&str>,
        name: String,
        new: New,
    ) -> Result<Value, Fault> {
        crate::profiles::check_name(&name)?;
        let (found, safe) = self.decide(|registry, now| registry.resolve(caller.as_caller(), session, now));
        self.settled(safe).await;
        let id = found?;
        let whence = self.look(|registry| registry.session(id).map(|session| format!("session:{}", session.handle()))).unwrap_or_default();
        let handle = self.handle(id).ok_or_else(super::desk::closed)?;
        let read = async {
            let source = handle.source().await?;
            sources::state_of(&*source).await
        };
        let (state, losses) = tokio::time::timeout(PATIENCE, read).await.map_err(|_| super::timed_out())??;
        let profiles = self.profiles();
        let write = move || match new {
            New::Must => profiles.create(&name, &state, Some(Taken::From(&whence))),
            New::May => profiles.save(&name, &state, Taken::From(&whence)),
        };
        let profile = tokio::task::spawn_blocking(write).await.map_err(|_| self.panicked())??;
        Ok(json!({"profile": profile, "losses": losses}))
    }
}

/// Copies as the command line gets them.
pub(crate) fn told(asked: u32, forked: &Forked) -> Value {
    let mut answer = json!({"sessions": forked.sessions, "asked": asked});
    if let Some(fault) = &forked.missing {
        answer["error"] = json!({"code": fault.code.name(), "message": fault.message, "hint": fault.hint});
    }
    answer
}

/// Whether a profile that is saved may be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum New {
    Must,
    May,
}

/// A tool that changes nothing: the first call of a session opens it.
fn looking() -> Result<&'static dyn PageTool, Fault> {
    match tabmux_tools::find("list_pages").map(|tool| tool.run) {
        Some(Run::Page(tool)) => Ok(tool),
        _ => Err(Fault::new(Code::Internal, "The tool list_pages is missing.", "Please report it.")),
    }
}
