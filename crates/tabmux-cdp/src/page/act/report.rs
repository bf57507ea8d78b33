//! What the page script says of itself, without being asked: that what was sent has arrived. It comes over a binding that
//! only our own world has, and before the document can go elsewhere because of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tabmux_driver::{DriverError, Result};
use tokio::sync::watch;

use super::CdpPage;
use super::aim::milliseconds;
use crate::event::read;
use crate::page::frames::WORLD;
use crate::protocol::input::{DragData, DragIntercepted};
use crate::protocol::runtime::{AddBinding, BindingCalled};

const NAME: &str = "tabmuxHeard";

/// How long a report may lag behind the browser's own answer before the page is asked.
const LAG: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub(in crate::page) struct Reports {
    /// The last thing that was reported to have arrived.
    arrived: watch::Sender<u64>,
    /// What the browser said is dragged now.
    dragged: watch::Sender<Option<DragData>>,
}

#[derive(Deserialize)]
struct Report {
    token: u64,
}

/// What gives our world, and no other, the binding.
pub(in crate::page) fn listen() -> AddBinding {
    AddBinding { name: NAME.to_owned(), execution_context_name: Some(WORLD.to_owned()) }
}

/// A number for one action, unlike that of any other.
pub(super) fn token() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Reports {
    /// Takes in a call of a binding; whether it was ours.
    pub(in crate::page) fn called(&self, params: &RawValue) -> bool {
        let Some(called) = read::<BindingCalled>(params).filter(|called| called.name == NAME) else { return false };
        if let Ok(Report { token }) = serde_json::from_str(&called.payload) {
            self.arrived.send_replace(token);
        }
        true
    }

    pub(super) fn heard(&self, token: u64) -> bool {
        *self.arrived.borrow() == token
    }

    pub(in crate::page) fn drag_began(&self, params: &RawValue) {
        if let Some(event) = read::<DragIntercepted>(params) {
            self.dragged.send_replace(Some(event.data));
        }
    }

    pub(super) fn forget_drag(&self) {
        self.dragged.send_replace(None);
    }

    /// Comes when the browser says what is dragged; none when the page is gone.
    pub(super) async fn dragged(&self) -> Option<DragData> {
        self.dragged.subscribe().wait_for(Option::is_some).await.ok().and_then(|data| data.clone())
    }

    async fn came(&self, token: u64) -> bool {
        let mut reports = self.arrived.subscribe();
        tokio::time::timeout(LAG, reports.wait_for(|heard| *heard == token)).await.is_ok_and(|heard| heard.is_ok())
    }
}

/// Where something that was sent came down.
#[derive(Debug)]
pub(super) enum Landing {
    /// Where it was meant to, and what is to be said of it.
    There(Option<String>),
    /// On another element, which was kept from it: nothing has happened, so it may be tried again.
    Missed(DriverError),
}

impl CdpPage {
    /// Comes when what was sent has arrived. `patience` is for what the browser makes of it later, such as the click of a tap.
    pub(super) async fn landing(&self, frame: &str, token: u64, patience: Duration) -> Result<Landing> {
        if self.state.reports().came(token).await {
            return Ok(Landing::There(None));
        }
        let wanted = json!({ "token": token, "patience": milliseconds(patience) });
        let answer = self.asked(frame, "landed", &wanted).await;
        if self.state.reports().heard(token) {
            return Ok(Landing::There(None));
        }
        let answer = answer?;
        let missed = answer.is_missed();
        match answer.or_fault(None) {
            Ok(answer) => Ok(Landing::There(answer.now)),
            Err(why) if missed => Ok(Landing::Missed(why)),
            Err(why) => Err(why),
        }
    }

    /// The same, where missing it is the end of it.
    pub(super) async fn landed(&self, frame: &str, token: u64, patience: Duration) -> Result<Option<String>> {
        match self.landing(frame, token, patience).await? {
            Landing::There(now) => Ok(now),
            Landing::Missed(why) => Err(why),
        }
    }
}
