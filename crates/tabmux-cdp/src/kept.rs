//! A browser tabmux launched: its connection, and the claim to it. A warden holds the claim, gives the browser a new keeper
//! when the old one dies, and tells the connection why the browser ended.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tabmux_driver::BrowserInfo;
use tokio::sync::{mpsc, oneshot};

use crate::CdpBrowser;
use crate::connection::Connection;
use crate::find::Kind;
use crate::keeper::{self, Claim, End, KeeperHome, Kept};
use crate::launch::{Launch, LaunchError};
use crate::transport::{Start, Transport};

/// A daemon that took over waits this long before it asks again for a keeper that could not be started.
const KEEPER_AGAIN: Duration = Duration::from_secs(5);

/// A new daemon's ids begin far from those its forerunner may still have had answers to, and within CDP's 31 bits.
const IDS_PER_GENERATION: i32 = 1 << 26;

/// Asks the warden to end the browser; the sender is told when nothing of it is left.
pub(crate) type EndOrder = oneshot::Sender<Result<(), LaunchError>>;

impl CdpBrowser {
    /// Starts a browser that outlives this process by its keeper's grace.
    pub async fn launch(home: &KeeperHome, launch: &Launch) -> Result<Arc<Self>, LaunchError> {
        Self::of_kept(home, keeper::launch(home, launch).await?, Start::Fresh).await
    }

    /// Takes over a browser whose daemon is gone.
    pub async fn take_over(home: &KeeperHome, socket: &Path) -> Result<Arc<Self>, LaunchError> {
        Self::go_on_with(home, keeper::claim(socket).await?).await
    }

    /// The same with one that is claimed already, which says nothing of whether it answers.
    pub async fn go_on_with(home: &KeeperHome, kept: Kept) -> Result<Arc<Self>, LaunchError> {
        Self::of_kept(home, kept, Start::TakeOver).await
    }

    async fn of_kept(home: &KeeperHome, kept: Kept, start: Start) -> Result<Arc<Self>, LaunchError> {
        let (pipe, claim) = kept.into_parts();
        let claim = Unconnected { claim: Some(claim), start };
        let about = &claim.get().about;
        let info = BrowserInfo {
            id: about.id.clone(),
            kind: kind_name(about.launch.binary.kind).into(),
            pid: Some(about.browser_pid),
            keeper_pid: Some(about.keeper_pid),
            ..BrowserInfo::default()
        };
        let launch = about.launch.clone();
        let first_id = first_id(about.generation);
        let dead = |error: crate::CdpError| LaunchError::Died { status: "no answer".into(), words: error.to_string() };
        let transport = Transport::pipe(pipe.read, pipe.write, start).map_err(dead)?;
        let helper = about.nest.join("helper");
        let (orders, ordered) = mpsc::channel(1);
        let browser = match Self::connect_to(transport, first_id, info, Some((launch, orders))).await {
            Ok(browser) => browser,
            Err(error) => {
                claim.end().await;
                return Err(dead(error));
            }
        };
        browser.keep_window_usher_in(helper);
        if start == Start::Fresh {
            browser.is_fresh();
        }
        let warden = Warden { home: home.clone(), connection: browser.connection().clone(), browser: Arc::downgrade(&browser) };
        tokio::spawn(warden.watch(claim.connected(), ordered));
        Ok(browser)
    }
}

/// The claim to a browser that does not answer yet. One that was just started and is given up ends, or it would live on with
/// nobody to know of it; one that lived before is left to its keeper, which this daemon may ask again.
struct Unconnected {
    claim: Option<Claim>,
    start: Start,
}

impl Unconnected {
    fn get(&self) -> &Claim {
        self.claim.as_ref().expect("it is taken out only with self")
    }

    fn connected(mut self) -> Claim {
        self.claim.take().expect("it is taken out only with self")
    }

    /// It does not answer at all: whoever has pages in it would never reach them.
    async fn end(mut self) {
        if let Some(claim) = self.claim.take()
            && let Err(error) = claim.end().await
        {
            tracing::warn!(%error, "a browser that does not answer did not end either");
        }
    }
}

impl Drop for Unconnected {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take().filter(|_| self.start == Start::Fresh) {
            tokio::spawn(claim.end());
        }
    }
}

struct Warden {
    home: KeeperHome,
    connection: Connection,
    browser: std::sync::Weak<CdpBrowser>,
}

/// How the search for a new keeper went.
enum Search {
    /// There is one, or it is time to search again.
    Over,
    /// Nobody needs one any more.
    BrowserGone,
}

impl Warden {
    async fn watch(self, mut claim: Claim, mut ordered: mpsc::Receiver<EndOrder>) {
        loop {
            let end = tokio::select! {
                order = ordered.recv() => match order {
                    Some(order) => return self.end(claim, order).await,
                    // Nobody holds the browser any more: the claim is dropped, and the keeper's grace begins.
                    None => return,
                },
                end = claim.ended() => end,
            };
            match end {
                End::BrowserExited { exit, words } => return self.connection.close(&last_words(&exit.to_string(), &words)),
                // Also where nobody holds the browser it has a keeper first, so that there is one whose grace begins.
                End::KeeperGone => tokio::select! {
                    Some(order) = ordered.recv() => return self.end(claim, order).await,
                    search = self.find_keeper(&mut claim) => match search {
                        Search::Over => {}
                        // What is left of it goes too; that it is gone was said.
                        Search::BrowserGone => return drop(claim.end().await),
                    },
                },
            }
        }
    }

    async fn end(&self, claim: Claim, order: EndOrder) {
        self.connection.close("it was told to end");
        drop(order.send(claim.end().await));
    }

    /// The browser lives as long as its pipe is held, here too; a keeper is only needed for when this process dies.
    async fn find_keeper(&self, claim: &mut Claim) -> Search {
        match claim.replace_keeper(&self.home).await {
            Ok(()) => {
                tracing::warn!(keeper = claim.about.keeper_pid, "the browser's keeper died; it has a new one");
                if let Some(browser) = self.browser.upgrade() {
                    browser.set_keeper(claim.about.keeper_pid);
                }
                Search::Over
            }
            Err(error) => {
                tracing::warn!(%error, "the browser has no keeper; a crash of this daemon would end it");
                tokio::select! {
                    () = tokio::time::sleep(KEEPER_AGAIN) => Search::Over,
                    _ = self.connection.closed() => Search::BrowserGone,
                }
            }
        }
    }
}

fn first_id(generation: u32) -> i32 {
    let slots = i32::MAX / IDS_PER_GENERATION;
    let slot = i32::try_from(generation.saturating_sub(1)).unwrap_or(0) % slots;
    slot * IDS_PER_GENERATION + 1
}

fn last_words(exit: &str, words: &str) -> String {
    // Without a desktop it complains of that at every start, which ends nothing; nor does what it only warns of.
    let is_noise = |line: &str| line.is_empty() || line.contains(":ERROR:dbus/") || line.contains(":WARNING:");
    let telling = words.lines().map(str::trim).filter(|line| !is_noise(line));
    let words = telling.collect::<Vec<_>>().join(" / ");
    let words = words.trim_end_matches('.');
    if words.is_empty() { format!("it ended with {exit}") } else { format!("it ended with {exit}; its last words: {words}") }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Chromium => "chromium",
        Kind::Chrome => "chrome",
        Kind::Edge => "edge",
        Kind::HeadlessShell => "chromium-headless-shell",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentence that it becomes part of has a full stop of its own.
    #[test]
    fn last_words_are_what_the_browser_ended_of() {
        let noise = "[1:2:1118/010203.4:ERROR:dbus/bus.cc:408] Failed to connect to the bus: No such file or directory.\n";
        let warning = "[1118/013944.0:WARNING:device/bluetooth/dbus/bluez_dbus_manager.cc:209] Floss manager service not available.\n";
        assert_eq!(last_words("signal 9", &format!("{noise}{noise}{warning}{noise}")), "it ended with signal 9");
        let words = format!("{noise}Out of memory\n{noise}Aborted.\n");
        assert_eq!(last_words("signal 6", &words), "it ended with signal 6; its last words: Out of memory / Aborted");
    }

    #[test]
    fn each_daemon_numbers_its_calls_far_from_the_one_before() {
        assert_eq!((first_id(1), first_id(2)), (1, IDS_PER_GENERATION + 1));
        assert!((1..200).all(|generation| first_id(generation) > 0 && first_id(generation) != first_id(generation + 1)));
    }
}
