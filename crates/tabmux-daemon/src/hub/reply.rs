//! What is added to every tool's answer, once for all tools: news first, the session where it was picked for
//! the caller (S0.23, S0.24), how many calls were ahead (C3), and the data for programs.

use std::sync::Arc;

use serde_json::{Map, Value};
use tabmux_core::{Admitted, Fault, Session};
use tabmux_mcp::ToolAnswer;
use tabmux_tools::{Content, Reply, ToolResult};

use super::Hub;
use crate::session::Work;
use crate::settings::SessionInfo;

pub(super) fn of_desk(outcome: ToolResult) -> ToolAnswer {
    match outcome {
        Ok(mut reply) => {
            let result = std::mem::take(&mut reply.result);
            ToolAnswer { outcome: Ok(reply), result }
        }
        Err(fault) => ToolAnswer { outcome: Err(fault), result: Map::new() },
    }
}

/// `made` is there when a session was made for this call; `take_news` is asked when there is a reply to put them first in.
pub(super) fn of_page(
    hub: &Arc<Hub>,
    outcome: Result<Work, Fault>,
    admitted: &Admitted,
    made: Option<String>,
    take_news: impl FnOnce() -> Vec<String>,
) -> ToolAnswer {
    let mut result = Map::new();
    let described = hub.look(|registry| registry.session(admitted.session).map(|session| describe(session, &mut result)));
    let mut work = match outcome {
        Ok(work) => work,
        Err(fault) => return ToolAnswer { outcome: Err(fault), result },
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
    let mut footer: Vec<String> = Vec::new();
    if let Some(warning) = made.filter(|warning| !warning.is_empty()) {
        footer.push(warning);
    }
    if admitted.ahead > 0 {
        result.insert("queuedBehind".into(), admitted.ahead.into());
        footer.push(format!(
            "(Waited behind {} other call{} of this session.)",
            admitted.ahead,
            if admitted.ahead == 1 { "" } else { "s" }
        ));
    }
    if let Some(described) = described.filter(|_| shown) {
        footer.push(described);
    }
    ToolAnswer { outcome: Ok(framed(&take_news(), work.reply, &footer)), result }
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
