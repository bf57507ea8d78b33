//! Makes a browser session.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments::{of_desk, own_schema};
use crate::proxy::ProxyWord;
use crate::{
    Arguments, Common, Desk, DeskTool, Effect, Group, Level, OpenSession, Reply, Run, SessionView, Tool, ToolResult, address, visible,
};

pub(crate) const TOOL: Tool = Tool {
    name: "start_browser",
    group: Group::Sessions,
    level: Level::Slim,
    description: "Start a browser session named sessionId (default browser-1, …). Others stay.",
    effect: Effect::Write,
    own_schema: own_schema::<StartBrowser>,
    run: Run::Desk(&Start),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StartBrowser {
    /// First page
    navigation_url: Option<String>,
    /// No window
    headless: Option<bool>,
    /// What is its own
    isolation: Option<Isolation>,
    /// Copy logins from
    from: Option<String>,
    /// socks5://user:pass@host:port
    #[schemars(with = "Option<String>")]
    proxy: Option<ProxyWord>,
}

/// The driver's isolation as a caller writes it.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Isolation {
    Context,
    Window,
    Tab,
    Browser,
}

struct Start;

#[async_trait]
impl DeskTool for Start {
    async fn run(&self, desk: &dyn Desk, common: &Common, args: Arguments) -> ToolResult {
        let args: StartBrowser = of_desk(common, &args)?;
        if let Some(name) = &common.session {
            tabmux_core::check_name(name)?;
        }
        let url = args.navigation_url.as_deref().map(|url| address::allowed_url(url, desk.domains())).transpose()?;
        let isolation = args.isolation.map(Into::into);
        let proxy = args.proxy.map(ProxyWord::read).transpose()?;
        let open = OpenSession { name: common.session.clone(), url, isolation, headless: args.headless, from: args.from, proxy };
        Ok(started(&desk.open(open).await?))
    }
}

impl From<Isolation> for tabmux_driver::Isolation {
    fn from(isolation: Isolation) -> Self {
        match isolation {
            Isolation::Context => Self::Context,
            Isolation::Window => Self::Window,
            Isolation::Tab => Self::Tab,
            Isolation::Browser => Self::Browser,
        }
    }
}

fn started(session: &SessionView) -> Reply {
    let copy = session.from.as_deref().map(|from| format!(", a copy of {}", visible::line(from))).unwrap_or_default();
    let mut text = format!("Started {} session {}{copy}.", session.kind, visible::line(&session.session_id));
    if let (Some(tab), Some(url)) = (&session.tab_id, &session.url) {
        text += &format!(" Tab {tab} is at {}.", visible::line(url));
    }
    if let Some(warning) = &session.warning {
        text += &format!("\n{warning}");
    }
    let mut reply = Reply::text(text)
        .with("sessionId", session.session_id.as_str())
        .with("sessionType", session.kind.as_str())
        .with("id", session.id.as_str())
        .with("uuid", session.uuid.as_str())
        .with("isolation", session.isolation.as_str());
    for (key, value) in [("tabId", &session.tab_id), ("url", &session.url), ("warning", &session.warning), ("from", &session.from)] {
        if let Some(value) = value {
            reply = reply.with(key, visible::line(value));
        }
    }
    reply
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_core::Code;

    use crate::OpenSession;
    use crate::testing::{TestDesk, text};

    #[tokio::test]
    async fn a_session_starts_with_what_the_call_says() {
        let desk = TestDesk::default();
        let args =
            json!({ "sessionId": "web", "navigationUrl": "https://a.test", "headless": false, "isolation": "window", "from": "work" });
        let reply = desk.call("start_browser", args).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Started browser session web, a copy of work. Tab t1 is at https://a.test/.");
        let expected = OpenSession {
            name: Some("web".into()),
            url: Some("https://a.test/".into()),
            isolation: Some(tabmux_driver::Isolation::Window),
            headless: Some(false),
            from: Some("work".into()),
            proxy: None,
        };
        assert_eq!(desk.opened(), [expected]);
        insta::assert_json_snapshot!(reply.result, @r#"
        {
          "sessionId": "web",
          "sessionType": "browser",
          "id": "sess_00000001",
          "uuid": "00000000-0000-4000-8000-000000000001",
          "isolation": "context",
          "tabId": "t1",
          "url": "https://a.test/",
          "from": "work"
        }
        "#);
    }

    #[tokio::test]
    async fn a_session_without_arguments_gets_its_name_from_the_desk() {
        let desk = TestDesk::default();
        let reply = desk.call("start_browser", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Started browser session browser-1.");
        assert_eq!(desk.opened(), [OpenSession::default()]);
    }

    #[tokio::test]
    async fn a_warning_of_the_desk_is_passed_on() {
        let desk = TestDesk::warning("5 sessions are open.");
        let reply = desk.call("start_browser", json!({})).await.unwrap();
        assert_eq!(text(&reply), "Started browser session browser-1.\n5 sessions are open.");
    }

    #[tokio::test]
    async fn a_bad_name_or_address_makes_no_session() {
        let desk = TestDesk::default();
        for (args, code) in [
            (json!({ "sessionId": "a:b" }), Code::BadArgument),
            (json!({ "sessionId": "" }), Code::BadArgument),
            (json!({ "navigationUrl": "chrome://settings" }), Code::PolicyDenied),
            (json!({ "isolation": "planet" }), Code::BadArgument),
            (json!({ "tabId": "t1" }), Code::BadArgument),
        ] {
            assert_eq!(desk.call("start_browser", args.clone()).await.unwrap_err().code, code, "{args}");
        }
        assert_eq!(desk.opened(), []);
    }
}
