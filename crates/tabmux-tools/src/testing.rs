//! A small desk and small pages on the fake browser, so that every tool is tested through the table as the daemon
//! calls it. Ownership, queues and deadlines are the daemon's and absent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tabmux_core::{Code, Fault, TabId};
use tabmux_driver::fake::FakeBrowser;
use tabmux_driver::{Browser, Context, ContextSpec, Domains, Emulation, Page};
use tokio::task::JoinHandle;

use crate::{
    Arguments, Called, Content, Desk, Forked, GrantView, Move, OpenSession, PageRef, PageView, Pages, Reply, Run, SessionList, SessionView,
    Tool, ToolResult, common, named,
};

/// The text of a reply that has nothing else.
pub(crate) fn text(reply: &Reply) -> &str {
    let [Content::Text(text)] = &reply.content[..] else { panic!("one text: {reply:?}") };
    text
}

fn arguments(args: Value) -> Arguments {
    let Value::Object(args) = args else { panic!("an object: {args}") };
    args
}

#[derive(Default)]
pub(crate) struct TestDesk {
    state: Mutex<DeskState>,
    warning: Option<String>,
    pub(crate) domains: Domains,
}

#[derive(Default)]
struct DeskState {
    sessions: Vec<SessionView>,
    current: Option<String>,
    opened: Vec<OpenSession>,
    detached: Vec<String>,
    grants: Vec<GrantView>,
}

impl TestDesk {
    pub(crate) fn warning(warning: &str) -> Self {
        Self { warning: Some(warning.into()), ..Self::default() }
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> ToolResult {
        let mut args = arguments(args);
        let common = common(&mut args)?;
        let Tool { run: Run::Desk(desk), .. } = named(tool)? else { panic!("{tool} is a page tool") };
        desk.run(self, &common, args).await
    }

    pub(crate) fn opened(&self) -> Vec<OpenSession> {
        self.state.lock().unwrap().opened.clone()
    }

    pub(crate) fn detached(&self) -> Vec<String> {
        self.state.lock().unwrap().detached.clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.state.lock().unwrap().sessions.iter().map(|session| session.session_id.clone()).collect()
    }

    pub(crate) fn session(name: &str, number: usize) -> SessionView {
        SessionView {
            session_id: name.into(),
            id: format!("sess_{number:08x}"),
            uuid: format!("00000000-0000-4000-8000-{number:012}"),
            kind: "browser".into(),
            isolation: "context".into(),
            from: None,
            state: "active".into(),
            hint: None,
            created_at: "2026-11-15T12:00:00Z".into(),
            age_s: 61,
            last_active_at: "2026-11-15T12:01:00Z".into(),
            tabs: 0,
            memory_kb: None,
            capabilities: json!({}),
            warning: None,
            url: None,
            tab_id: None,
        }
    }
}

fn no_session(name: &str) -> Fault {
    Fault::new(Code::SessionNotFound, format!("No session: {name}."), "Call list_sessions.")
}

#[async_trait]
impl Desk for TestDesk {
    async fn open(&self, open: OpenSession) -> Result<SessionView, Fault> {
        let mut state = self.state.lock().unwrap();
        let number = state.sessions.len() + 1;
        let mut session = Self::session(&open.name.clone().unwrap_or_else(|| format!("browser-{number}")), number);
        session.warning.clone_from(&self.warning);
        session.url.clone_from(&open.url);
        session.from.clone_from(&open.from);
        session.tab_id = open.url.as_ref().map(|_| "t1".to_owned());
        session.tabs = usize::from(open.url.is_some());
        state.sessions.push(session.clone());
        state.opened.push(open);
        Ok(session)
    }

    async fn list(&self) -> SessionList {
        let state = self.state.lock().unwrap();
        SessionList { sessions: state.sessions.clone(), current_session: state.current.clone(), note: None, is_shared: false }
    }

    async fn list_shared(&self, _capability: &str) -> Result<SessionList, Fault> {
        let note = Some("Shared with you.".to_owned());
        Ok(SessionList { sessions: vec![Self::session("shared", 9)], current_session: None, note, is_shared: true })
    }

    async fn set_current(&self, session: &str) -> Result<SessionView, Fault> {
        let mut state = self.state.lock().unwrap();
        let found = state.sessions.iter().find(|known| known.session_id == session).cloned().ok_or_else(|| no_session(session))?;
        state.current = Some(session.to_owned());
        Ok(found)
    }

    async fn close(&self, session: Option<&str>) -> Result<SessionView, Fault> {
        let mut state = self.state.lock().unwrap();
        let at = match session {
            Some(name) => state.sessions.iter().position(|known| known.session_id == name).ok_or_else(|| no_session(name))?,
            None if state.sessions.len() == 1 => 0,
            None => return Err(Fault::new(Code::SessionRequired, "No session: none active.", "Name one.")),
        };
        Ok(state.sessions.remove(at))
    }

    fn domains(&self) -> &Domains {
        &self.domains
    }

    async fn close_all(&self, detach: bool) -> Result<Vec<SessionView>, Fault> {
        let mut state = self.state.lock().unwrap();
        let sessions = std::mem::take(&mut state.sessions);
        if detach {
            state.detached = sessions.iter().map(|session| session.session_id.clone()).collect();
        }
        Ok(sessions)
    }

    /// Copies are tested where they are made, in the daemon; these are only names.
    async fn fork(&self, session: Option<&str>, count: u32, prefix: Option<&str>) -> Result<Forked, Fault> {
        let prefix = prefix.or(session).unwrap_or("browser-1");
        let copy = |number: u32| Self::session(&format!("{prefix}-{number}"), 1);
        Ok(Forked { sessions: (1..=count).map(copy).collect(), missing: None })
    }

    /// Grants are tested where they are decided, in the daemon; this one only shows what was asked for.
    async fn share(&self, session: Option<&str>, share: tabmux_core::Share) -> Result<(String, GrantView), Fault> {
        let mut state = self.state.lock().unwrap();
        let view = GrantView {
            grant: format!("g_{:08x}", state.grants.len() + 1),
            session_id: session.unwrap_or("browser-1").to_owned(),
            mode: share.right.name().to_owned(),
            tools: share.tools.map(|tools| tools.into_iter().collect()),
            domains: if share.domains.is_empty() { vec![] } else { vec![share.domains] },
            once: share.uses == tabmux_core::Uses::Once,
            left_ms: share.ttl_ms,
            created_at: "2026-11-16T12:00:00Z".into(),
        };
        state.grants.push(view.clone());
        Ok(("tmx_secret".to_owned(), view))
    }

    async fn shares(&self, _session: Option<&str>) -> Result<Vec<GrantView>, Fault> {
        Ok(self.state.lock().unwrap().grants.clone())
    }

    async fn revoke(&self, _session: Option<&str>, which: &str) -> Result<Vec<GrantView>, Fault> {
        Ok(self.state.lock().unwrap().grants.extract_if(.., |grant| which == "all" || grant.grant == which).collect())
    }

    /// Sequences are tested where calls are decided, in the daemon.
    async fn call(&self, _: &'static Tool, _: Arguments, _: Duration) -> Called {
        Called::refused(no_session("of this desk"))
    }

    fn time_left(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn secret(&self, name: &str) -> Result<String, Fault> {
        Err(no_session(name))
    }

    fn tell(&self, _: &str, _: Value) {}
}

/// The pages of one session.
pub(crate) struct TestPages {
    context: Arc<dyn Context>,
    pub(crate) domains: Domains,
    state: Mutex<PagesState>,
}

#[derive(Default)]
struct PagesState {
    pages: Vec<(TabId, Arc<dyn Page>)>,
    made: u32,
    current: Option<TabId>,
    moved: Vec<TabId>,
    houses: Vec<Move>,
    /// The tab the present call named.
    wanted: Option<String>,
}

impl TestPages {
    pub(crate) async fn new() -> Self {
        Self::with(&ContextSpec::default()).await
    }

    pub(crate) async fn with(spec: &ContextSpec) -> Self {
        let context = FakeBrowser::new().open_context(spec).await.unwrap();
        Self { context, domains: Domains::default(), state: Mutex::default() }
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> ToolResult {
        let mut args = arguments(args);
        let common = common(&mut args)?;
        let Tool { run: Run::Page(page), .. } = named(tool)? else { panic!("{tool} is a desk tool") };
        self.state.lock().unwrap().wanted.clone_from(&common.tab);
        page.run(self, &common, args).await
    }

    /// Starts a script that opens a dialog, and comes back when the dialog is open.
    pub(crate) async fn asking(&self, script: &str) -> JoinHandle<tabmux_driver::Result<Value>> {
        let (_, page) = self.page().await.unwrap();
        let (mut events, script) = (page.events(), script.to_owned());
        let waiting = tokio::spawn(async move { page.evaluate(&script).await });
        events.recv().await.unwrap();
        waiting
    }

    pub(crate) async fn with_open_dialog(&self, script: &str) {
        self.asking(script).await.abort();
    }

    pub(crate) fn moved(&self) -> Vec<TabId> {
        self.state.lock().unwrap().moved.clone()
    }

    /// Where its pages were to go.
    pub(crate) fn houses(&self) -> Vec<Move> {
        self.state.lock().unwrap().houses.clone()
    }

    /// Every tab, and whether it is current.
    pub(crate) fn tabs(&self) -> Vec<(String, bool)> {
        self.views().into_iter().map(|page| (page.tab_id, page.current)).collect()
    }

    fn views(&self) -> Vec<PageView> {
        let state = self.state.lock().unwrap();
        let view =
            |(page_idx, (tab, page)): (usize, &(TabId, Arc<dyn Page>))| PageView::of(page_idx, *tab, &**page, state.current == Some(*tab));
        state.pages.iter().enumerate().map(view).collect()
    }

    fn find(&self, which: &PageRef) -> Result<PageView, Fault> {
        let found = self.views().into_iter().find(|page| match which {
            PageRef::Index(index) => page.page_idx == *index,
            PageRef::Tab(tab) => page.tab_id == *tab,
        });
        found.ok_or_else(|| Fault::new(Code::TabNotFound, format!("No such tab: {which:?}."), "Call list_pages."))
    }
}

#[async_trait]
impl Pages for TestPages {
    async fn page(&self) -> Result<(TabId, Arc<dyn Page>), Fault> {
        let wanted = {
            let state = self.state.lock().unwrap();
            state.wanted.clone().or_else(|| state.current.map(|tab| tab.to_string()))
        };
        let Some(wanted) = wanted else { return self.open().await };
        let view = self.find(&PageRef::Tab(wanted))?;
        Ok(self.state.lock().unwrap().pages[view.page_idx].clone())
    }

    async fn context(&self) -> Result<Arc<dyn Context>, Fault> {
        Ok(Arc::clone(&self.context))
    }

    async fn emulate(&self, wanted: Emulation) -> Result<(), Fault> {
        Ok(self.context.emulate(&wanted).await?)
    }

    async fn move_house(&self, wanted: Move) -> Result<(), Fault> {
        let mut state = self.state.lock().unwrap();
        state.houses.push(wanted);
        let (made, count) = (state.made, state.pages.len());
        for (number, (tab, _)) in (made + 1..).zip(&mut state.pages) {
            *tab = TabId(number);
        }
        state.made += u32::try_from(count).unwrap();
        state.current = state.pages.last().map(|(tab, _)| *tab);
        Ok(())
    }

    fn may_read(&self, file: &std::path::Path) -> bool {
        !file.ends_with("token")
    }

    async fn list(&self) -> Vec<PageView> {
        self.views()
    }

    fn current(&self) -> Option<TabId> {
        self.state.lock().unwrap().current
    }

    async fn open(&self) -> Result<(TabId, Arc<dyn Page>), Fault> {
        let page = self.context.open_page().await?;
        let mut state = self.state.lock().unwrap();
        state.made += 1;
        let tab = TabId(state.made);
        state.pages.push((tab, Arc::clone(&page)));
        state.current = Some(tab);
        Ok((tab, page))
    }

    async fn select(&self, which: &PageRef) -> Result<PageView, Fault> {
        let view = self.find(which)?;
        let mut state = self.state.lock().unwrap();
        state.current = Some(state.pages[view.page_idx].0);
        Ok(PageView { current: true, ..view })
    }

    async fn close(&self, which: &PageRef) -> Result<PageView, Fault> {
        let view = self.find(which)?;
        let (tab, page) = self.state.lock().unwrap().pages.remove(view.page_idx);
        page.close().await?;
        let mut state = self.state.lock().unwrap();
        if state.current == Some(tab) {
            state.current = state.pages.first().map(|(tab, _)| *tab);
        }
        Ok(view)
    }

    fn domains(&self) -> &Domains {
        &self.domains
    }

    fn moved(&self, tab: TabId) {
        self.state.lock().unwrap().moved.push(tab);
    }
}
