//! Reads what a sequence is to do, all of it before the first step runs: a sequence that cannot be right does nothing.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tabmux_core::{Code, Fault};

use super::Condition;
use crate::arguments::wrong;
use crate::tools::{assert, share_session};
use crate::{Arguments, Group, Tool, named, visible};

/// Bounds of one call. The arguments themselves are bounded by the door.
const MAX_STEPS: usize = 200;
const MAX_BRANCHES: usize = 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnError {
    #[default]
    Stop,
    Continue,
}

/// One sequence, in one session unless its steps say otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) session: Option<String>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) tool: &'static Tool,
    pub(crate) args: Arguments,
    /// The name later steps know its value by.
    pub(crate) save: Option<String>,
    /// As it was written; references in it are filled in when the step has run.
    pub(crate) expect: Option<Value>,
}

/// What `fanOut` has for each session: its name, or its name and steps of its own.
#[derive(Deserialize)]
#[serde(untagged)]
enum Spread {
    Name(String),
    Own(Own),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Own {
    session_id: String,
    actions: Option<Vec<Arguments>>,
}

/// The sequences of one call. Without `spread` it is one, in `session`.
pub(crate) fn branches(session: Option<&str>, actions: &[Arguments], spread: Option<&[Value]>) -> Result<Vec<Branch>, Fault> {
    let branches = match spread {
        None => vec![Branch { session: session.map(str::to_owned), steps: steps(actions)? }],
        Some(spread) => spread.iter().enumerate().map(|(at, one)| branch(at, one, actions)).collect::<Result<_, Fault>>()?,
    };
    let planned: usize = branches.iter().map(|branch| branch.steps.len()).sum();
    if branches.is_empty() || branches.iter().any(|branch| branch.steps.is_empty()) {
        return Err(Fault::new(
            Code::BadArgument,
            "execute_sequence was given nothing to do.",
            "Give actions: [{action: \"navigate\", url: \"…\"}, …].",
        ));
    }
    if planned > MAX_STEPS || branches.len() > MAX_BRANCHES {
        let message = format!("{planned} steps in {} sequences are too many for one call.", branches.len());
        return Err(Fault::new(Code::BadArgument, message, format!("Give at most {MAX_STEPS} steps and {MAX_BRANCHES} sessions.")));
    }
    Ok(branches)
}

fn branch(at: usize, one: &Value, actions: &[Arguments]) -> Result<Branch, Fault> {
    let name = || format!("fanOut[{at}]");
    let right = "a session's name, or {sessionId, actions}";
    match Spread::deserialize(one).map_err(|_| wrong(&name(), one, right))? {
        Spread::Name(session) => Ok(Branch { session: Some(session), steps: steps(actions)? }),
        Spread::Own(own) => Ok(Branch { session: Some(own.session_id), steps: steps(own.actions.as_deref().unwrap_or(actions))? }),
    }
}

fn steps(actions: &[Arguments]) -> Result<Vec<Step>, Fault> {
    let numbered = actions.iter().enumerate();
    numbered.map(|(at, action)| step(action.clone()).map_err(|fault| at_step(at + 1, fault))).collect()
}

fn at_step(number: usize, fault: Fault) -> Fault {
    Fault { message: format!("Step {number}: {} Nothing was run.", fault.message), ..fault }
}

fn step(mut args: Arguments) -> Result<Step, Fault> {
    let action = match args.shift_remove("action") {
        Some(Value::String(action)) => action,
        Some(other) => return Err(wrong("action", &other, "the name of a tool")),
        None => return Err(Fault::new(Code::BadArgument, "It has no action.", "Give action: the name of a tool, beside its arguments.")),
    };
    let tool = if action == assert::TOOL.name { &assert::TOOL } else { named(&action)? };
    if tool.name == share_session::TOOL.name {
        let message = "share_session cannot be a step of a sequence: its capability is shown to nobody but its caller.";
        return Err(Fault::new(Code::BadArgument, message, "Call it by itself."));
    }
    if tool.group == Group::Many {
        let message = format!("{} cannot be a step of a sequence.", tool.name);
        return Err(Fault::new(Code::BadArgument, message, "Put its steps into this sequence."));
    }
    let save = args.shift_remove("save").as_ref().map(saved_name).transpose()?;
    let expect = args.shift_remove("expect").filter(|expect| !expect.is_null());
    expect.as_ref().map(Condition::read).transpose()?;
    Ok(Step { tool, args, save, expect })
}

fn saved_name(name: &Value) -> Result<String, Fault> {
    let fits = |name: &str| {
        name.len() <= 64
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    match name.as_str() {
        Some(text) if fits(text) => Ok(text.to_owned()),
        _ => Err(wrong("save", name, "a name of letters, digits, _ and -, such as \"total\"")),
    }
}

impl Step {
    /// What it acts on, short, for the report.
    pub(crate) fn shown(&self) -> String {
        let of = |name: &str| self.args.get(name).and_then(Value::as_str).map(|text| format!(" {}", visible::short(text, 60)));
        format!("{}{}", self.tool.name, of("selector").or_else(|| of("url")).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn planned(actions: Value, spread: Option<&Value>) -> Result<Vec<Branch>, Fault> {
        let actions: Vec<Arguments> = serde_json::from_value(actions).unwrap();
        branches(Some("a"), &actions, spread.map(|spread| spread.as_array().unwrap().as_slice()))
    }

    #[test]
    fn a_sequence_that_cannot_be_right_is_refused_before_anything_runs() {
        let go = json!({ "action": "navigate", "url": "http://a.test/" });
        for (second, part) in [
            (json!({ "url": "x" }), "has no action"),
            (json!({ "action": 5 }), "Argument action is 5"),
            (json!({ "action": "navigat" }), "Unknown tool"),
            (json!({ "action": "execute_sequence", "actions": [] }), "cannot be a step"),
            (json!({ "action": "evaluate", "save": "a b" }), "Argument save"),
            (json!({ "action": "evaluate", "expect": {} }), "expect is {}"),
        ] {
            let fault = planned(json!([go, second]), None).unwrap_err();
            assert!(fault.code == Code::BadArgument && fault.message.starts_with("Step 2: ") && fault.message.contains(part), "{fault}");
            assert!(fault.message.ends_with("Nothing was run."), "{fault}");
        }
        assert!(planned(json!([]), None).unwrap_err().message.contains("nothing to do"));
        let many: Vec<_> = (0..=MAX_STEPS).map(|_| go.clone()).collect();
        assert!(planned(json!(many), None).unwrap_err().message.contains("too many"));
    }

    #[test]
    fn fan_out_takes_names_for_the_same_steps_and_objects_for_their_own() {
        let one = json!({ "action": "read_text" });
        let two = json!([{ "action": "console" }, { "action": "network" }]);
        let spread = json!(["x", { "sessionId": "y" }, { "sessionId": "z", "actions": two }]);
        let branches = planned(json!([one]), Some(&spread)).unwrap();
        let shape: Vec<_> = branches.iter().map(|branch| (branch.session.as_deref().unwrap(), branch.steps.len())).collect();
        assert_eq!(shape, [("x", 1), ("y", 1), ("z", 2)]);
        for bad in [json!([3]), json!([{ "actions": [] }]), json!([{ "sessionId": "x", "steps": [] }])] {
            assert_eq!(planned(json!([one]), Some(&bad)).unwrap_err().code, Code::BadArgument, "{bad}");
        }
        assert!(planned(json!([one]), Some(&json!([]))).is_err());
    }
}
