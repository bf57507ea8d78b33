//! Pages that live in windows among those of others (Seed 4). A driver says where pages are and puts them where it is
//! told; whose a window is it does not decide.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use tabmux_core::{Spot, WindowId};

use crate::{Handle, Page, Result};

/// Where a new window is put (S4.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowBounds {
    pub left: i32,
    pub top: i32,
    pub width: u32,
    pub height: u32,
}

/// Where a page is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    In(WindowId),
    New(WindowBounds),
}

/// Which pages that are nobody's can be shown (S4.13, S4.18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strangers {
    /// Every kind of page the browser knows, not tabs only.
    pub all_kinds: bool,
    /// The pages of its developer tools too.
    pub devtools: bool,
}

/// A context whose pages live in windows of a shared profile. Nothing here takes the person's focus.
#[async_trait]
pub trait Windowed: Send + Sync + std::fmt::Debug {
    /// Opens a page at `about:blank` and says where it came up. That a window is gone (`WindowGone`) or takes no page
    /// (`WindowFull`) is said, and nothing opened.
    async fn open_page_at(&self, place: Place) -> Result<(Arc<dyn Page>, Spot)>;

    /// Where a page of this context came up that another one opened.
    async fn spot(&self, page: &Handle) -> Result<Spot>;

    /// Puts a page of this context there, as it is.
    async fn bring(&self, page: &Handle, place: Place) -> Result<Spot>;

    /// The windows these pages are in now, asked for all at once where they are not known (S4.16). Pages that are gone are
    /// left out (S4.12).
    async fn windows_of(&self, pages: &[Handle]) -> Vec<(Handle, WindowId)>;

    /// These windows are the context's: what opens in them without another's doing belongs to it.
    fn own(&self, windows: &BTreeSet<WindowId>);

    /// Lets go of a page that is somebody else's now; the page stays as it is (S4.19).
    async fn let_go(&self, page: &Handle) -> Result<()>;

    /// Takes in every page that is in no context: the person's, where the operator wants it so (S4.18). They are let go,
    /// not closed, when the context closes.
    async fn take_strangers(&self, which: Strangers) -> Result<Vec<Arc<dyn Page>>>;
}

impl Default for WindowBounds {
    fn default() -> Self {
        Self { left: 20, top: 20, width: 1800, height: 1200 }
    }
}
