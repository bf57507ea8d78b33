//! Where pages wait that pages opened: the browser attaches us to each before it begins, so it is prepared before its first request and its first
//! script, and nothing it asks is answered by somebody else. Only for browsers in which every page is ours: elsewhere we would be attached to
//! people's tabs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::CdpError;
use crate::connection::{Connection, WeakConnection};
use crate::protocol::{runtime, target};

#[derive(Debug, Default)]
pub(crate) struct Threshold {
    watch: Mutex<Watch>,
}

#[derive(Debug, Default)]
enum Watch {
    /// Pages do not wait.
    #[default]
    Off,
    /// It is being asked for; until it is answered, the browser tells of pages that are there already.
    Asked(WeakConnection),
    On(WeakConnection),
}

impl Threshold {
    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_watched(&self) -> bool {
        !matches!(*self.watch(), Watch::Off)
    }

    /// From now on new pages wait. A browser that knows no such thing goes on as it is.
    pub(crate) async fn begin(&self, connection: &Connection, patience: Duration) -> crate::Result<()> {
        // First: one that waits already, since a former daemon asked for it, is told of at once.
        *self.watch() = Watch::Asked(connection.downgrade());
        let pages = vec![target::FilterEntry { kind: Some("page".into()), ..target::FilterEntry::default() }];
        let wait = target::SetAutoAttach { auto_attach: true, wait_for_debugger_on_start: true, flatten: Some(true), filter: Some(pages) };
        let asked = connection.call_in(None, &wait, patience).await;
        *self.watch() = match asked {
            Ok(_) => Watch::On(connection.downgrade()),
            Err(CdpError::Refused { message, .. }) => {
                tracing::warn!(message, "pages that open begin before they are prepared");
                Watch::Off
            }
            Err(other) => return Err(other),
        };
        Ok(())
    }

    /// A page that does not wait has a session. It has one because somebody here asked for it, unless only the watch was asked for.
    pub(crate) fn was_there(&self, session: String) {
        if let Watch::Asked(connection) = &*self.watch()
            && let Some(connection) = connection.upgrade()
        {
            // Queued by now; refused, it is gone.
            drop(connection.send(None, &target::DetachFromTarget { session_id: Some(session) }));
        }
    }

    /// Lets a page in that nobody here prepares, and lets go of it. Called by the reader: nothing is waited for.
    pub(crate) fn pass(&self, session: String) {
        let connection = match &*self.watch() {
            Watch::Off => None,
            Watch::Asked(connection) | Watch::On(connection) => connection.upgrade(),
        };
        let Some(connection) = connection else { return };
        // Queued by now; refused, it is gone.
        drop(connection.send(Some(&session), &runtime::RunIfWaitingForDebugger::default()));
        drop(connection.send(None, &target::DetachFromTarget { session_id: Some(session) }));
    }
}
