//! Changes what the pages of a context see: those that are there, and by the context's world those to come. What the browser
//! refuses changes nothing.

use std::collections::BTreeMap;

use tabmux_driver::{DriverError, Emulation, HOUSEKEEPING, Permission, Result};

use super::CdpContext;
use crate::CdpError;
use crate::protocol::browser::{PermissionDescriptor, ResetPermissions, SetPermission};

/// Only the session's own clipboard is ever read, whatever is granted: see `world/clipboard.rs`.
const OWN_CLIPBOARD: &str = "clipboard-read";

impl CdpContext {
    pub(super) async fn change_emulation(&self, wanted: &Emulation) -> Result<()> {
        // No page begins meanwhile.
        let _making = self.making.lock().await;
        let before = self.world.emulation();
        if wanted.permissions != before.permissions && self.browser_context().is_none() {
            let shared = |name: &String| name != OWN_CLIPBOARD && wanted.permissions.get(name) != before.permissions.get(name);
            if wanted.permissions.keys().chain(before.permissions.keys()).any(shared) {
                let text = "Sessions that share a profile share its permissions; use isolation context or browser.";
                return Err(DriverError::Unsupported(text.into()));
            }
        }
        let changed = async {
            self.permit(&wanted.all_permissions(), &before.all_permissions()).await?;
            self.show(wanted, &before).await
        };
        if let Err(refused) = changed.await {
            // Back to what was; it was taken before.
            drop(self.permit(&before.all_permissions(), &wanted.all_permissions()).await);
            drop(self.show(&before, wanted).await);
            return Err(refused);
        }
        self.world.set_emulation(wanted.clone());
        Ok(())
    }

    /// A page that a dialog keeps from answering is told all the same, and obeys when the dialog is gone.
    async fn show(&self, wanted: &Emulation, before: &Emulation) -> Result<()> {
        let pages: Vec<_> = self.inner().pages.iter().flat_map(|pages| pages.values().cloned()).collect();
        let told: Vec<_> = {
            let mut shown = self.world.shown();
            wanted.clone_into(&mut shown);
            pages.iter().map(|page| (page.state().is_stuck(), page.show(wanted, before))).collect()
        };
        let awaited = told.into_iter().filter_map(|(stuck, told)| (!stuck).then_some(told));
        let late = CdpError::Late { method: "Emulation" };
        tokio::time::timeout(HOUSEKEEPING, futures::future::try_join_all(awaited)).await.map_err(|_| late)?.map(drop)
    }

    /// The permissions it was made with. The browser's own clipboard is nobody's, from the beginning.
    pub(crate) async fn furnish(&self) -> Result<()> {
        if self.browser_context().is_none() {
            return Ok(());
        }
        let emulation = self.world.emulation();
        let (wanted, none) = (emulation.all_permissions(), BTreeMap::new());
        let (guarded, permitted) = futures::join!(self.guard_clipboard(), self.permit(&wanted, &none));
        guarded.and(permitted)
    }

    async fn guard_clipboard(&self) -> Result<()> {
        self.set_permission(OWN_CLIPBOARD, Permission::Deny).await
    }

    async fn permit(&self, wanted: &BTreeMap<&str, Permission>, before: &BTreeMap<&str, Permission>) -> Result<()> {
        let Some(browser_context_id) = self.browser_context() else { return Ok(()) };
        if wanted == before {
            return Ok(());
        }
        if before.keys().any(|name| !wanted.contains_key(name)) {
            let reset = ResetPermissions { browser_context_id: Some(browser_context_id) };
            self.connection.call_in(None, &reset, HOUSEKEEPING).await?;
            self.guard_clipboard().await?;
        }
        for (name, permission) in wanted.iter().filter(|(name, _)| **name != OWN_CLIPBOARD) {
            self.set_permission(name, *permission).await?;
        }
        Ok(())
    }

    async fn set_permission(&self, name: &str, permission: Permission) -> Result<()> {
        let setting = match permission {
            Permission::Grant => "granted",
            Permission::Deny => "denied",
            Permission::Prompt => "prompt",
        };
        let command = SetPermission {
            permission: PermissionDescriptor {
                name: name.to_owned(),
                user_visible_only: (name == "push").then_some(true),
                ..PermissionDescriptor::default()
            },
            setting: setting.into(),
            browser_context_id: self.browser_context(),
            ..SetPermission::default()
        };
        match self.connection.call_in(None, &command, HOUSEKEEPING).await {
            Ok(_) => Ok(()),
            Err(CdpError::Refused { .. }) => Err(DriverError::EmulationRefused(format!("the permission {name:?}"))),
            Err(other) => Err(other.into()),
        }
    }
}
