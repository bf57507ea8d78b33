//! One call of the session: it runs, and what ends it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tabmux_core::{Code, Fault, Party, TabId};
use tabmux_driver::{Dialog, DriverError};
use tabmux_tools::{Arguments, Common, Pages, Reply};
use tokio::sync::oneshot;

use super::{World, closed, locked};
use crate::session::pages::CallPages;
use crate::session::reach::Reach;
use crate::session::{After, Errand, Job, Limit, Turn, Work, changes, late};

/// How much of a dialog's words is said when it ends a call.
const MAX_DIALOG_BYTES: usize = 2000;

/// How long a page that an act opened may take to be the session's, so that the reply can name it.
const POPUP: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Running {
    party: Party,
    tab: Option<TabId>,
    /// The tab it worked on, which a call closed meanwhile.
    closed: Option<TabId>,
    /// Takes the dialog that ends it, and the tab it is open in.
    interrupt: Option<oneshot::Sender<(TabId, Dialog)>>,
}

impl World {
    /// An opening dialog ends the call that runs on its page, or on the one that opened that: both may stand still, and nothing else would end
    /// it (contract). To everybody else it is news, unless they meet it with their next call on that page anyway.
    pub(super) fn dialog_opened(&self, tab: TabId, dialog: &Dialog) {
        let news = format!("Tab {tab} opened {}. {}", described(dialog), answer_in(tab));
        let interrupt = locked(&self.running).as_mut().and_then(|running| {
            let works_on = running.tab.filter(|works_on| self.has_opened(*works_on, tab))?;
            Some((running.interrupt.take()?, works_on, running.party))
        });
        match interrupt.map(|(interrupt, works_on, party)| (interrupt.send((tab, dialog.clone())), works_on, party)) {
            // The call may have just ended; then its reply went out and the dialog is said by the next one.
            Some((_, works_on, _)) if works_on == tab => {}
            Some((Ok(()), _, party)) => locked(&self.news).add_dialog(tab, news, Some(party)),
            Some((Err(_), ..)) | None => locked(&self.news).add_dialog(tab, news, None),
        }
    }

    /// The running call works on this tab.
    pub(in crate::session) fn works_on(&self, tab: TabId) {
        if let Some(running) = locked(&self.running).as_mut() {
            running.tab = Some(tab);
        }
    }

    /// A call closes the tab: the one that works on it is told that, and not that the page went by itself.
    pub(in crate::session) fn closes(&self, tab: TabId) {
        if let Some(running) = locked(&self.running).as_mut().filter(|running| running.tab == Some(tab)) {
            running.closed = Some(tab);
        }
    }

    /// Comes when so many pages that pages opened were taken in. Not every one that was asked for comes.
    async fn has_popups(&self, count: u64) {
        let mut popups = self.popups.subscribe();
        let _ = tokio::time::timeout(POPUP, popups.wait_for(|taken| *taken >= count)).await;
    }

    /// Runs one call; a panic in it ends this call only. What ends it first: its result,
    /// a dialog, the caller giving up, or the session's end (the registry then tells the caller why).
    pub(in crate::session) async fn execute(self: &Arc<Self>, job: Job) {
        let Job { admitted, written, grant, errand, common, args, turn, limit, abort, reply } = job;
        let (interrupt, interrupted) = oneshot::channel();
        if turn == Turn::Queue {
            *locked(&self.running) = Some(Running { party: admitted.party, tab: None, closed: None, interrupt: Some(interrupt) });
        }
        let pages = CallPages::new(Arc::clone(self), admitted, Reach::of(grant), turn);
        let run = async {
            self.hub.settled(written).await;
            if turn == Turn::Queue {
                self.look_around().await;
                self.welcome_back(&admitted);
            }
            let reply = self.run_in_time(&errand, &pages, common, args, &limit).await?;
            let (tab, url) = pages.worked_on();
            pages.check_where_it_ended(url.as_deref())?;
            Ok::<_, Fault>((reply, tab, url))
        };
        // On this very task, which saves two wake-ups a call; what is stopped is dropped before the next call begins.
        let mut outcome = tokio::select! {
            biased;
            ended = AssertUnwindSafe(run).catch_unwind() => match ended {
                Ok(ran) => ran.map_err(|fault| pages.ended_by_dialog(fault, None)),
                Err(_) => Err(self.hub.panicked()),
            },
            Ok((tab, dialog)) = interrupted => Err(pages.ended_by_dialog(pages.told_of_dialog(tab, &dialog), Some(tab))),
            () = abort.cancelled() => Err(crate::hub::timed_out()),
            () = self.stop.cancelled() => Err(closed()),
        };
        if turn == Turn::Queue {
            let closed = locked(&self.running).take().and_then(|running| running.closed);
            if let Some(tab) = closed {
                outcome = outcome.map_err(|fault| closed_meanwhile(tab, fault));
            }
            self.stirred.notify_one();
        }
        let stuck = |fault: &Fault| matches!(fault.code, Code::DialogOpen | Code::TabCrashed);
        // A dialog that is answered is known to the page only, too.
        if turn == Turn::Beside || outcome.as_ref().is_err_and(stuck) {
            self.leave_on_record(&pages).await;
        }
        if turn != Turn::Watching
            && outcome.as_ref().is_err_and(|fault| fault.code == Code::TabGone)
            && let (Some(tab), _) = pages.worked_on()
        {
            // So its caller needs not be told again.
            self.hub.decide_now(|registry, _| registry.told_gone(self.id, admitted.party, Some(tab)));
        }
        if let (Some(tab), _) = pages.working_on() {
            let ended = outcome.as_ref().map(|_| ()).map_err(|fault| fault.code);
            self.tells_of_tab(admitted.party, tab, errand.name, ended);
        }
        if outcome.as_ref().is_err_and(|fault| fault.code == Code::BrowserCrashed) {
            self.notice_loss().await;
        }
        if turn == Turn::Queue {
            self.was_told(&admitted, errand.name, outcome.as_ref().err().map(|fault| fault.code));
        }
        // Before the reply: the next call begins only once this one has ended.
        self.hub.finish(admitted.call);
        let outcome = outcome.map(|(reply, tab, url)| Work { reply, tab, url });
        // Nobody listens when the caller gave up or the session ended.
        drop(reply.send(outcome));
    }

    /// The browser tells of a dialog or a crash only once: whoever is answered that there is one, or none any more, hears the same from the next
    /// daemon.
    async fn leave_on_record(&self, pages: &CallPages) {
        pages.remember();
        tokio::select! {
            () = self.hub.on_record() => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// Does what was asked, and says what came of it. At the deadline what was not done is a failure that says what was waited for;
    /// what was done stays done, and only what came of it is not known.
    async fn run_in_time(
        &self,
        errand: &Errand,
        pages: &CallPages,
        mut common: Common,
        args: Arguments,
        limit: &Limit,
    ) -> Result<Reply, Fault> {
        let popups = *self.popups.borrow();
        let late = late::of(errand, &args);
        // Some of it may have gone in the queue.
        common.timeout = common.timeout.map(|given| given.min(limit.left()));
        let ran = tokio::time::timeout_at(limit.deadline, errand.tool.run(pages, &common, args)).await;
        if pages.has_turn() && matches!(ran, Ok(Ok(_))) {
            self.finish_making();
        }
        self.on_record().await;
        let mut reply = match ran {
            Ok(ran) => ran?,
            Err(_) => return Err(late::fault(&late, limit, pages).await),
        };
        let said = tokio::time::timeout_at(limit.deadline, self.say_after(errand.after, &mut reply, pages, popups)).await;
        match said {
            Ok(said) => said?,
            Err(_) => late::note(&mut reply, pages),
        }
        Ok(reply)
    }

    async fn say_after(&self, after: After, reply: &mut Reply, pages: &CallPages, popups: u64) -> Result<(), Fault> {
        let (_, Some(page)) = pages.working_on() else { return Ok(()) };
        match after {
            After::Nothing => {}
            After::Changes => {
                let opened = changes::append(reply, &*page, pages.reach(), pages.domains()).await?;
                self.has_popups(popups + opened).await;
            }
            After::Arrival => {
                changes::check_arrival(reply, &*page, pages.domains()).await?;
                self.has_popups(popups + page.opened()).await;
            }
        }
        Ok(())
    }
}

pub(in crate::session) fn dialog_fault(dialog: &Dialog) -> Fault {
    DriverError::DialogOpen { kind: dialog.kind.clone(), text: cut(dialog) }.into()
}

/// The same for a dialog of another tab than the call's own.
pub(in crate::session) fn dialog_elsewhere(tab: TabId, dialog: &Dialog) -> Fault {
    let message = format!("Tab {tab}, which this page opened, has {}.", described(dialog));
    Fault::new(Code::DialogOpen, message, format!("{} Then go on.", answer_in(tab)))
}

/// A dialog and as much of its words as is worth reading.
pub(in crate::session) fn described(dialog: &Dialog) -> String {
    format!("a dialog ({}): {}", dialog.kind, tabmux_tools::visible_quoted(&cut(dialog)))
}

/// What is to be done about it, wherever the next call would look for it.
pub(in crate::session) fn answer_in(tab: TabId) -> String {
    format!("Answer it with handle_dialog and tabId {tab}.")
}

fn closed_meanwhile(tab: TabId, fault: Fault) -> Fault {
    if fault.code != Code::TabGone {
        return fault;
    }
    Fault { message: format!("Tab {tab} was closed with close_page while this call ran."), ..fault }
}

fn cut(dialog: &Dialog) -> String {
    let end = dialog.text.floor_char_boundary(MAX_DIALOG_BYTES);
    let cut = if end < dialog.text.len() { "…" } else { "" };
    format!("{}{cut}", &dialog.text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialog_ends_a_call_with_as_many_of_its_words_as_are_worth_reading() {
        let said = |bytes: usize| dialog_fault(&Dialog { kind: "alert".into(), text: "x".repeat(bytes) }).message;
        let (whole, cut) = (said(2000), said(2001));
        assert!(whole.contains(&"x".repeat(2000)) && !whole.contains('…'), "{whole}");
        assert!(cut.contains(&format!("{}…", "x".repeat(2000))) && !cut.contains(&"x".repeat(2001)), "{cut}");
    }
}
