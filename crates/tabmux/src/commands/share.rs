//! `tabmux share`: the tool share_session for people. Only the capability goes to standard output.

use serde_json::{Map, Value, json};
use tabmux_wire::control::Ask;

use super::call::text_of;
use super::format::show;
use crate::cli::Share;
use crate::control::Control;
use crate::failure::Outcome;
use crate::output::{self, Form};
use crate::settings::Config;

pub(super) fn run(config: &Config, form: Form, share: Share) -> Outcome {
    let gives = !share.list && share.revoke.is_none();
    let reply = Control::open(config)?.ask(&Ask::Call { tool: "share_session".into(), args: arguments(share) })?;
    if !gives {
        return output::report(form, &reply, || text_of(&reply));
    }
    let result = &reply["result"];
    if form == Form::Text {
        let grant = show(&result["grant"]);
        output::note(&format!(
            "Pass it as sessionId, or set TABMUX_TOKEN. It is not shown again; `tabmux share --revoke {grant}` ends it."
        ));
    }
    output::report(form, &reply, || show(&result["capability"]))
}

fn arguments(share: Share) -> Map<String, Value> {
    let many = |values: Vec<String>| if values.is_empty() { Value::Null } else { json!(values) };
    let flag = |given: bool| if given { json!(true) } else { Value::Null };
    let given = [
        ("sessionId", share.target.filter(|name| !name.is_empty()).into()),
        ("mode", share.mode.into()),
        ("tools", many(share.tools)),
        ("domains", many(share.domains)),
        ("ttl", share.ttl.into()),
        ("once", flag(share.once)),
        ("list", flag(share.list)),
        ("revoke", share.revoke.into()),
    ];
    given.into_iter().filter(|(_, value): &(_, Value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)).collect()
}
