//! A browser without a browser, for tests of everything above the driver (`TABMUX_BROWSER=fake`). It keeps
//! every promise of the driver's traits, also when scripts hang, throw, panic or crash their page; HTML, network and
//! JavaScript are deliberately absent.
//!
//! Addresses: `http`, `https`, `data` and `about:blank`. Hosts `fail.test` and `unreachable.test` cannot be
//! reached. Paths that end in `/download` give a file `a.bin`. `?delay=MS` makes a navigation take that long, `?title=TEXT` sets the page's title,
//! and with `?awaits=URL` the page is there and never comes to rest, because that never comes.
//!
//! Every page has the few elements of `form.rs`, which can be acted upon.
//!
//! `evaluate` understands one expression:
//!
//! | script | value |
//! |---|---|
//! | any JSON | itself |
//! | `location.href`, `document.title` | where the page is |
//! | `document.title = "text"` | the text; the page tells its title to who asks for it or looks at the page, as browsers do |
//! | `document.querySelector("#name").value` | what is in that field |
//! | `document.cookie`, `document.cookie = "k=v"` | the context's cookies (one jar per context, whatever the site) |
//! | `sleep(MS)` | `"slept MS"`, after that time |
//! | `hang()`, `new Promise(() => {})` | never comes |
//! | `throw("text")` | fails with that text |
//! | `panic("text")` | panics inside the driver, to prove that a panic ends one call only |
//! | `count()` | 1, 2, 3 … per page, also after a navigation: proves order |
//! | `log("text")`, `error("text")`, also `console.log`, `console.error` | null; writes to the page's log |
//! | `document.body.append("text")` | null; the page shows that text too, until it is navigated |
//! | `alert("text")`, `confirm("text")`, `prompt("text")` | waits for the answer: null; true or false; the text or null |
//! | `crash()` | the page is crashed until it is navigated |
//! | `window.open("url")` | null; the context has another page |
//! | `window.close()` | null; the page is gone |
//! | `navigator.clipboard.writeText("text")`, `navigator.clipboard.readText()` | null; the context's own copy |
//! | `Intl.DateTimeFormat().resolvedOptions().timeZone` | the emulated time zone, or `UTC` |
//! | `openChooser()` | null; a file chooser is open |
//! | `endBrowser()` | nothing: the browser is gone with all its contexts |
//! | `"x".repeat(N)` | a big string |

mod cookies;
mod copy;
mod form;
mod history;
mod page;
mod reading;
mod script;
mod sight;
mod storage;
mod visit;
mod world;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::{
    Adopted, Browser, BrowserInfo, Context, ContextSpec, Cookie, Copied, Download, DriverError, Emulation, Footprint, Handle, Isolation,
    Origins, Page, PageRecord, PageSeed, Planted, Popup, Result, Source,
};
use cookies::CookieJar;
use copy::FakeSource;
use page::FakePage;
use world::FakeWorld;

/// What is said of a fake browser that is gone.
const DEATH: &str = "it ended";

/// How many popups wait for whoever takes them.
const POPUP_QUEUE: usize = 32;

/// The fake browser. It lives and dies with its process.
#[derive(Debug)]
pub struct FakeBrowser {
    me: Weak<FakeBrowser>,
    contexts: Mutex<HashMap<Handle, Arc<FakeContext>>>,
    /// What sessions isolated by window or tab share.
    profile: Arc<CookieJar>,
    ended: watch::Sender<bool>,
}

/// One isolated world of the fake browser.
#[derive(Debug)]
struct FakeContext {
    me: Weak<FakeContext>,
    handle: Handle,
    browser: Weak<FakeBrowser>,
    cookies: Arc<CookieJar>,
    world: FakeWorld,
    origins: Arc<Origins>,
    /// What is on its way to it; ends with it.
    filling: Mutex<JoinSet<()>>,
    /// `None` once the context is closed, so that no page can open in it any more.
    pages: Mutex<Option<Vec<Arc<FakePage>>>>,
    popups: Mutex<Popups>,
}

/// Where news of popups goes. What opens before the first listener comes waits here for it.
#[derive(Debug)]
struct Popups {
    sender: mpsc::Sender<Popup>,
    unheard: Option<mpsc::Receiver<Popup>>,
}

impl FakeBrowser {
    pub fn new() -> Arc<FakeBrowser> {
        Arc::new_cyclic(|me| Self { me: me.clone(), contexts: Mutex::default(), profile: Arc::default(), ended: watch::Sender::default() })
    }

    /// The browser is gone from one moment to the next, with every context and page.
    pub fn die(&self) {
        let contexts = std::mem::take(&mut *locked(&self.contexts));
        for page in contexts.values().filter_map(|context| locked(&context.pages).take()).flatten() {
            page.lose();
        }
        self.ended.send_replace(true);
    }

    fn remember(&self, handle: Handle, spec: &ContextSpec, cookies: Arc<CookieJar>, pages: &[PageRecord]) -> Arc<FakeContext> {
        let (sender, unheard) = mpsc::channel(POPUP_QUEUE);
        let context = Arc::new_cyclic(|me| FakeContext {
            me: me.clone(),
            handle,
            browser: self.me.clone(),
            pages: Mutex::new(Some(pages.iter().map(|page| FakePage::restored(page, me.clone(), Arc::clone(&cookies))).collect())),
            cookies,
            world: FakeWorld::new(spec),
            origins: Arc::new(Origins::found(&spec.footprint, spec.source.as_ref())),
            filling: Mutex::default(),
            popups: Mutex::new(Popups { sender, unheard: Some(unheard) }),
        });
        locked(&self.contexts).insert(context.handle.clone(), Arc::clone(&context));
        context
    }
}

#[async_trait]
impl Browser for FakeBrowser {
    fn info(&self) -> BrowserInfo {
        BrowserInfo { id: "fake".into(), kind: "fake".into(), ..BrowserInfo::default() }
    }

    async fn open_context(&self, spec: &ContextSpec) -> Result<Arc<dyn Context>> {
        if *self.ended.borrow() {
            return Err(DriverError::BrowserGone(DEATH.into()));
        }
        let cookies: Arc<CookieJar> = match spec.isolation {
            Isolation::Context | Isolation::Browser => Arc::default(),
            Isolation::Window | Isolation::Tab => Arc::clone(&self.profile),
        };
        let context = self.remember(mint("fake-ctx")?, spec, cookies, &[]);
        if let Some(beginning) = &spec.source
            && let Err(error) = context.begin_with(beginning).await
        {
            context.close().await?;
            return Err(error);
        }
        Ok(context)
    }

    /// A fake browser died with the daemon that made the context, so the context is made again under its old
    /// handle, with its pages at the recorded URLs. Cookies, history and counters are gone; a context that still lives is found as it is.
    async fn adopt_context(&self, context: &Handle, spec: &ContextSpec, pages: &[PageRecord]) -> Result<Adopted> {
        let living = locked(&self.contexts).get(context).cloned();
        let context = living.unwrap_or_else(|| {
            let context = self.remember(context.clone(), spec, Arc::default(), pages);
            spec.source.iter().for_each(|beginning| context.fill_from(beginning));
            context
        });
        let pages = pages.iter().filter_map(|wanted| Some((wanted.handle.clone(), context.page(&wanted.handle)?))).collect();
        Ok(Adopted { context, pages })
    }

    async fn keep_only(&self, contexts: &[Handle]) -> Result<usize> {
        let all: Vec<_> = locked(&self.contexts).values().cloned().collect();
        let (known, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|context| contexts.contains(&context.handle));
        for context in others {
            context.close().await?;
        }
        Ok(known.len())
    }

    async fn contexts(&self) -> Result<usize> {
        Ok(locked(&self.contexts).len())
    }

    /// Its pages reach nothing at all.
    async fn shut_door(&self, _endpoint: &str) -> Result<()> {
        Ok(())
    }

    async fn gone(&self) -> String {
        let mut ended = self.ended.subscribe();
        // The sender lives as long as the browser.
        let _ = ended.wait_for(|ended| *ended).await;
        DEATH.to_owned()
    }

    async fn end(&self) -> Result<()> {
        self.die();
        Ok(())
    }
}

impl FakeContext {
    fn page(&self, handle: &Handle) -> Option<Arc<dyn Page>> {
        let pages = locked(&self.pages);
        let page = pages.as_ref()?.iter().find(|page| page.handle() == handle && !page.is_closed())?;
        Some(Arc::clone(page) as Arc<dyn Page>)
    }

    fn add_page(&self, url: String) -> Result<Arc<FakePage>> {
        let page = FakePage::at(mint("fake-page")?, url, self.me.clone(), Arc::clone(&self.cookies));
        let mut pages = locked(&self.pages);
        let pages = pages.as_mut().ok_or_else(|| DriverError::BrowserGone("its context was closed.".into()))?;
        pages.retain(|page| !page.is_closed());
        pages.push(Arc::clone(&page));
        Ok(page)
    }

    /// A page of this context opens another one. Nobody takes them: it is closed again.
    fn open_popup(&self, url: String, opener: &Handle) -> Result<()> {
        let page = self.add_page(url)?;
        let popup = Popup { page: Arc::clone(&page) as Arc<dyn Page>, opener: Some(opener.clone()) };
        if locked(&self.popups).sender.try_send(popup).is_err() {
            page.end();
        }
        Ok(())
    }
}

#[async_trait]
impl Context for FakeContext {
    fn handle(&self) -> &Handle {
        &self.handle
    }

    async fn open_page(&self) -> Result<Arc<dyn Page>> {
        Ok(self.add_page(visit::BLANK.to_owned())?)
    }

    async fn close(&self) -> Result<()> {
        if let Some(browser) = self.browser.upgrade() {
            locked(&browser.contexts).remove(&self.handle);
        }
        locked(&self.filling).abort_all();
        let pages = locked(&self.pages).take().unwrap_or_default();
        for page in pages {
            page.end();
        }
        Ok(())
    }

    fn source(&self) -> Option<Arc<dyn Source>> {
        Some(Arc::new(FakeSource::of(self.me.clone())))
    }

    fn copied(&self) -> watch::Receiver<Copied> {
        self.origins.copied()
    }

    fn footprint(&self) -> watch::Receiver<Footprint> {
        self.origins.footprint()
    }

    fn take_visits(&self) -> BTreeSet<String> {
        self.origins.take_visits()
    }

    async fn open_seeded(&self, seed: &PageSeed) -> Result<Planted> {
        self.add_seeded(seed).await
    }

    async fn cookies(&self) -> Result<Vec<Cookie>> {
        Ok(self.cookies.all())
    }

    async fn set_cookies(&self, cookies: &[Cookie]) -> Result<Vec<usize>> {
        Ok((0..cookies.len()).filter(|place| !self.cookies.take(&cookies[*place])).collect())
    }

    async fn clear_cookies(&self) -> Result<()> {
        self.cookies.clear();
        Ok(())
    }

    fn emulation(&self) -> Emulation {
        self.world.emulation()
    }

    async fn emulate(&self, wanted: &Emulation) -> Result<()> {
        self.world.emulate(wanted)
    }

    /// A megabyte for each page.
    async fn memory_kb(&self) -> Option<u64> {
        locked(&self.pages).as_ref().map(|pages| 1024 * pages.len() as u64)
    }

    fn downloads(&self) -> watch::Receiver<Vec<Download>> {
        self.world.downloads()
    }

    fn popups(&self) -> mpsc::Receiver<Popup> {
        let mut popups = locked(&self.popups);
        if let Some(unheard) = popups.unheard.take() {
            return unheard;
        }
        let (sender, receiver) = mpsc::channel(POPUP_QUEUE);
        popups.sender = sender;
        receiver
    }
}

/// A handle no other daemon ever made: the journal may name handles of a former one.
fn mint(prefix: &str) -> Result<Handle> {
    let number = getrandom::u64().map_err(|error| DriverError::BrowserGone(format!("no random numbers for a handle: {error}.")))?;
    Ok(Handle(format!("{prefix}-{number:016x}")))
}

/// A script may panic in the fake on purpose; what it left behind is still whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
