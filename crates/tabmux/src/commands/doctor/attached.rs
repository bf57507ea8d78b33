//! The browser that the running daemon is attached to, whatever this command would attach to itself. It is looked at as before an attaching: nobody
//! is asked anything.

use serde_json::Value;
use tabmux_daemon::{Found, find_browser};

use super::{Check, Problem};
use crate::commands::format::show;
use crate::settings::Config;

/// Nothing where no daemon runs, or one that starts its browsers itself.
pub(super) fn check(config: &Config, status: Option<&Value>) -> Option<Check> {
    let status = status?;
    let wanted = status["attach"].as_str()?;
    let mut settings = config.settings.clone();
    settings.attach.endpoint = Some(wanted.to_owned());
    let finding = match find_browser(&settings) {
        Ok(Some(Found::Running { endpoint, .. })) => Ok(found(status, &endpoint)),
        // With an endpoint nothing else is found.
        Ok(Some(Found::Installed { .. }) | None) => Ok(format!("the daemon attaches to {wanted}")),
        Err(fault) => Err(Problem {
            message: format!(
                "The daemon is to use {}, which does not answer. {}",
                attached(status).unwrap_or_else(|| wanted.to_owned()),
                fault.message
            ),
            cure: fault.hint,
        }),
    };
    Some(Check { what: "attached browser", finding })
}

fn found(status: &Value, endpoint: &str) -> String {
    let link = browsers(status).find(|browser| browser["endpoint"] == endpoint);
    match link.map(|link| &link["waits_for"]) {
        Some(Value::Null) => format!("{endpoint}; the daemon is attached to it, and it answers"),
        Some(waits) => format!("{endpoint}; it answers, and the daemon waits for {}", show(waits)),
        None => format!("{endpoint}; it answers, and the daemon attaches to it with the next call"),
    }
}

/// Where the one is that it is attached to, which says more than a port.
fn attached(status: &Value) -> Option<String> {
    browsers(status).find_map(|browser| browser["endpoint"].as_str().map(str::to_owned))
}

fn browsers(status: &Value) -> impl Iterator<Item = &Value> {
    let browsers = status["browsers"].as_array().map_or(&[][..], Vec::as_slice);
    browsers.iter().filter(|browser| browser["kind"] == "attached")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_browser_is_told_as_attached_to_only_where_the_daemon_is() {
        let told = |browsers: Value| found(&json!({"browsers": browsers}), "ws://h:1/a");
        let link = json!({"kind": "attached", "endpoint": "ws://h:1/a"});
        let mut waiting = link.clone();
        waiting["waits_for"] = json!("its user, who must allow the connection");
        let other = json!({"kind": "attached", "endpoint": "ws://h:2/b"});
        let next = "ws://h:1/a; it answers, and the daemon attaches to it with the next call";
        assert_eq!(told(json!([other, link])), "ws://h:1/a; the daemon is attached to it, and it answers");
        assert_eq!(told(json!([waiting])), "ws://h:1/a; it answers, and the daemon waits for its user, who must allow the connection");
        assert_eq!((told(json!([other])), told(json!([]))), (next.to_owned(), next.to_owned()));
    }
}
