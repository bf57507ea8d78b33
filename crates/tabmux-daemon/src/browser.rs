//! Which browser serves the sessions: one per kind of it, started by the first session that needs it, and found again
//! after a crash of the daemon. What a browser can do is the drivers'.

mod attached;
mod chromium;
mod former;
mod vacant;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tabmux_cdp::attach::Consent;
use tabmux_cdp::find::Binary;
use tabmux_cdp::launch::{Mode, Sharing};
use tabmux_core::{Code, Fault, Session};
use tabmux_driver::fake::FakeBrowser;
use tabmux_driver::{Adopted, Browser, BrowserInfo, ContextSpec, DriverError, HOUSEKEEPING, Handle, Isolation, PageRecord};
use tokio_util::sync::CancellationToken;

use crate::session::Lasting;
use crate::settings::{Attach, BrowserChoice, Settings};
use attached::Attached;
use chromium::Starter;
use former::{Former, Heir};
pub(crate) use vacant::Vacant;

/// How long somebody waits for a browser that is not their own: `status`, and whoever attaches to another one.
const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Browsers {
    source: Source,
    attached: Arc<Attached>,
    running: Arc<Mutex<Vec<Running>>>,
    /// Held while one starts, so that two sessions do not start two.
    starting: tokio::sync::Mutex<()>,
    /// Those of a former daemon are looked for once, before anything else is asked.
    former: OnceLock<Former>,
    /// The contexts of the sessions it left.
    known: Arc<[Handle]>,
    /// All are to end: none starts any more.
    ending: CancellationToken,
    /// Endpoints of browsers that are to be attached to before anybody asks.
    awaited: Vec<String>,
}

#[derive(Debug)]
enum Source {
    Fake,
    Chromium(Arc<Starter>),
}

#[derive(Clone, Debug)]
struct Running {
    /// What it was started as; none for the fake one.
    launch: Option<Wanted>,
    browser: Arc<dyn Browser>,
}

/// Which browser a session needs: one serves all that need the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    binary: Binary,
    mode: Mode,
    sharing: Sharing,
}

impl Wanted {
    fn is_for_one(&self) -> bool {
        self.sharing == Sharing::One
    }
}

impl Browsers {
    /// `left` are the sessions of a former daemon.
    pub(crate) fn new(settings: &Settings, left: &[Session]) -> Self {
        let source = match &settings.browser {
            BrowserChoice::Fake => Source::Fake,
            BrowserChoice::Named(path) => Source::Chromium(Arc::new(Starter::new(path.clone(), settings.chromium.clone()))),
        };
        let known = left.iter().filter_map(|session| Some(Handle(session.context.as_deref()?.to_owned()))).collect();
        let mut awaited: Vec<String> = left.iter().filter(|session| session.context.is_some()).filter_map(endpoint_of).collect();
        // Whoever runs `up` is there to answer the browser's question.
        awaited.extend(settings.attach.endpoint.clone().filter(|_| settings.supervised));
        Self {
            attached: Arc::new(Attached::new(&settings.attach, &settings.paths.state_dir)),
            awaited,
            ..Self::of(source, Vec::new(), known)
        }
    }

    /// A browser that is there already.
    #[cfg(test)]
    pub(crate) fn given(browser: Arc<dyn Browser>) -> Self {
        Self::of(Source::Fake, vec![Running { launch: None, browser }], Vec::new())
    }

    fn of(source: Source, running: Vec<Running>, known: Vec<Handle>) -> Self {
        let running = Arc::new(Mutex::new(running));
        Self {
            source,
            attached: Arc::new(Attached::new(&Attach::default(), Path::new(""))),
            running,
            starting: tokio::sync::Mutex::default(),
            former: OnceLock::new(),
            known: known.into(),
            ending: CancellationToken::new(),
            awaited: Vec::new(),
        }
    }

    /// Whether a browser can be had at all, said before a seat is taken.
    pub(crate) fn check(&self, spec: &ContextSpec) -> Result<(), Fault> {
        if let Some(endpoint) = &spec.endpoint {
            return Attached::check(endpoint, spec);
        }
        match &self.source {
            Source::Fake => Ok(()),
            Source::Chromium(starter) => starter.check(spec),
        }
    }

    /// The browser for such a context, started when it is not running yet.
    pub(crate) async fn get(&self, spec: &ContextSpec) -> Result<Arc<dyn Browser>, Fault> {
        if let Some(endpoint) = &spec.endpoint {
            return self.attach(endpoint).await;
        }
        let wanted = self.wanted(spec)?;
        if !wanted.as_ref().is_some_and(Wanted::is_for_one) {
            self.take_over().have_come_for(wanted.as_ref(), HOUSEKEEPING).await;
        }
        let browser = self.find_or_start(wanted).await?;
        let vacant = self.vacancy(&browser);
        shut_doors(&*browser, &self.attached.endpoints()).await?;
        vacant.taken();
        Ok(browser)
    }

    async fn find_or_start(&self, wanted: Option<Wanted>) -> Result<Arc<dyn Browser>, Fault> {
        let _starting = self.starting.lock().await;
        let alone = wanted.as_ref().is_some_and(Wanted::is_for_one);
        let known = self.list().iter().find(|running| !alone && running.launch == wanted).map(|running| Arc::clone(&running.browser));
        match known {
            Some(browser) => Ok(browser),
            None => self.start(wanted).await,
        }
    }

    async fn start(&self, wanted: Option<Wanted>) -> Result<Arc<dyn Browser>, Fault> {
        let browser = match (&self.source, &wanted) {
            (Source::Chromium(starter), Some(wanted)) => tokio::select! {
                started = starter.start(wanted) => started?,
                // One that is given up ends.
                () = self.ending.cancelled() => return Err(crate::hub::stopping()),
            },
            (Source::Fake | Source::Chromium(_), _) => FakeBrowser::new() as Arc<dyn Browser>,
        };
        add(&self.running, wanted, &browser);
        Ok(browser)
    }

    async fn attach(&self, endpoint: &str) -> Result<Arc<dyn Browser>, Fault> {
        let browser = self.attached.get(endpoint).await?;
        shut_doors(&*browser, &self.attached.endpoints()).await?;
        self.shut_all_doors().await;
        Ok(browser)
    }

    /// Done whenever one has come that was attached to, or that a former daemon left; one that starts finds what is attached to itself. One that
    /// is frozen is not waited for: nothing that is asked of it later is done before the rule, and its own sessions are refused until then.
    async fn shut_all_doors(&self) {
        let ours = self.list().iter().map(|running| Arc::clone(&running.browser)).collect::<Vec<_>>();
        let (endpoints, attached) = (self.attached.endpoints(), self.attached.here());
        let shutting = ours.into_iter().chain(attached).map(|browser| {
            let endpoints = endpoints.clone();
            tokio::spawn(async move {
                if let Err(error) = shut_doors(&*browser, &endpoints).await {
                    let browser = browser.info().id;
                    tracing::warn!(browser, %error, "its pages are not yet kept from a debugging port; the next session in it tries again");
                }
            })
        });
        drop(tokio::time::timeout(PATIENCE, futures::future::join_all(shutting)).await);
    }

    /// What ends this browser again, should it be of no use to anybody else and its session not come to be.
    pub(crate) fn vacancy(&self, browser: &Arc<dyn Browser>) -> Vacant {
        let for_one =
            |running: &&Running| running.launch.as_ref().is_some_and(Wanted::is_for_one) && Arc::ptr_eq(&running.browser, browser);
        Vacant::new(self.list().iter().find(for_one).map(|running| Arc::clone(&running.browser)))
    }

    /// The browser that still has this context, and its pages.
    pub(crate) async fn find(
        &self,
        spec: &ContextSpec,
        context: &Handle,
        pages: &[PageRecord],
    ) -> Result<(Arc<dyn Browser>, Adopted), Fault> {
        if let Some(endpoint) = &spec.endpoint {
            let browser = self.attach(endpoint).await?;
            let adopted = browser.adopt_context(context, spec, pages).await?;
            return Ok((browser, adopted));
        }
        let mut coming = self.take_over().coming();
        loop {
            let none_comes = coming.borrow_and_update().is_empty();
            // The fake one died with its daemon and makes the context again.
            let known: Vec<Arc<dyn Browser>> = match &self.source {
                Source::Fake => vec![self.get(spec).await?],
                Source::Chromium(_) => self.list().iter().map(|running| Arc::clone(&running.browser)).collect(),
            };
            match Box::pin(find_in(known, &self.attached.endpoints(), spec, context, pages)).await {
                Ok(found) => return Ok(found),
                Err(error) if none_comes => return Err(error.into()),
                // It may be in one that is still to come.
                Err(_) => drop(coming.changed().await),
            }
        }
    }

    /// Whether those that are ours live on when the daemon dies.
    pub(crate) fn outlive_daemons(&self) -> bool {
        matches!(self.source, Source::Chromium(_))
    }

    /// What sessions say they run in.
    pub(crate) fn name(&self) -> &'static str {
        match self.source {
            Source::Fake => "fake",
            Source::Chromium(_) => "chromium",
        }
    }

    /// Those that run now, with what they say of themselves; nobody waits long for one that is busy.
    pub(crate) async fn described(&self) -> Vec<BrowserInfo> {
        let started: Vec<Arc<dyn Browser>> = self.list().iter().map(|running| Arc::clone(&running.browser)).collect();
        let asked = started.iter().map(|browser| async {
            let contexts = tokio::time::timeout(PATIENCE, browser.contexts()).await;
            BrowserInfo { contexts: contexts.ok().and_then(Result::ok), ..browser.info() }
        });
        let described = futures::future::join_all(asked).await;
        described.into_iter().chain(self.attached.running()).collect()
    }

    /// Ends every browser for good, those that are just starting and those that do not answer included.
    pub(crate) async fn end(&self) {
        let former = self.take_over();
        former.all_come(PATIENCE).await;
        self.ending.cancel();
        let running = std::mem::take(&mut *self.list());
        let ending = running.iter().map(|running| async {
            match tokio::time::timeout(HOUSEKEEPING, running.browser.end()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "a browser did not end"),
                Err(_) => tracing::warn!("a browser took too long to end; its keeper goes on with it"),
            }
        });
        futures::join!(futures::future::join_all(ending), former.all_come(HOUSEKEEPING));
        self.attached.let_go().await;
        if let Source::Chromium(starter) = &self.source {
            starter.sweep_all().await;
        }
    }

    /// Attaches to what sessions of a former daemon have pages in, and to what `up` was told to: an everyday browser then
    /// asks its user now, and not in the middle of a call.
    pub(crate) async fn attach_ahead(&self) {
        let attaching = self.awaited.iter().map(|endpoint| async move {
            if let Err(fault) = self.attach(endpoint).await {
                tracing::warn!(%fault, "a browser is not attached to yet; the next call that needs it tries again");
            }
        });
        futures::future::join_all(attaching).await;
    }

    /// At the start of the daemon, and before anything else: a browser that nobody claims is ended by its keeper.
    pub(crate) fn begin_to_take_over(&self) {
        self.take_over();
    }

    fn take_over(&self) -> &Former {
        self.former.get_or_init(|| match &self.source {
            Source::Fake => Former::none(),
            Source::Chromium(starter) => Former::begin(&Heir {
                starter: Arc::clone(starter),
                running: Arc::clone(&self.running),
                attached: Arc::clone(&self.attached),
                known: Arc::clone(&self.known),
                ending: self.ending.clone(),
            }),
        })
    }

    /// The fake browser is one for all: it keeps apart what others keep apart by processes.
    fn wanted(&self, spec: &ContextSpec) -> Result<Option<Wanted>, Fault> {
        match &self.source {
            Source::Fake => Ok(None),
            Source::Chromium(starter) => starter.wanted(spec).map(Some),
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Running>> {
        locked(&self.running)
    }
}

/// Keeps the browser for as long as it lives.
fn add(running: &Arc<Mutex<Vec<Running>>>, launch: Option<Wanted>, browser: &Arc<dyn Browser>) {
    locked(running).push(Running { launch, browser: Arc::clone(browser) });
    let (running, browser) = (Arc::clone(running), Arc::clone(browser));
    tokio::spawn(async move {
        let why = browser.gone().await;
        tracing::warn!(browser = browser.info().id, why, "a browser is gone");
        locked(&running).retain(|running| !Arc::ptr_eq(&running.browser, &browser));
    });
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The browser that a session with these settings would get.
#[derive(Clone, Debug)]
pub enum Found {
    Installed {
        path: PathBuf,
    },
    /// Somebody else's that runs.
    Running {
        endpoint: String,
        asks_its_user: bool,
    },
}

/// What separates sessions that do not say (C12).
pub(crate) fn default_isolation(endpoint: Option<&str>) -> Isolation {
    match endpoint {
        None => Isolation::default(),
        Some(_) => Isolation::Window,
    }
}

/// Whether this can be the address of a running browser.
pub fn check_endpoint(text: &str) -> Result<(), Fault> {
    attached::read(text).map(|_| ())
}

/// Looks for it without starting it; for `up` and `doctor`. None for the fake one.
pub fn find_browser(settings: &Settings) -> Result<Option<Found>, Fault> {
    if let Some(endpoint) = &settings.attach.endpoint {
        let located = attached::look(endpoint, &settings.attach)?;
        let endpoint = located.unconnected().endpoint.unwrap_or_else(|| endpoint.clone());
        return Ok(Some(Found::Running { endpoint, asks_its_user: located.consent == Consent::Asked }));
    }
    match &settings.browser {
        BrowserChoice::Fake => Ok(None),
        BrowserChoice::Named(path) => Starter::new(path.clone(), settings.chromium.clone()).found().map(Some),
    }
}

/// Whether another browser than these processes holds the profile that is configured: two cannot use it.
pub fn check_profile(settings: &Settings, own: &[u32]) -> Result<(), Fault> {
    let Some(profile) = &settings.chromium.profile else { return Ok(()) };
    match tabmux_cdp::launch::holder(profile) {
        None => Ok(()),
        Some(tabmux_cdp::launch::Holder::Process { pid, .. }) if own.contains(&pid) => Ok(()),
        Some(holder) => {
            let message = format!("The profile {} is in use by {holder}.", profile.display());
            Err(Fault::new(Code::Capacity, message, "Close that browser, or set TABMUX_BROWSER_PROFILE to another directory."))
        }
    }
}

/// Whether a daemon that is gone left browsers behind, or what was theirs on disk.
pub fn browsers_are_left(settings: &Settings) -> bool {
    match &settings.browser {
        BrowserChoice::Fake => false,
        BrowserChoice::Named(path) => Starter::new(path.clone(), settings.chromium.clone()).has_leavings(),
    }
}

/// What a browser that did not start is to whoever wanted it.
pub(crate) fn launch_fault(error: &tabmux_cdp::launch::LaunchError) -> Fault {
    chromium::fault(error)
}

/// The life of a browser's keeper: the hidden subcommand `keeper`.
pub fn keep_browser() -> std::process::ExitCode {
    tabmux_cdp::keeper::run()
}

/// No page of this browser gets to the ports of those that were attached to. What is shut already costs nothing.
async fn shut_doors(browser: &dyn Browser, endpoints: &[String]) -> tabmux_driver::Result<()> {
    let shutting = endpoints.iter().map(|endpoint| browser.shut_door(endpoint));
    match futures::future::try_join_all(shutting).await {
        // What is gone reaches nothing.
        Ok(_) | Err(DriverError::BrowserGone(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn find_in(
    browsers: Vec<Arc<dyn Browser>>,
    endpoints: &[String],
    spec: &ContextSpec,
    context: &Handle,
    pages: &[PageRecord],
) -> tabmux_driver::Result<(Arc<dyn Browser>, Adopted)> {
    let mut why = DriverError::BrowserGone("it did not survive".into());
    // All at once: one that does not answer keeps nobody from what another has.
    let mut asked: FuturesUnordered<_> = browsers
        .into_iter()
        .map(|browser| async move {
            shut_doors(&*browser, endpoints).await?;
            let adopted = browser.adopt_context(context, spec, pages).await?;
            Ok((browser, adopted))
        })
        .collect();
    while let Some(found) = asked.next().await {
        match found {
            Ok(found) => return Ok(found),
            // That it is not in one browser says less than that another cannot say.
            Err(error) if matches!(why, DriverError::BrowserGone(_)) => why = error,
            Err(_) => {}
        }
    }
    Err(why)
}

fn endpoint_of(session: &Session) -> Option<String> {
    Lasting::read(session).spec.endpoint
}

/// A browser with pages of ours that cannot be found any more has ended.
pub(crate) fn ended(fault: Fault) -> Fault {
    if fault.code == Code::BrowserNotFound { crashed(fault.message.trim_end_matches('.')) } else { fault }
}

/// What a session is told whose browser is gone.
pub(crate) fn crashed(why: &str) -> Fault {
    Fault::new(
        Code::BrowserCrashed,
        format!("The browser is gone: {why}."),
        "Call navigate: it starts the session afresh, or says this once more and the call after it does.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Mood, Stubborn};

    #[test]
    fn a_profile_that_another_browser_uses_is_said_and_our_own_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = crate::testing::settings(dir.path());
        let profile = dir.path().join("work");
        std::fs::create_dir(&profile).unwrap();
        settings.chromium.profile = Some(profile.clone());
        assert_eq!(check_profile(&settings, &[]), Ok(()));
        let here = rustix::system::uname().nodename().to_str().unwrap().to_owned();
        let pid = std::process::id();
        std::os::unix::fs::symlink(format!("{here}-{pid}"), profile.join("SingletonLock")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(profile.join("SingletonSocket")).unwrap();
        let fault = check_profile(&settings, &[]).unwrap_err();
        assert!(fault.message.contains("work is in use by") && fault.message.contains(&pid.to_string()), "{fault}");
        assert_eq!(check_profile(&settings, &[pid]), Ok(()));
        settings.chromium.profile = None;
        assert_eq!(check_profile(&settings, &[]), Ok(()));
    }

    /// One that is slow may have what the other has not.
    #[tokio::test]
    async fn what_a_slow_browser_may_have_is_not_gone() {
        for moods in [[Mood::Late, Mood::Fail], [Mood::Fail, Mood::Late]] {
            let browsers = moods.map(|mood| {
                let browser = Stubborn::new();
                browser.adopts(&[mood]);
                browser as Arc<dyn Browser>
            });
            let found = find_in(browsers.to_vec(), &[], &ContextSpec::default(), &Handle("x".into()), &[]).await;
            assert!(matches!(found, Err(DriverError::Late(_))), "{moods:?}");
        }
    }

    const PORT: &str = "ws://127.0.0.1:9222/devtools/browser/1";

    /// Two that run, of which sessions that say nothing get the second; and one that was attached to.
    fn beside(frozen: &Arc<Stubborn>) -> (Browsers, Arc<dyn Browser>) {
        let browsers = Browsers::given(Stubborn::new());
        let binary = Binary { path: "/elsewhere".into(), kind: tabmux_cdp::find::Kind::Chromium };
        let launch = Wanted { binary, mode: Mode::Headed, sharing: Sharing::Many };
        browsers.list().insert(0, Running { launch: Some(launch), browser: Arc::clone(frozen) as _ });
        let attached: Arc<dyn Browser> = Stubborn::new();
        browsers.attached.pretend(PORT, Arc::clone(&attached));
        (browsers, attached)
    }

    #[tokio::test(start_paused = true)]
    async fn a_browser_that_does_not_take_the_rule_keeps_nobody_else_from_starting_or_attaching() {
        for mood in [Mood::Late, Mood::Hang] {
            let frozen = Stubborn::new();
            frozen.shuts(&[mood; 4]);
            let (browsers, attached) = beside(&frozen);
            let began = tokio::time::Instant::now();
            let spec = ContextSpec { endpoint: Some(PORT.into()), ..ContextSpec::default() };
            assert!(Arc::ptr_eq(&browsers.get(&spec).await.unwrap(), &attached), "{mood:?}");
            browsers.get(&ContextSpec::default()).await.unwrap();
            assert!(began.elapsed() <= PATIENCE, "{mood:?}: {:?}", began.elapsed());
        }
    }

    #[tokio::test]
    async fn sessions_are_refused_in_a_browser_that_has_not_taken_the_rule_and_it_is_asked_again() {
        let late = Stubborn::new();
        late.shuts(&[Mood::Late, Mood::Late]);
        let browsers = Browsers::given(Arc::clone(&late) as _);
        browsers.attached.pretend(PORT, Stubborn::new());
        assert_eq!(browsers.get(&ContextSpec::default()).await.unwrap_err().code, Code::Timeout);
        let found = find_in(vec![Arc::clone(&late) as _], &[PORT.into()], &ContextSpec::default(), &Handle("x".into()), &[]).await;
        assert!(matches!(found, Err(DriverError::Late(_))), "{found:?}");
        browsers.get(&ContextSpec::default()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_browser_that_is_slow_to_take_the_rule_holds_up_no_other_start() {
        let slow = Stubborn::new();
        slow.shuts(&[Mood::Wait]);
        let browsers = Arc::new(Browsers::given(Arc::clone(&slow) as _));
        browsers.attached.pretend(PORT, Stubborn::new());
        let (spec, other) = (ContextSpec::default(), Arc::clone(&browsers));
        let first = tokio::spawn(async move { other.get(&spec).await.map(drop) });
        crate::testing::eventually("the first waits", || slow.shuts_left() == 0).await;
        tokio::time::timeout(PATIENCE, browsers.get(&ContextSpec::default())).await.expect("the second waits").unwrap();
        slow.let_go();
        assert_eq!(first.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn a_browser_for_one_session_ends_unless_the_session_is_in_it() {
        let [given_up, used] = [FakeBrowser::new(), FakeBrowser::new()];
        Vacant::new(Some(Arc::clone(&used) as Arc<dyn Browser>)).taken();
        drop(Vacant::new(Some(Arc::clone(&given_up) as Arc<dyn Browser>)));
        given_up.gone().await;
        assert!(used.open_context(&ContextSpec::default()).await.is_ok());
    }
}
