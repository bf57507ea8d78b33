//! Gives others a right to a session: a capability, said once, that whoever holds it passes as `sessionId`. Also shows and ends
//! what was given. Whether the caller may, and what a holder may then do, is decided where all calls are.

use std::collections::BTreeSet;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_core::{Code, Fault, Right, Share, Touch, Uses};
use tabmux_driver::Domain;

use crate::arguments::{of_desk, own_schema, wrong};
use crate::reply::counted;
use crate::{Arguments, Common, Desk, DeskTool, Effect, GrantView, Group, Level, Reply, Run, Tool, ToolResult, named, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "share_session",
    group: Group::Sessions,
    level: Level::Full,
    description: "Get a capability that others pass as sessionId.",
    effect: Effect::Write,
    own_schema: own_schema::<ShareSession>,
    run: Run::Desk(&Give),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShareSession {
    /// Default: read
    mode: Option<Mode>,
    /// Only these
    tools: Option<Vec<String>>,
    /// Only these sites
    domains: Option<Vec<String>>,
    /// 30s, 10m, 2h
    #[schemars(with = "Option<String>")]
    ttl: Option<Value>,
    /// For one call
    once: Option<bool>,
    /// Show grants
    list: Option<bool>,
    /// Grant id, or all
    revoke: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Read,
    Act,
    HandOver,
}

const MAX_DOMAINS: usize = 100;

struct Give;

#[async_trait]
impl DeskTool for Give {
    async fn run(&self, desk: &dyn Desk, common: &Common, args: Arguments) -> ToolResult {
        let args: ShareSession = of_desk(common, &args)?;
        let session = common.session.as_deref();
        let gives = args.mode.is_some() || args.tools.is_some() || args.domains.is_some() || args.ttl.is_some() || args.once.is_some();
        match (args.list.unwrap_or_default(), &args.revoke) {
            (false, None) => give(desk, session, args).await,
            (true, None) if !gives => desk.shares(session).await.map(|grants| listed(&grants)),
            (false, Some(which)) if !gives => desk.revoke(session, which).await.map(|grants| revoked(&grants)),
            _ => {
                let message = "share_session was told several things at once.";
                Err(Fault::new(Code::BadArgument, message, "Give list alone, revoke alone, or neither."))
            }
        }
    }
}

async fn give(desk: &dyn Desk, session: Option<&str>, args: ShareSession) -> ToolResult {
    let right = match args.mode.unwrap_or_default() {
        Mode::Read => Right::Read,
        Mode::Act => Right::Act,
        Mode::HandOver => Right::HandOver,
    };
    // An empty list would mean nothing to one reader and everything to another.
    for (name, list) in [("tools", &args.tools), ("domains", &args.domains)] {
        if list.as_ref().is_some_and(Vec::is_empty) {
            return Err(wrong(name, &json!([]), "a list with something in it; leave it out for no limit"));
        }
    }
    let share = Share {
        right,
        tools: args.tools.as_deref().map(|tools| checked_tools(tools, right)).transpose()?,
        domains: checked_domains(args.domains.unwrap_or_default())?,
        ttl_ms: args.ttl.as_ref().map(milliseconds).transpose()?,
        uses: if args.once.unwrap_or_default() { Uses::Once } else { Uses::Many },
        created_unix_ms: 0,
    };
    let (capability, grant) = desk.share(session, share).await?;
    let text = format!(
        "{}\n{capability}\nWhoever passes this as sessionId, or is started with it as TABMUX_TOKEN, has this. It is not shown again; share_session{{revoke: \"{}\"}} ends it.",
        line(&grant),
        grant.grant
    );
    let mut reply = Reply::text(text).with("capability", capability);
    if let Value::Object(members) = json!(grant) {
        reply.result.extend(members);
    }
    Ok(reply)
}

/// Names of tools, each of which such a grant can be for.
fn checked_tools(tools: &[String], right: Right) -> Result<BTreeSet<String>, Fault> {
    for name in tools {
        let tool = named(name)?;
        let touch = tool.touch(&Arguments::new());
        if tool.group == Group::Sessions || touch == Touch::Governs {
            let message = format!("{} is about the session itself, and a grant is for its pages.", tool.name);
            return Err(Fault::new(Code::BadArgument, message, "Leave that tool out."));
        }
        if right == Right::Read && touch != Touch::Looks {
            let message = format!("{} acts, and the mode read is for looking.", tool.name);
            return Err(Fault::new(Code::BadArgument, message, "Use the mode act, or leave that tool out."));
        }
    }
    Ok(tools.iter().cloned().collect())
}

fn checked_domains(domains: Vec<String>) -> Result<Vec<String>, Fault> {
    let right = "a host such as example.com (with what is below it), *.example.com, or an IP address";
    let odd = domains.iter().enumerate().find(|(_, domain)| Domain::parse(domain).is_none());
    match odd {
        Some((at, domain)) => Err(wrong(&format!("domains[{at}]"), &json!(domain), right)),
        None if domains.len() > MAX_DOMAINS => Err(wrong("domains", &json!(domains.len()), &format!("at most {MAX_DOMAINS} sites"))),
        None => Ok(domains),
    }
}

/// As settings have durations: `500ms`, `30s`, `10m`, `2h`; a bare number is seconds.
fn milliseconds(value: &Value) -> Result<u64, Fault> {
    let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[digits..] {
        "ms" => Some(1),
        "" | "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let ms = text[..digits].parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit)).filter(|ms| *ms > 0);
    ms.ok_or_else(|| wrong("ttl", value, "how long, for example \"30s\", \"10m\" or \"2h\""))
}

fn listed(grants: &[GrantView]) -> Reply {
    let lines = grants.iter().map(|grant| format!("\n{}", line(grant)));
    let text = if grants.is_empty() { "Nothing is shared.".to_owned() } else { counted(grants.len(), "grant") };
    Reply::text(text + &lines.collect::<String>()).structured(json!({ "grants": grants }))
}

fn revoked(grants: &[GrantView]) -> Reply {
    let lines = grants.iter().map(|grant| format!("\n{}", line(grant)));
    let text = format!("Revoked {}, with all that came from them.", counted(grants.len(), "grant"));
    Reply::text(text + &lines.collect::<String>()).structured(json!({ "revoked": grants }))
}

fn line(grant: &GrantView) -> String {
    let mut limits = vec![grant.mode.replace('_', " ")];
    limits.extend(grant.tools.as_ref().map(|tools| format!("tools {}", tools.join(", "))));
    limits.extend(grant.domains.iter().map(|domains| format!("domains {}", domains.join(", "))));
    limits.extend(grant.left_ms.map(|ms| format!("for {}", time(ms))));
    limits.extend(grant.once.then(|| "once".to_owned()));
    format!("{} session {}: {}", grant.grant, visible::line(&grant.session_id), visible::line(&limits.join("; ")))
}

fn time(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}s", ms / 1_000),
        60_000..3_600_000 => format!("{}m", ms / 60_000),
        _ => format!("{}h", ms / 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestDesk, text};

    #[tokio::test]
    async fn a_capability_is_said_with_all_that_it_is_for() {
        let desk = TestDesk::default();
        let args = json!({
            "sessionId": "web", "mode": "act", "tools": ["snapshot", "click_element"], "domains": ["a.test"], "ttl": "10m", "once": true
        });
        let reply = desk.call("share_session", args).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"
        g_00000001 session web: act; tools click_element, snapshot; domains a.test; for 10m; once
        tmx_secret
        Whoever passes this as sessionId, or is started with it as TABMUX_TOKEN, has this. It is not shown again; share_session{revoke: "g_00000001"} ends it.
        "#);
        assert_eq!((&reply.result["capability"], &reply.result["left_ms"]), (&json!("tmx_secret"), &json!(600_000)));
    }

    #[tokio::test]
    async fn what_was_given_is_listed_and_revoked() {
        let desk = TestDesk::default();
        assert_eq!(text(&desk.call("share_session", json!({ "list": true })).await.unwrap()), "Nothing is shared.");
        for mode in ["read", "hand_over"] {
            desk.call("share_session", json!({ "mode": mode, "sessionId": "web" })).await.unwrap();
        }
        let reply = desk.call("share_session", json!({ "list": true, "once": null })).await.unwrap();
        assert_eq!(text(&reply), "2 grants\ng_00000001 session web: read\ng_00000002 session web: hand over");
        let reply = desk.call("share_session", json!({ "revoke": "g_00000002" })).await.unwrap();
        assert_eq!(text(&reply), "Revoked 1 grant, with all that came from them.\ng_00000002 session web: hand over");
        assert_eq!(reply.structured.unwrap()["revoked"][0]["mode"], "hand_over");
    }

    #[tokio::test]
    async fn what_cannot_be_is_refused() {
        let desk = TestDesk::default();
        for args in [
            json!({ "mode": "write" }),
            json!({ "tools": ["snapshoot"] }),
            json!({ "tools": ["click_element"] }),
            json!({ "mode": "act", "tools": ["migrate"] }),
            json!({ "mode": "act", "tools": ["close_session"] }),
            json!({ "domains": ["http://a.test/"] }),
            json!({ "domains": [] }),
            json!({ "mode": "act", "tools": [] }),
            json!({ "ttl": "soon" }),
            json!({ "ttl": 0 }),
            json!({ "ttl": "99999999999999999999h" }),
            json!({ "list": true, "revoke": "all" }),
            json!({ "list": true, "mode": "act" }),
            json!({ "revoke": "all", "once": true }),
        ] {
            assert_eq!(desk.call("share_session", args.clone()).await.unwrap_err().code, Code::BadArgument, "{args}");
        }
        assert_eq!(text(&desk.call("share_session", json!({ "list": true })).await.unwrap()), "Nothing is shared.");
    }

    #[test]
    fn every_way_to_say_how_long_is_read() {
        for (value, ms) in [
            (json!("500ms"), 500),
            (json!("30s"), 30_000),
            (json!(7), 7_000),
            (json!("7"), 7_000),
            (json!("2h"), 7_200_000),
            (json!("1d"), 86_400_000),
        ] {
            assert_eq!(milliseconds(&value).unwrap(), ms, "{value}");
        }
    }
}
