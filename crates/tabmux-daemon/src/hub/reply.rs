//! What is added to every tool's answer, once for all tools: news first, the session where it was picked for
//! the caller (S0.23, S0.24), how many calls were ahead (C3), and the data for programs.

use std::sync::Arc;

use serde_json::{Map, Value};
use tabmux_core::{Admitted, Fault, Session};
use tabmux_mcp::ToolAnswer;
use tabmux_tools::{Called, Content, Reply, ToolResult};

use super::Hub;
use crate::session::Work;
use crate::settings::SessionInfo;

/// What a call came to, before it is put into the words of one answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) outcome: ToolResult,
    pub(super) result: Map<String, Value>,
    news: Vec<String>,
    notes: Vec<String>,
    /// The session, where the caller must be told which one it was.
    session: Option<String>,
}

impl Answer {
    fn new(outcome: ToolResult, result: Map<String, Value>) -> Self {
        Self { outcome, result, news: Vec::new(), notes: Vec::new(), session: None }
    }

    pub(super) fn refused(fault: Fault) -> Self {
        Self::new(Err(fault), Map::new())
    }

    pub(super) fn add_news(&mut self, mut news: Vec<String>) {
        self.news.append(&mut news);
    }

    /// As the caller reads it: news first, what is to be added last. Programs find both by name as well.
    pub(super) fn framed(mut self) -> ToolAnswer {
        for (name, said) in [("news", &self.news), ("notes", &self.notes)] {
            if self.outcome.is_ok() && !said.is_empty() {
                self.result.insert(name.into(), said.clone().into());
            }
        }
        let footer: Vec<String> = self.notes.into_iter().chain(self.session).collect();
        ToolAnswer { outcome: self.outcome.map(|reply| framed(&self.news, reply, &footer)), result: self.result }
    }

    /// As the sequence that made the call reads it.
    pub(super) fn called(mut self) -> Called {
        let session = self.result.get("sessionId").and_then(Value::as_str).map(str::to_owned);
        self.news.append(&mut self.notes);
        Called { outcome: self.outcome.map(|reply| Reply { result: self.result, ..reply }), session, news: self.news }
    }
}

/// `facts` go out whether the call succeeded or not.
pub(super) fn of_desk(outcome: ToolResult, mut facts: Map<String, Value>) -> Answer {
    let outcome = outcome.map(|mut reply| {
        facts.append(&mut reply.result);
        reply
    });
    Answer::new(outcome, facts)
}

/// `made` is there when a session was made for this call; `take_news` is asked when there is a reply to put them first in.
pub(super) fn of_page(
    hub: &Arc<Hub>,
    outcome: Result<Work, Fault>,
    admitted: &Admitted,
    made: Option<String>,
    take_news: impl FnOnce() -> Vec<String>,
) -> Answer {
    let mut result = Map::new();
    let described = hub.look(|registry| registry.session(admitted.session).map(|session| describe(session, &mut result)));
    let mut work = match outcome {
        Ok(work) => work,
        Err(fault) => return Answer::new(Err(fault), result),
    };
    result.append(&mut work.reply.result);
    if let Some(tab) = work.tab {
        result.entry("tabId").or_insert_with(|| tab.to_string().into());
    }
    if let Some(url) = work.url {
        result.entry("url").or_insert_with(|| url.into());
    }
    let shown = match hub.settings.session_info {
        SessionInfo::Auto => admitted.picked_for_caller || made.is_some(),
        SessionInfo::Always => true,
        SessionInfo::Never => false,
    };
    let mut notes: Vec<String> = made.filter(|warning| !warning.is_empty()).into_iter().collect();
    if admitted.ahead > 0 {
        result.insert("queuedBehind".into(), admitted.ahead.into());
        notes.push(format!("(Waited behind {} other call{} of this session.)", admitted.ahead, if admitted.ahead == 1 { "" } else { "s" }));
    }
    Answer { outcome: Ok(work.reply), result, news: take_news(), notes, session: described.filter(|_| shown) }
}

fn describe(session: &Session, result: &mut Map<String, Value>) -> String {
    result.insert("sessionId".into(), session.handle().into());
    result.insert("id".into(), session.id.to_string().into());
    result.insert("uuid".into(), session.uuid.to_string().into());
    result.insert("sessionType".into(), session.kind.name().into());
    format!("[sessionId: {}, sessionType: {}]", session.handle(), session.kind.name())
}

fn framed(news: &[String], mut reply: Reply, footer: &[String]) -> Reply {
    if !news.is_empty() {
        reply.content.insert(0, Content::Text(news.join("\n")));
    }
    if !footer.is_empty() {
        reply.content.push(Content::Text(footer.join("\n")));
    }
    reply
}
