//! The windows of a session whose pages live among those of others (Seed 4): its tabs open in them, what lands elsewhere
//! is brought back, and what a person drags away is the person's. Whose a window is the registry decides; sessions that
//! are isolated otherwise pass through here without a question asked.

use std::sync::Arc;

use tabmux_core::{Code, Fault, Party, Placement, Scoping, Spot, TabId};
use tabmux_driver::{Context, DriverError, Handle, Isolation, Page, Place, Windowed, failpoint};

use super::news::Gone;
use super::world::World;

impl World {
    /// Opens a page where the session's pages belong, as a tab that is current for who opens it.
    pub(super) async fn open_tab(self: &Arc<Self>, party: Party) -> Result<(TabId, Arc<dyn Page>), Fault> {
        let context = self.open().await?;
        let Some(windowed) = context.windows() else {
            failpoint("tab-begins");
            let page = context.open_page().await?;
            failpoint("tab-has-page");
            return Ok((self.add_tab(&page, party).await?, page));
        };
        let (page, spot) = self.open_at_home(windowed).await?;
        let tab = self.add_tab(&page, party).await?;
        self.settle(windowed, tab, page.handle(), spot).await;
        self.has_windows();
        Ok((tab, page))
    }

    pub(super) async fn add_tab(self: &Arc<Self>, page: &Arc<dyn Page>, party: Party) -> Result<TabId, Fault> {
        let (handle, url) = (page.handle().0.as_str().into(), page.url());
        match self.decide(|registry| registry.add_tab(self.id, party, handle, url)) {
            Ok(tab) => {
                failpoint("tab-writing");
                self.add_page(tab, page);
                // Before anything is done with it: what the next daemon finds elsewhere, and on no record, another page opened.
                self.on_record().await;
                failpoint("tab-written");
                Ok(tab)
            }
            Err(fault) => {
                // The session was closed meanwhile; its context takes the page along if this fails.
                drop(page.close().await);
                Err(fault)
            }
        }
    }

    /// Where a tab belongs: in the newest window that takes one, else in a new one (S4.5, S4.7, S4.17).
    fn home(&self) -> Place {
        let home = self.hub.look(|registry| registry.session(self.id).and_then(|session| session.windows.home()));
        home.map_or(Place::New(self.hub.settings.windows.bounds), Place::In)
    }

    /// Whether there is another place to try, because this window is gone or takes no tab.
    fn try_elsewhere(self: &Arc<Self>, place: Place, refused: &DriverError) -> bool {
        match (place, refused) {
            (Place::In(window), DriverError::WindowGone) => self.hub.decide_now(|registry, _| registry.window_gone(self.id, window)),
            (Place::In(window), DriverError::WindowFull) => self.hub.decide_now(|registry, _| registry.window_full(self.id, window)),
            _ => return false,
        }
        true
    }

    async fn open_at_home(self: &Arc<Self>, windowed: &dyn Windowed) -> Result<(Arc<dyn Page>, Spot), DriverError> {
        loop {
            let place = self.home();
            match windowed.open_page_at(place).await {
                Err(refused) if self.try_elsewhere(place, &refused) => {}
                done => return done,
            }
        }
    }

    async fn bring_home(self: &Arc<Self>, windowed: &dyn Windowed, page: &Handle) -> Result<Spot, DriverError> {
        loop {
            let place = self.home();
            match windowed.bring(page, place).await {
                Err(refused) if self.try_elsewhere(place, &refused) => {}
                done => return done,
            }
        }
    }

    /// A page of the session opened another one (S4.23).
    pub(super) async fn settle_popup(self: &Arc<Self>, context: &dyn Context, tab: TabId, page: &Arc<dyn Page>) {
        let Some(windowed) = context.windows() else { return };
        match windowed.spot(page.handle()).await {
            Ok(spot) => self.settle(windowed, tab, page.handle(), spot).await,
            // It is gone again, or will be found where it is with the next call.
            Err(error) => tracing::debug!(session = %self.id, %tab, %error, "nobody knows where a popup came up"),
        }
    }

    /// Notes where a new tab came up. In somebody else's window it does not stay (S4.15, C14).
    async fn settle(self: &Arc<Self>, windowed: &dyn Windowed, tab: TabId, page: &Handle, spot: Spot) {
        let place = |spot| self.hub.decide_now(|registry, _| registry.place_tab(self.id, tab, spot));
        if let Placement::Misplaced { expected, found } = place(spot) {
            let brought = self.bring_home(windowed, page).await;
            let expected = expected.map_or("a new one".to_owned(), |window| window.0.to_string());
            let found = found.0;
            match brought.map(place) {
                Ok(Placement::Right) => {
                    tracing::warn!(session = %self.id, %tab, "Warning: new_page created tab in wrong window (expected {expected}, got {found}); it was brought back");
                    self.add_news_of(tab, format!("Tab {tab} came up in another window and was brought back to the session's own."));
                }
                failed => {
                    tracing::warn!(session = %self.id, %tab, ?failed, "Warning: new_page created tab in wrong window (expected {expected}, got {found}) and it cannot be brought back");
                    self.add_news_of(tab, format!("Tab {tab} is in a window that is not the session's, and could not be brought back."));
                }
            }
        }
        self.own_windows(windowed);
    }

    /// Tells the driver which windows are the session's, so that it knows whose a page is that opens in one.
    pub(super) fn tell_windows(&self, context: &dyn Context) {
        if let Some(windowed) = context.windows() {
            self.own_windows(windowed);
        }
    }

    fn own_windows(&self, windowed: &dyn Windowed) {
        let windows = self.hub.look(|registry| registry.session(self.id).map(|session| session.windows.windows.clone()));
        windowed.own(&windows.unwrap_or_default());
    }

    /// Before each call: a tab that a person dragged out of the session's windows is the person's now (S4.19).
    pub(super) async fn look_around(self: &Arc<Self>) {
        if self.isolation() != Isolation::Window {
            return;
        }
        let Ok(context) = self.open().await else { return };
        let Some(windowed) = context.windows() else { return };
        let known = self.hub.look(|registry| {
            let session = registry.session(self.id)?;
            let tabs: Vec<_> = session.tabs.iter().map(|(id, tab)| (*id, Handle(tab.handle.to_string()))).collect();
            Some((session.windows.scoping, tabs))
        });
        let Some((scoping, tabs)) = known else { return };
        if scoping == Scoping::Off {
            return self.take_strangers(windowed).await;
        }
        let handles: Vec<Handle> = tabs.iter().map(|(_, handle)| handle.clone()).collect();
        for (handle, window) in windowed.windows_of(&handles).await {
            let Some((tab, _)) = tabs.iter().find(|(_, known)| *known == handle) else { continue };
            if self.hub.decide_now(|registry, _| registry.tab_moved(self.id, *tab, window)) == Placement::Left {
                self.tab_left(windowed, *tab, &handle).await;
            }
        }
    }

    async fn tab_left(self: &Arc<Self>, windowed: &dyn Windowed, tab: TabId, page: &Handle) {
        self.tab_lost(tab, Gone::Taken);
        if let Err(error) = windowed.let_go(page).await {
            tracing::debug!(session = %self.id, %tab, %error, "a page that left was not let go");
        }
    }

    /// Without scoping the person's pages are the agents' too: whoever looks first has them (S4.18).
    async fn take_strangers(self: &Arc<Self>, windowed: &dyn Windowed) {
        let taken = windowed.take_strangers(self.hub.settings.windows.strangers).await;
        for page in taken.unwrap_or_default() {
            match self.hub.decide_now(|registry, _| registry.add_stranger(self.id, page.handle().0.as_str().into(), page.url())) {
                Ok(tab) => self.add_page(tab, &page),
                Err(fault) => {
                    tracing::debug!(session = %self.id, %fault, "a page of the person's was not taken in");
                    drop(windowed.let_go(page.handle()).await);
                }
            }
        }
    }

    /// Before the session closes: pages of the person's that it was shown are not closed with it.
    pub(super) async fn spare_strangers(&self, context: &dyn Context) {
        let Some(windowed) = context.windows() else { return };
        let shown: Vec<Handle> = self.hub.look(|registry| {
            let Some(session) = registry.session(self.id) else { return Vec::new() };
            let strange = session.tabs.iter().filter(|(tab, _)| session.windows.strangers.contains(tab));
            strange.map(|(_, tab)| Handle(tab.handle.to_string())).collect()
        });
        for page in shown {
            if let Err(error) = windowed.let_go(&page).await {
                tracing::debug!(session = %self.id, %error, "a page of the person's was not let go");
            }
        }
    }

    /// The tab is gone without our doing. If it was the last one its window went with it: the next call says so, the one after it has a
    /// new one (S4.17). Decided in one breath, so that no call finds the session without a tab and nothing said of it.
    pub(super) fn forget_tab(&self, tab: TabId) {
        self.decide(|registry| {
            let was_there = registry.remove_tab(self.id, tab, None);
            let empty = registry.session(self.id).is_some_and(|session| session.tabs.is_empty());
            if was_there && empty && self.isolation() == Isolation::Window {
                let message = "The session's last window was closed by a person or by its page.";
                self.lose(Fault::new(Code::TabGone, message, "Call navigate or new_page to have a new window."));
            }
        });
    }
}
