//! Runs one sequence: step after step, each a call of its own, until one fails or the time is up.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::{Map, Value};
use tabmux_core::{Code, Fault, Touch};
use tokio::time::Instant;

use super::plan::Step;
use super::{Branch, Condition, OnError};
use crate::references::{self, Found, is_code};
use crate::tools::handle_dialog;
use crate::{Arguments, Called, Content, Desk, Group, Reply, find, visible};

/// How much of the call's time is kept for looking at the page when a step fails.
const MOST_RESERVED: Duration = Duration::from_secs(2);

/// With so much time left a step waits as long for its element as it would alone.
const UNHURRIED_MS: u64 = 8000;

/// The longest value that can be saved, and the longest arguments that can come of saved values.
const MAX_SAVED_BYTES: usize = 256 * 1024;
const MAX_FILLED_BYTES: usize = 1024 * 1024;

/// The tokens that the look at the page of a failed step may take.
const LOOK_TOKENS: u32 = 400;

/// How a sequence ended.
#[derive(Debug)]
pub(crate) struct Ending {
    /// The session it was given, or else the first one it came to.
    pub(crate) session: Option<String>,
    pub(crate) done: Vec<Done>,
    pub(crate) planned: usize,
    /// The page as it was when a step failed for the first time.
    pub(crate) page: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) action: &'static str,
    /// The action and what it was about.
    pub(crate) what: String,
    pub(crate) save: Option<String>,
    pub(crate) took_ms: u64,
    pub(crate) news: Vec<String>,
    pub(crate) outcome: Result<Yield, Fault>,
}

/// What a step gave.
#[derive(Debug)]
pub(crate) struct Yield {
    pub(crate) value: Value,
    pub(crate) text: String,
    pub(crate) images: Vec<Content>,
    pub(crate) telling: Telling,
}

/// How much of a step's text is worth reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// It was asked for its text.
    Whole,
    /// It did something; its first line says what.
    FirstLine,
}

struct Sequence<'a> {
    desk: &'a dyn Desk,
    branch: &'a Branch,
    reserved: Duration,
    saved: HashMap<&'a str, Value>,
    promised: HashSet<&'a str>,
}

pub(crate) async fn run(desk: &dyn Desk, branch: &Branch, on_error: OnError) -> Ending {
    let reserved = (desk.time_left() / 10).min(MOST_RESERVED);
    let promised = branch.steps.iter().filter_map(|step| step.save.as_deref()).collect();
    let mut sequence = Sequence { desk, branch, reserved, saved: HashMap::new(), promised };
    let mut ending = Ending { session: branch.session.clone(), done: Vec::new(), planned: branch.steps.len(), page: None };
    for (at, step) in branch.steps.iter().enumerate() {
        let began = Instant::now();
        let called = sequence.call(step).await;
        let session = called.session.clone();
        let next = branch.steps.get(at + 1);
        let outcome = match called.outcome {
            Ok(reply) => sequence.take(step, reply),
            Err(fault) if next.is_some_and(|next| sequence.is_answered(step, &fault, next, session.as_deref())) => {
                Ok(Yield::of_dialog(&fault))
            }
            Err(fault) => Err(fault),
        };
        ending.session = ending.session.or_else(|| session.clone());
        let fault = outcome.as_ref().err().cloned();
        ending.done.push(Done {
            action: step.tool.name,
            what: step.shown(),
            save: step.save.clone(),
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            news: called.news,
            outcome,
        });
        if let Some(fault) = fault {
            if ending.page.is_none() {
                ending.page = sequence.look(step, &fault).await;
            }
            if on_error == OnError::Stop || sequence.left().is_zero() {
                break;
            }
        }
    }
    ending
}

impl<'a> Sequence<'a> {
    /// What steps may still take.
    fn left(&self) -> Duration {
        self.desk.time_left().saturating_sub(self.reserved)
    }

    async fn call(&self, step: &Step) -> Called {
        match self.arguments(step) {
            Ok(args) => self.desk.call(step.tool, args, self.left()).await,
            Err(fault) => Called::refused(fault),
        }
    }

    fn arguments(&self, step: &Step) -> Result<Arguments, Fault> {
        let mut args = step.args.clone();
        references::fill(step.tool, &mut args, &|argument, inside| self.find(argument, inside))?;
        if let Some(session) = &self.branch.session {
            args.entry("sessionId").or_insert_with(|| session.as_str().into());
        }
        let left = u64::try_from(self.left().as_millis()).unwrap_or(u64::MAX);
        if left == 0 {
            let hint = "Pass execute_sequence a longer timeout (ms, at most 600000), or give it fewer steps.";
            return Err(Fault::new(Code::Timeout, "The sequence's time was up before this step.", hint));
        }
        // A step that has to hurry must know, so that it can say what it waited for. A timeout that makes no sense is the tool's to refuse.
        let hurries = args.get("timeout").map_or(left < UNHURRIED_MS, |timeout| timeout.as_u64().is_some_and(|timeout| timeout > left));
        if hurries {
            args.insert("timeout".to_owned(), left.into());
        }
        let bytes = Value::Object(args.clone()).to_string().len();
        if bytes > MAX_FILLED_BYTES {
            let message = format!("With the saved values its arguments have {bytes} bytes, over {MAX_FILLED_BYTES}.");
            return Err(Fault::new(Code::BadArgument, message, "Use a part of the value: ${name.path}."));
        }
        Ok(args)
    }

    fn find(&self, argument: &str, inside: &str) -> Found {
        if let Some(secret) = inside.strip_prefix("secret:") {
            return self.desk.secret(secret).map(|value| Some(value.into()));
        }
        let (name, path) = inside.split_once('.').unwrap_or((inside, ""));
        match self.saved.get(name) {
            Some(value) => part(value, path).cloned().map(Some).ok_or_else(|| no_part(inside, value)),
            // Code has `${…}` of its own.
            None if is_code(argument) && !self.promised.contains(name) => Ok(None),
            None => Err(self.not_saved(inside)),
        }
    }

    fn not_saved(&self, inside: &str) -> Fault {
        let known: Vec<_> =
            self.branch.steps.iter().filter_map(|step| step.save.as_deref()).filter(|name| self.saved.contains_key(name)).collect();
        let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
        let message = format!("${{{inside}}} stands for nothing: no step before this one saved it. Saved so far: {known}.");
        Fault::new(Code::BadArgument, message, "Put save: \"name\" on an earlier step, or write $${…} for the text itself.")
    }

    /// Whether the step after it answers the dialog that ended this one, which has done what it was to do then. One that looks at a page, or whose value
    /// is wanted, has not given it.
    fn is_answered(&self, step: &Step, fault: &Fault, next: &Step, session: Option<&str>) -> bool {
        let Some(asks) = fault.opened.filter(|_| next.tool.name == handle_dialog::TOOL.name) else { return false };
        let gives = step.save.is_some() || step.expect.is_some() || step.tool.touch(&step.args) == Touch::Looks;
        let named = |step: &Step, argument: &str| step.args.get(argument).filter(|value| !value.is_null()).cloned();
        let home = || self.branch.session.as_deref().map(Value::from);
        let (here, there) = (named(step, "sessionId").or_else(home), named(next, "sessionId").or_else(home));
        let same_session = there.is_none() || there == here || there == session.map(Value::from);
        !gives && same_session && named(next, "tabId").is_none_or(|tab| tab == asks.to_string())
    }

    /// What the step gave, saved and checked as it asks.
    fn take(&mut self, step: &'a Step, reply: Reply) -> Result<Yield, Fault> {
        let given = Yield::of(step, reply);
        if let Some(name) = &step.save {
            let bytes = given.value.to_string().len();
            if bytes > MAX_SAVED_BYTES {
                let message = format!("The step was done, but its value has {bytes} bytes and cannot be saved as {name}.");
                return Err(Fault::new(Code::BadArgument, message, format!("Save less: at most {MAX_SAVED_BYTES} bytes.")));
            }
            self.saved.insert(name, given.value.clone());
        }
        if let Some(mut expect) = step.expect.clone() {
            references::fill_plain(&mut expect, &|inside| self.find("expect", inside))?;
            Condition::read(&expect)?.check("Its value", &given.value)?;
        }
        Ok(given)
    }

    /// Where the page is and, as far as that can be said, what it shows.
    async fn look(&self, step: &Step, fault: &Fault) -> Option<String> {
        let pointless = [Code::SessionNotFound, Code::SessionRequired, Code::SessionClosed, Code::BrowserCrashed, Code::BrowserNotFound];
        if pointless.contains(&fault.code) {
            return None;
        }
        let pages = self.peek("list_pages", step, Map::new()).await?;
        let pages = pages.structured.as_ref()?["pages"].as_array().cloned()?;
        let page = pages.iter().find(|page| page["current"] == true)?;
        let url = visible::line(page["url"].as_str()?);
        let mut seen = format!("The page was at {url} — {} ({}).", visible::quoted(page["title"].as_str()?), page["tabId"].as_str()?);
        if fault.code != Code::DialogOpen {
            let short = Map::from_iter([("budget".to_owned(), LOOK_TOKENS.into())]);
            let snapshot = self.peek("snapshot", step, short).await;
            seen.extend(snapshot.map(|snapshot| format!("\n{}", texts(&snapshot.content))));
        }
        Some(seen)
    }

    /// A look with what is left of the reserved time.
    async fn peek(&self, tool: &str, step: &Step, mut args: Arguments) -> Option<Reply> {
        let tool = find(tool)?;
        let session = step.args.get("sessionId").cloned().or_else(|| self.branch.session.clone().map(Value::from));
        args.extend(session.map(|session| ("sessionId".to_owned(), session)));
        self.desk.call(tool, args, self.desk.time_left() / 2).await.outcome.ok()
    }
}

impl Yield {
    fn of(step: &Step, mut reply: Reply) -> Self {
        let text = texts(&reply.content);
        let value = reply.result.shift_remove("value").or(reply.structured);
        let reads = matches!(step.tool.group, Group::See | Group::State) || value.is_some();
        Self {
            value: value.unwrap_or_else(|| text.clone().into()),
            images: reply.content.into_iter().filter(|content| matches!(content, Content::Image { .. })).collect(),
            text,
            telling: if reads { Telling::Whole } else { Telling::FirstLine },
        }
    }

    /// Of a step that a dialog ended, which is told here in case its answer fails.
    fn of_dialog(fault: &Fault) -> Self {
        let text = format!("A dialog opened, which the next step answers. {}", fault.message);
        Self { value: text.clone().into(), text, images: Vec::new(), telling: Telling::FirstLine }
    }
}

fn texts(content: &[Content]) -> String {
    let text = |content: &Content| if let Content::Text(text) = content { Some(text.clone()) } else { None };
    content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// `a.0.b` of a value; nothing stands for all of it.
fn part<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').filter(|key| !key.is_empty()).try_fold(value, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    })
}

fn no_part(inside: &str, value: &Value) -> Fault {
    let message = format!("${{{inside}}} stands for nothing: the value is {}.", visible::short(&value.to_string(), 200));
    Fault::new(Code::BadArgument, message, "Name a member that is there; items of a list are counted from 0.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::TestDesk;

    /// A missing element is said after the time it has alone, however much time the sequence has; what asks for more is held to what is left.
    #[test]
    fn a_step_waits_no_longer_because_it_is_in_a_sequence() {
        let actions = [
            json!({ "action": "click_element", "selector": "a" }),
            json!({ "action": "click_element", "selector": "a", "timeout": 60_000 }),
        ];
        let actions: Vec<Arguments> = actions.into_iter().map(|action| serde_json::from_value(action).unwrap()).collect();
        let branch = super::super::plan::branches(None, &actions, None).unwrap().remove(0);
        let desk = TestDesk::default();
        let sequence = |reserved| Sequence { desk: &desk, branch: &branch, reserved, saved: HashMap::new(), promised: HashSet::new() };
        let timeouts = |reserved| {
            branch.steps.iter().map(|step| sequence(reserved).arguments(step).unwrap().get("timeout").cloned()).collect::<Vec<_>>()
        };
        assert_eq!(timeouts(Duration::from_secs(2)), [None, Some(json!(28_000))]);
        assert_eq!(timeouts(Duration::from_secs(27)), [Some(json!(3000)), Some(json!(3000))]);
    }
}
