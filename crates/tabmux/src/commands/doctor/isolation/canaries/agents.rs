//! What the daemon keeps apart, whatever the browser does: sessions, tabs, news and logs.

use serde_json::{Value, json};
use tabmux_core::{Code, Fault};
use tabmux_tools::TABLE;
use tabmux_wire::control::Ask;

use super::super::agent::Agent;
use super::{Canary, Judgement, Kept, NotJudged, Scene, Seen};

pub(super) const SESSIONS: Canary = Canary { name: "sessions", kept: Kept::BySession, probe: sessions };

/// Every tool that works in a session that is there already. A name is looked at first, so its other arguments do not matter.
fn tools() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|tool| tool.name).filter(|name| !["start_browser", "list_sessions", "close_all_sessions"].contains(name))
}

/// A sequence names the session for its steps, so it needs one.
fn in_session(tool: &str, session: &str) -> Value {
    match tool {
        "execute_sequence" => json!({"sessionId": session, "actions": [{"action": "list_pages"}]}),
        _ => json!({"sessionId": session}),
    }
}

/// A foreign session must not be listed, and must answer to any of its names exactly like one that never was (C17).
fn sessions(scene: &mut Scene<'_>) -> Judgement {
    let names = scene.planter.session.clone();
    let listed = scene.looker.call("list_sessions", json!({}))?;
    if names.all().iter().any(|name| listed.mentions(name)) && names.uuid != scene.looker.session.uuid {
        return Ok(Seen::Shared("list_sessions shows the other's session".into()));
    }
    for (name, made_up) in names.all().into_iter().zip([&scene.mark, "sess_00000000", "00000000-0000-4000-8000-000000000000"]) {
        for tool in tools() {
            let Err(fault) = scene.looker.call(tool, in_session(tool, name)) else {
                return Ok(Seen::Shared(format!("{tool} answers to the other's session {name}")));
            };
            let expected = scene.looker.call(tool, in_session(tool, made_up)).err();
            if !is_alike(&fault, name, expected.as_ref(), made_up) {
                return Ok(Seen::Shared(format!("{tool} tells the other's session {name} from one that never was: {fault}")));
            }
        }
    }
    for name in names.all() {
        let (kill, rename) = (Ask::Kill { session: name.into() }, Ask::Rename { session: name.into(), name: scene.mark.clone() });
        if [rename, kill, Ask::Sessions { all: true }].iter().any(|ask| scene.looker.ask(ask).is_ok()) {
            return Ok(Seen::Shared("the command line lists, renames or ends the other's session".into()));
        }
    }
    // Nothing of all that may have reached it.
    scene.planter.eval("1")?;
    Ok(Seen::Apart)
}

fn is_alike(fault: &Fault, name: &str, expected: Option<&Fault>, made_up: &str) -> bool {
    let hidden = |fault: &Fault, name: &str| (fault.code, fault.message.replace(name, "…"), fault.hint.clone());
    fault.code == Code::SessionNotFound && expected.is_some_and(|expected| hidden(expected, made_up) == hidden(fault, name))
}

pub(super) const TABS: Canary = Canary { name: "tabs", kept: Kept::BySession, probe: tabs };

/// More tabs than the other has, so that their numbers mean something to their owner only.
fn tabs(scene: &mut Scene<'_>) -> Judgement {
    let url = scene.site.url(&format!("/tab/{}", scene.mark));
    let others = scene.looker.tabs()?;
    for _ in 0..=others.len() {
        scene.planter.open_tab(&url)?;
    }
    let mut opened = scene.planter.tabs()?;
    while opened.iter().all(|tab| others.contains(tab)) && opened.len() < 20 {
        scene.planter.open_tab(&url)?;
        opened = scene.planter.tabs()?;
    }
    if scene.looker.call("list_pages", json!({}))?.mentions(&scene.mark) {
        return Ok(Seen::Shared("list_pages shows the other's tabs".into()));
    }
    let foreign = opened.iter().enumerate().filter(|(index, tab)| *index >= others.len() && !others.contains(tab));
    let (mut tried, looker) = (0, &mut *scene.looker);
    for (index, tab) in foreign {
        tried += 1;
        if let Some(how) = reached(looker, index, tab) {
            return Ok(Seen::Shared(how));
        }
    }
    if tried == 0 {
        return Err(NotJudged("both have the same tabs".into()));
    }
    if scene.planter.tabs()? != opened {
        return Ok(Seen::Shared("tabs of the other were closed".into()));
    }
    Ok(Seen::Apart)
}

/// The first call that got through to a tab the caller does not have.
fn reached(looker: &mut Agent, index: usize, tab: &str) -> Option<String> {
    let attempts = [
        ("evaluate", json!({"script": "1", "tabId": tab})),
        ("read_text", json!({"tabId": tab})),
        ("screenshot", json!({"tabId": tab})),
        ("select_page", json!({"tabId": tab})),
        ("select_page", json!({"pageIdx": index})),
        ("close_page", json!({"tabId": tab})),
        ("close_page", json!({"pageIdx": index})),
    ];
    attempts.into_iter().find_map(|(tool, args)| {
        let through = match looker.call(tool, args.clone()) {
            Ok(_) => true,
            Err(fault) => !matches!(fault.code, Code::TabNotFound | Code::TabGone),
        };
        through.then(|| format!("{tool} {args} was not refused"))
    })
}

pub(super) const NEWS: Canary = Canary { name: "news", kept: Kept::BySession, probe: news };

/// A popup, a download and then an alert, while no call runs: its owner is told with the next reply, nobody else.
fn news(scene: &mut Scene<'_>) -> Judgement {
    unasked(scene.looker)?;
    // The popup first: it needs the gesture that comes with the call, and uses it up.
    let happen = "setTimeout(() => {
        open(`/popup/${mark}`);
        const link = document.createElement('a');
        link.href = `/download/${mark}`;
        document.body.append(link);
        setTimeout(() => { link.click(); setTimeout(() => alert(mark), 200) }, 50);
    }, 0)";
    scene.planter_runs(happen)?;
    if !scene.site.is_visited(&format!("/popup/{}", scene.mark)) {
        return Err(NotJudged("no popup opened".into()));
    }
    // News that reach the wrong one are quick or they never come.
    for _ in 0..3 {
        if let Some(told) = unasked(scene.looker)? {
            return Ok(Seen::Shared(format!("it was told: {told}")));
        }
    }
    // An open alert answers the evaluation in place of its value, and says so.
    match unasked(scene.planter) {
        Ok(None) => Err(NotJudged("not even the owner was told".into())),
        _ => match unasked(scene.looker)? {
            Some(told) => Ok(Seen::Shared(format!("it was told: {told}"))),
            None => Ok(Seen::Apart),
        },
    }
}

/// What a reply says beside its answer, after a moment for it to come.
fn unasked(agent: &mut Agent) -> Result<Option<String>, NotJudged> {
    let script = "new Promise(done => setTimeout(() => done('answer'), 100))";
    let answer = agent.call("evaluate", json!({"script": script, "tabId": agent.session.tab}))?;
    let texts = answer.texts();
    let more = texts.iter().filter(|text| **text != "\"answer\"" && !text.starts_with("[sessionId: ")).copied();
    Ok(Some(more.collect::<Vec<_>>().join(" ")).filter(|told| !told.is_empty()))
}

pub(super) const LOGS: Canary = Canary { name: "logs", kept: Kept::BySession, probe: logs };

fn logs(scene: &mut Scene<'_>) -> Judgement {
    scene.planter_runs("console.log(mark); await (await fetch(`/logged/${mark}`)).text()")?;
    for (tool, how) in [("console", "the other's console"), ("network", "the other's requests")] {
        if scene.looker.call(tool, json!({"tabId": scene.looker.session.tab}))?.mentions(&scene.mark) {
            return Ok(Seen::Shared(format!("{tool} shows {how}")));
        }
        if !scene.planter.call(tool, json!({"tabId": scene.planter.session.tab}))?.mentions(&scene.mark) {
            return Err(NotJudged(format!("{tool} shows nothing to its owner either")));
        }
    }
    Ok(Seen::Apart)
}
