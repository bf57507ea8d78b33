//! What the browser tells of a page becomes its state. Runs in the connection's reader, which must never wait.

use serde::Deserialize;
use serde_json::value::RawValue;
use tabmux_driver::{Dialog, PageEvent};

use super::{Life, OpenDialog, PageState};
use crate::event::read;
use crate::lenient;
use crate::page::arrival::BEGIN;
use crate::page::chooser::OpenChooser;
use crate::page::navigate::is_within;
use crate::page::{console, traffic};
use crate::protocol::{Event, inspector, network, page, runtime};

/// An event larger than this is noted, not decoded: a page writes as much as it likes.
const MAX_EVENT_BYTES: usize = 1024 * 1024;

const MAX_DIALOG_BYTES: usize = 1900;

/// An event that is about one request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Numbered {
    request_id: String,
}

impl PageState {
    /// What the page's own session says. What the page is, and what it asks, is known however long its address or its question.
    pub(crate) fn hear(&self, session: &str, method: &str, params: &RawValue) {
        match method {
            page::LifecycleEvent::METHOD => self.lifecycle(params),
            page::FrameNavigated::METHOD => self.navigated(params),
            page::FrameStartedNavigating::METHOD => self.started(params),
            page::FrameStoppedLoading::METHOD => self.stopped(params),
            page::FrameScheduledNavigation::METHOD => self.scheduled(params),
            page::FrameClearedScheduledNavigation::METHOD => self.unscheduled(params),
            page::NavigatedWithinDocument::METHOD => self.moved_within(params),
            page::FrameRequestedNavigation::METHOD => self.asked_for_page(params),
            page::WindowOpen::METHOD => self.opens_page(),
            page::JavascriptDialogOpening::METHOD => self.dialog_opening(params),
            network::LoadingFailed::METHOD => self.broke(method, params),
            page::JavascriptDialogClosed::METHOD => self.dialog_closed(),
            page::FileChooserOpened::METHOD => self.chooser_opened(session, params),
            inspector::TargetCrashed::METHOD => self.crashed(),
            inspector::TargetReloadedAfterCrash::METHOD => self.recovered(),
            _ => self.hear_talk(method, params),
        }
    }

    /// What the session of a frame in another process says, or of a worker: what it logs and asks for is the page's. Where the page is, it does
    /// not know.
    pub(in crate::page) fn hear_part(&self, session: &str, method: &str, params: &RawValue) {
        match method {
            page::FileChooserOpened::METHOD => self.chooser_opened(session, params),
            page::FrameNavigated::METHOD => self.lose_chooser(session),
            _ if method.starts_with("Network.") => {
                self.hear_talk(method, params);
                // The few that are about no request change nothing; what is too large was not noted.
                let about = Some(params.get()).filter(|text| text.len() <= MAX_EVENT_BYTES).map(|text| lenient::read(text.as_bytes()));
                if let Some(Ok(Numbered { request_id })) = about {
                    self.inner().traffic.is_of(&request_id, session);
                }
            }
            _ => self.hear_talk(method, params),
        }
    }

    /// What is logged, and what is asked of the network.
    fn hear_talk(&self, method: &str, params: &RawValue) {
        if params.get().len() > MAX_EVENT_BYTES {
            if method == runtime::ConsoleAPICalled::METHOD || method == runtime::ExceptionThrown::METHOD {
                self.inner().log.push("warning", &format!("({} bytes were logged at once; too many to keep)", params.get().len()));
            }
            return;
        }
        if let Some((level, text)) = console::entry(method, params) {
            self.inner().log.push(level, &text);
            return;
        }
        let mut inner = self.inner();
        traffic::note(&mut inner.traffic, method, params);
        inner.beyond.note(method);
        drop(inner);
        if method.starts_with("Network.") {
            self.traffic_changed.send_replace(());
        }
    }

    fn lifecycle(&self, params: &RawValue) {
        // The most frequent event by far, and only one of its names matters.
        if !params.get().contains("\"load\"") {
            return;
        }
        let Some(event) = read::<page::LifecycleEvent>(params) else { return };
        if event.name != "load" || event.frame_id != self.main_frame {
            return;
        }
        self.progress.send_modify(|progress| {
            // Chromium leaves the news of a commit out when one navigation overtakes another; the load still says it.
            if progress.loader != event.loader_id {
                progress.commit(event.loader_id);
                progress.unreachable = false;
            }
            progress.loaded = true;
        });
    }

    fn navigated(&self, params: &RawValue) {
        let Some(event) = read::<page::FrameNavigated>(params) else { return };
        let frame = event.frame;
        if frame.parent_id.is_some() {
            return;
        }
        let unreachable = frame.unreachable_url.is_some();
        let broke_off = {
            let mut inner = self.inner();
            inner.url = frame.unreachable_url.unwrap_or_else(|| frame.url + &frame.url_fragment.unwrap_or_default());
            inner.title = String::new();
            inner.chooser = None;
            inner.failed_before = None;
            inner.log.document_left();
            inner.traffic.moved_to(&frame.loader_id);
            !unreachable && inner.traffic.of(&frame.loader_id).is_some_and(|request| request.failure.is_some())
        };
        self.traffic_changed.send_replace(());
        self.recovered();
        self.progress.send_modify(|progress| {
            progress.commit(frame.loader_id);
            // A page from the back/forward cache is there at once and loads nothing.
            progress.loaded = broke_off || event.kind == "BackForwardCacheRestore";
            progress.stopped = progress.loaded;
            (progress.unreachable, progress.broke_off) = (unreachable, broke_off);
        });
    }

    /// A document of which not all comes never says that it has loaded. One that was stopped did not break off: somebody wanted it so.
    fn broke(&self, method: &str, params: &RawValue) {
        self.hear_talk(method, params);
        let Some(event) = read::<network::LoadingFailed>(params) else { return };
        self.progress.send_if_modified(|progress| {
            let is_document = progress.loader == event.request_id && !progress.loaded;
            if is_document {
                progress.loaded = true;
                progress.broke_off = !event.canceled.unwrap_or_default();
            }
            is_document
        });
    }

    fn started(&self, params: &RawValue) {
        let Some(event) = read::<page::FrameStartedNavigating>(params).filter(|event| event.frame_id == self.main_frame) else { return };
        if !event.navigation_type.to_lowercase().contains("samedocument") {
            self.progress.send_modify(|progress| {
                progress.started += 1;
                progress.underway = true;
                (progress.bound_for, progress.bound_loader) = (event.url, event.loader_id);
            });
        }
    }

    /// Also of one that came to nothing: a download, an empty answer. A document that asked for such a one while it loaded, or that stopped itself
    /// (`window.stop`), never says that it has loaded, and there is no more to come.
    fn stopped(&self, params: &RawValue) {
        if read::<page::FrameStoppedLoading>(params).is_some_and(|event| event.frame_id == self.main_frame) {
            self.progress.send_modify(|progress| {
                progress.fruitless += u64::from(progress.underway);
                (progress.loaded, progress.stopped) = (true, true);
                progress.underway = false;
            });
        }
    }

    /// A refresh says how long it will take; a script's wish is for at once.
    fn scheduled(&self, params: &RawValue) {
        let event = read::<page::FrameScheduledNavigation>(params).filter(|event| event.frame_id == self.main_frame);
        if event.is_some_and(|event| event.delay < BEGIN.as_secs_f64() && !is_within(&self.url(), &event.url)) {
            self.progress.send_modify(|progress| progress.scheduled = true);
        }
    }

    fn unscheduled(&self, params: &RawValue) {
        if read::<page::FrameClearedScheduledNavigation>(params).is_some_and(|event| event.frame_id == self.main_frame) {
            self.progress.send_modify(|progress| progress.scheduled = false);
        }
    }

    fn moved_within(&self, params: &RawValue) {
        let Some(event) = read::<page::NavigatedWithinDocument>(params).filter(|event| event.frame_id == self.main_frame) else { return };
        self.inner().url = event.url;
        self.progress.send_modify(|progress| progress.moves += 1);
    }

    /// It is in the session's list by now.
    pub(in crate::page) fn download_began(&self) {
        self.progress.send_modify(|progress| progress.downloads += 1);
    }

    fn asked_for_page(&self, params: &RawValue) {
        let Some(event) = read::<page::FrameRequestedNavigation>(params) else { return };
        match event.disposition.as_str() {
            "newTab" | "newWindow" => {
                self.inner().asked.add(event.url);
                self.opens_page();
            }
            "currentTab" if event.frame_id == self.main_frame && !is_within(&self.url(), &event.url) => {
                self.progress.send_modify(|progress| progress.requested += 1);
            }
            _ => {}
        }
    }

    fn opens_page(&self) {
        self.progress.send_modify(|progress| progress.new_pages += 1);
    }

    fn dialog_opening(&self, params: &RawValue) {
        // One that was too long to be carried is open all the same.
        let event = read::<page::JavascriptDialogOpening>(params).unwrap_or_else(|| page::JavascriptDialogOpening {
            kind: "dialog".into(),
            message: "(too long to be read)".into(),
            ..page::JavascriptDialogOpening::default()
        });
        let dialog = Dialog { kind: event.kind, text: readable(event.message) };
        let mut inner = self.inner();
        let number = self.progress.borrow().dialogs + 1;
        inner.dialog = Some(OpenDialog { dialog: dialog.clone(), default_prompt: event.default_prompt, number });
        self.progress.send_modify(|progress| progress.dialogs = number);
        inner.tell(PageEvent::DialogOpened(dialog));
    }

    fn chooser_opened(&self, session: &str, params: &RawValue) {
        let Some(open) = read(params).and_then(|event| OpenChooser::of(session, event)) else { return };
        let mut inner = self.inner();
        inner.tell(PageEvent::ChooserOpened(open.chooser));
        inner.chooser = Some(open);
    }

    fn crashed(&self) {
        let mut inner = self.inner();
        inner.dialog = None;
        let first = self.progress.send_if_modified(|progress| {
            let alive = progress.life == Life::Alive;
            if alive {
                progress.life = Life::Crashed;
            }
            alive
        });
        if first {
            inner.tell(PageEvent::Crashed);
        }
    }

    /// Another document is there: no dialog is open, and what crashed is back.
    fn recovered(&self) {
        self.dialog_closed();
        self.progress.send_if_modified(|progress| {
            let crashed = progress.life == Life::Crashed;
            if crashed {
                progress.life = Life::Alive;
            }
            crashed
        });
    }
}

/// As much of a dialog's words as anybody reads, and how many there are; whoever tells of it shows that much.
fn readable(text: String) -> String {
    let end = text.floor_char_boundary(MAX_DIALOG_BYTES);
    if end == text.len() { text } else { format!("{}… ({} characters in all)", &text[..end], text.chars().count()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Both documents may be there before the answer to `Page.navigate` is, which names the first.
    #[test]
    fn a_document_that_sent_the_page_on_at_once_was_shown() {
        let state = PageState::new("main", "about:blank".into());
        for loader in ["first", "second"] {
            let frame = json!({"frame": {"id": "main", "loaderId": loader, "url": "http://a.test/", "domainAndRegistry": "",
                "securityOrigin": "", "mimeType": "text/html"}, "type": "Navigation"});
            state.hear("S", page::FrameNavigated::METHOD, &RawValue::from_string(frame.to_string()).unwrap());
        }
        let progress = state.watch().borrow().clone();
        assert_eq!((progress.commits, progress.loader.as_str()), (2, "second"));
        assert!(progress.has_shown("first") && progress.has_shown("second") && !progress.has_shown("third"));
    }

    /// The reader may be at the next dialog before whoever answered the first hears that it did.
    #[test]
    fn an_answer_that_is_heard_of_late_does_not_hide_the_next_dialog() {
        let state = PageState::new("main", "about:blank".into());
        let opens = |text: &str| {
            let dialog = json!({"url": "", "frameId": "main", "message": text, "type": "alert", "hasBrowserHandler": false});
            state.hear("S", page::JavascriptDialogOpening::METHOD, &RawValue::from_string(dialog.to_string()).unwrap());
        };
        opens(&"x".repeat(2_000_000));
        assert!(state.dialog().unwrap().dialog.text.ends_with("xx… (2000000 characters in all)"));
        state.hear("S", page::JavascriptDialogOpening::METHOD, &RawValue::from_string("{}".into()).unwrap());
        assert_eq!(state.dialog().unwrap().dialog.text, "(too long to be read)");
        opens("first");
        let answered = state.dialog().unwrap();
        state.hear(
            "S",
            page::JavascriptDialogClosed::METHOD,
            &RawValue::from_string(json!({"result": true, "userInput": ""}).to_string()).unwrap(),
        );
        opens("second");
        state.dialog_answered(answered.number);
        let open = state.dialog().unwrap();
        assert_eq!(open.dialog.text, "second");
        state.dialog_answered(open.number);
        assert!(state.dialog().is_none());
    }
}
