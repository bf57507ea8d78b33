//! A visible window in which a person logs in, once; what they leave there is kept. It begins with what the profile holds.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tabmux_cdp::launch::{Mode, Profile};
use tabmux_core::{Code, Fault};
use tabmux_driver::{Beginning, Browser, Context, ContextSpec, DriverError, Handle, Navigation, Page, PageEvent};
use tokio::sync::mpsc;

use super::person::{OwnBrowser, unless};
use super::{Profiles, Taken, check_name, disk};
use crate::settings::Settings;
use crate::sources::state_of;

/// Shows a window at `url`, and keeps what is in it when the person has closed it, or when `done` comes; nothing, when it is given up.
pub async fn login(
    settings: &Settings,
    name: &str,
    url: Option<&str>,
    done: impl Future<Output = ()>,
    given_up: impl Future<Output = ()>,
) -> Result<Value, Fault> {
    check_name(name)?;
    let url = url.map(|url| tabmux_tools::allowed_url(url, &settings.chromium.domains)).transpose()?;
    let profiles = Profiles::of_state(&settings.paths.state_dir);
    let known = profiles.find(name)?.map(|profile| profiles.read(&profile.name)).transpose()?;
    let place = disk::private(&profiles.dir)?;
    let own = OwnBrowser::start(settings, place.path(), Mode::Headed, Profile::Fresh).await?;
    let read = async {
        let spec = ContextSpec { source: known.map(Beginning::with), headless: Some(false), ..ContextSpec::default() };
        let context = own.browser().open_context(&spec).await?;
        let page = context.open_page().await?;
        if let Some(url) = url {
            match page.navigate(Navigation::To(&url)).await {
                // The window says so, and the person goes elsewhere.
                Err(error) if !error.is_unreached() => return Err(error.into()),
                _ => {}
            }
        }
        tokio::select! {
            () = all_closed(&*context, page) => {}
            () = done => {}
            why = own.browser().gone() => return Err(DriverError::BrowserGone(why).into()),
        }
        let unreadable = || Fault::new(Code::Unsupported, "What this browser keeps cannot be read.", "Use another browser.");
        state_of(&*context.source().ok_or_else(unreadable)?).await
    };
    let read = unless(given_up, read).await;
    own.end().await;
    drop(place);
    let (state, losses) = read?;
    let profile = profiles.save(name, &state, Taken::AtLogin)?;
    Ok(json!({"profile": profile, "losses": losses}))
}

/// Comes when the last page of the window is closed, those that pages opened included.
async fn all_closed(context: &dyn Context, first: Arc<dyn Page>) {
    let mut popups = context.popups();
    let (gone, mut closed) = mpsc::unbounded_channel();
    let mut open: HashMap<Handle, Arc<dyn Page>> = HashMap::new();
    let mut next = Some(first);
    loop {
        if let Some(page) = next.take() {
            watch(&*page, gone.clone());
            open.insert(page.handle().clone(), page);
        }
        tokio::select! {
            Some(popup) = popups.recv() => next = Some(popup.page),
            Some(handle) = closed.recv() => drop(open.remove(&handle)),
        }
        if open.is_empty() && next.is_none() {
            return;
        }
    }
}

/// Says when this page is closed.
fn watch(page: &dyn Page, gone: mpsc::UnboundedSender<Handle>) {
    let (mut events, handle) = (page.events(), page.handle().clone());
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if event == PageEvent::Closed {
                break;
            }
        }
        // Nobody listens when the login is over.
        drop(gone.send(handle));
    });
}
