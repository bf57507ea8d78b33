//! The usher: a tiny extension of our own, loaded once per browser, whose hidden page does what CDP cannot. It opens a
//! tab in a named window, brings a tab into one, and hears when a person drags one. Sessions never see it. A browser that somebody else started takes
//! no extension from us; there a hidden page of its own opens the tabs, and does no more.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use serde::Deserialize;
use serde_json::value::RawValue;
use tabmux_driver::{DriverError, HOUSEKEEPING, Place, WindowId};

use super::Windows;
use crate::connection::{Connection, Listener};
use crate::context::CRADLE_MARK;
use crate::protocol::{Event, extensions, runtime, target};
use crate::{CdpError, Result, lenient};

const PAGE: &str = "tabmux-windows.html";
/// A page that every Chromium has and that may open tabs; the rest of the address says whose it is.
const BORROWED_PAGE: &str = "chrome://bookmarks/?tabmux-windows";
const BORROWED: &str = include_str!("usher/borrowed.js");
const FILES: [(&str, &str); 3] = [
    ("manifest.json", include_str!("usher/manifest.json")),
    (PAGE, include_str!("usher/tabmux-windows.html")),
    ("tabmux-windows.js", include_str!("usher/tabmux-windows.js")),
];

#[derive(Debug)]
pub(super) struct Usher {
    connection: Connection,
    session: String,
    home: Home,
    /// How many tabs it has opened, so that no two have one address.
    opened: AtomicU64,
}

/// The page it works in.
#[derive(Debug)]
enum Home {
    /// Of our extension.
    Own { extension: String },
    /// Of the browser's, in this target.
    Borrowed { target: String },
}

#[derive(Debug, Deserialize)]
struct Answer {
    target: Option<String>,
    refused: Option<String>,
}

impl Usher {
    /// The usher's page that a former daemon opened, or a new one. Files are written to `place`, which must be private.
    pub(super) async fn find_or_load(connection: &Connection, place: &Path, windows: Weak<Windows>) -> Result<Arc<Self>> {
        let known = connection.call_in(None, &target::GetTargets::default(), HOUSEKEEPING).await?.target_infos;
        let ours = known.into_iter().find(|info| is_own(&info.url));
        let own = match ours {
            Some(info) => Ok((Home::Own { extension: info.url.split('/').nth(2).unwrap_or_default().to_owned() }, info.target_id)),
            None => load(connection, place).await,
        };
        let settled = match own {
            Ok((home, page)) => Self::settle(connection, home, page, windows.clone()).await?,
            Err(CdpError::Refused { .. }) => None,
            Err(other) => return Err(other),
        };
        if let Some(usher) = settled {
            return Ok(usher);
        }
        let (home, page) = borrow(connection).await?;
        Self::settle(connection, home, page, windows).await?.ok_or_else(|| unreadable("no page of the browser's own is shown".into()))
    }

    /// `None`: the browser does not show this page.
    async fn settle(connection: &Connection, home: Home, page: String, windows: Weak<Windows>) -> Result<Option<Arc<Self>>> {
        let attach = target::AttachToTarget { target_id: page.clone(), flatten: Some(true) };
        let session = connection.call_in(None, &attach, HOUSEKEEPING).await?.session_id;
        connection.listen(&session, Arc::new(Ears(windows)));
        connection.call_in(Some(&session), &runtime::Enable::default(), HOUSEKEEPING).await?;
        let usher = Arc::new(Self { connection: connection.clone(), session, home, opened: AtomicU64::default() });
        let shown =
            tokio::time::timeout(HOUSEKEEPING, usher.loaded()).await.map_err(|_| CdpError::Late { method: "the window usher" })??;
        if !shown {
            connection.call_in(None, &target::CloseTarget { target_id: page }, HOUSEKEEPING).await?;
            usher.leave().await?;
        }
        Ok(shown.then_some(usher))
    }

    /// Its page may still be loading, or not even have begun to. Whether it is shown: a browser without extensions takes ours (156) and
    /// shows an error in place of its pages.
    async fn loaded(&self) -> Result<bool> {
        let look = match self.home {
            Home::Own { .. } => "typeof tabmux".to_owned(),
            Home::Borrowed { .. } => format!("({BORROWED})()"),
        };
        let look = format!("location.protocol === 'chrome-error:' ? 'refused' : {look}");
        let load =
            format!("document.readyState === 'complete' ? {look} : new Promise((done) => addEventListener('load', () => done({look})))");
        loop {
            match self.evaluate(&load).await {
                Ok(kind) if kind == "object" => return Ok(true),
                Ok(kind) if kind == "refused" => return Ok(false),
                // What was asked of the document before is not answered by this one.
                Ok(_) | Err(CdpError::Refused { .. }) => {}
                Err(other) => return Err(other),
            }
        }
    }

    /// Opens a tab at this address in this window and gives its target, however late: who asked must know what was opened.
    pub(super) async fn open_in(&self, url: &str, window: WindowId) -> tabmux_driver::Result<String> {
        let open = |url: &str| format!("tabmux.openIn({}, {})", window.0, serde_json::Value::from(url));
        if let Home::Own { .. } = self.home {
            return self.ask(&open(url)).await;
        }
        if !url.contains('#') {
            // Only an address that says whose it is can be told from a person's.
            return Err(DriverError::WindowFull);
        }
        let address = format!("{url}{CRADLE_MARK}{}", self.opened.fetch_add(1, Relaxed));
        self.ask(&open(&address)).await?;
        let found = tokio::time::timeout(HOUSEKEEPING, self.target_at(&address)).await;
        Ok(found.unwrap_or(Err(CdpError::Late { method: "the window usher" }))?)
    }

    /// The tab is there; the browser may not have told of its address yet.
    async fn target_at(&self, address: &str) -> Result<String> {
        loop {
            let known = self.connection.call(None, &target::GetTargets::default()).await?.target_infos;
            if let Some(info) = known.into_iter().find(|info| info.url == address) {
                return Ok(info.target_id);
            }
        }
    }

    /// Puts the tab of a target there.
    pub(super) async fn bring(&self, target: &str, place: Place) -> tabmux_driver::Result<()> {
        if !self.has_extension() {
            return Err(DriverError::Unsupported("This browser cannot move a tab.".into()));
        }
        let target = serde_json::Value::from(target);
        let place = match place {
            Place::In(window) => window.0.to_string(),
            Place::New(_) => "null".into(),
        };
        let asked = tokio::time::timeout(HOUSEKEEPING, self.ask(&format!("tabmux.bring({target}, {place})"))).await;
        asked.unwrap_or_else(|_| Err(CdpError::Late { method: "the window usher" }.into())).map(|_| ())
    }

    /// Whether it works in a page of our extension: only there it moves tabs, and hears when a person does.
    pub(super) fn has_extension(&self) -> bool {
        matches!(self.home, Home::Own { .. })
    }

    /// Takes what is ours out of the browser again.
    pub(super) async fn leave(&self) -> Result<()> {
        match &self.home {
            Home::Own { extension } => {
                let uninstall = extensions::Uninstall { id: extension.clone() };
                self.connection.call_in(None, &uninstall, HOUSEKEEPING).await.map(|_| ())
            }
            Home::Borrowed { target } => {
                let close = target::CloseTarget { target_id: target.clone() };
                self.connection.call_in(None, &close, HOUSEKEEPING).await.map(|_| ())
            }
        }
    }

    async fn ask(&self, call: &str) -> tabmux_driver::Result<String> {
        let answer = self.evaluate(&format!("{call}.then(JSON.stringify)")).await?;
        let answer: Answer =
            lenient::read(answer.as_str().unwrap_or_default().as_bytes()).map_err(|error| unreadable(error.to_string()))?;
        match (answer.target, answer.refused.as_deref()) {
            (Some(target), _) => Ok(target),
            (None, Some("gone")) => Err(DriverError::WindowGone),
            (None, Some("full")) => Err(DriverError::WindowFull),
            (None, _) => Err(DriverError::PageGone),
        }
    }

    async fn evaluate(&self, expression: &str) -> Result<serde_json::Value> {
        let evaluate = runtime::Evaluate {
            expression: expression.to_owned(),
            await_promise: Some(true),
            return_by_value: Some(true),
            ..runtime::Evaluate::default()
        };
        let reply = self.connection.call(Some(&self.session), &evaluate).await?;
        match reply.exception_details {
            Some(thrown) => Err(unreadable(thrown.exception.and_then(|thrown| thrown.description).unwrap_or(thrown.text))),
            None => Ok(reply.result.value.unwrap_or_default()),
        }
    }
}

fn unreadable(why: String) -> CdpError {
    CdpError::Unreadable { method: "the window usher", why }
}

/// Whether a target is the usher's page.
pub(super) fn is_usher(url: &str) -> bool {
    url == BORROWED_PAGE || is_own(url)
}

fn is_own(url: &str) -> bool {
    url.strip_prefix("chrome-extension://").and_then(|rest| rest.split_once('/')).is_some_and(|(_, page)| page == PAGE)
}

/// Gives where it is at home, and the target of its page.
async fn load(connection: &Connection, place: &Path) -> Result<(Home, String)> {
    write(place).map_err(|error| unreadable(format!("{} cannot be written: {error}", place.display())))?;
    let unpacked = extensions::LoadUnpacked { path: place.display().to_string(), enable_in_incognito: None };
    let id = connection.call_in(None, &unpacked, HOUSEKEEPING).await?.id;
    let target = open_hidden(connection, format!("chrome-extension://{id}/{PAGE}")).await?;
    Ok((Home::Own { extension: id }, target))
}

/// It is in no tab strip, and the browser closes it with our connection.
async fn borrow(connection: &Connection) -> Result<(Home, String)> {
    let target = open_hidden(connection, BORROWED_PAGE.to_owned()).await?;
    Ok((Home::Borrowed { target: target.clone() }, target))
}

async fn open_hidden(connection: &Connection, url: String) -> Result<String> {
    let page = target::CreateTarget { url, background: Some(true), hidden: Some(true), ..target::CreateTarget::default() };
    Ok(connection.call_in(None, &page, HOUSEKEEPING).await?.target_id)
}

fn write(place: &Path) -> io::Result<()> {
    std::fs::create_dir_all(place)?;
    FILES.iter().try_for_each(|(name, text)| std::fs::write(place.join(name), text))
}

/// Hears the usher's page: all it ever says is that a tab was moved.
struct Ears(Weak<Windows>);

impl Listener for Ears {
    fn event(&self, method: &str, _params: &RawValue) {
        if method == runtime::ConsoleAPICalled::METHOD
            && let Some(windows) = self.0.upgrade()
        {
            windows.tabs_moved();
        }
    }

    fn gone(&self, _why: &CdpError) {
        if let Some(windows) = self.0.upgrade() {
            windows.usher_gone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_helpers_own_page_is_taken_for_it() {
        assert!(is_usher("chrome-extension://abcdefgh/tabmux-windows.html"));
        for other in ["https://a.test/tabmux-windows.html", "chrome-extension://abc/other.html", "chrome-extension://abc", ""] {
            assert!(!is_usher(other), "{other}");
        }
    }

    #[test]
    fn the_usher_reaches_no_site_and_asks_for_one_permission() {
        let manifest: serde_json::Value = serde_json::from_str(FILES[0].1).unwrap();
        assert_eq!(manifest["permissions"], serde_json::json!(["debugger"]));
        assert!(manifest.get("host_permissions").is_none() && manifest.get("content_scripts").is_none());
        assert!(!FILES[2].1.contains(".attach(") && !FILES[2].1.contains("active: true") && !FILES[2].1.contains("focused: true"));
    }
}
