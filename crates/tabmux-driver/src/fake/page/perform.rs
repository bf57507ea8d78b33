//! What the scripts of a fake page do.

use serde_json::Value;
use tokio::sync::oneshot;

use super::life::browser_gone;
use super::{FakePage, State};
use crate::fake::locked;
use crate::fake::script::Script;
use crate::fake::visit::{self, Visit};
use crate::fake::world::FakeWorld;
use crate::{Chooser, Dialog, DialogAnswer, DriverError, Page, PageEvent, Result};

#[derive(Debug)]
pub(super) struct OpenDialog {
    pub(super) dialog: Dialog,
    pub(super) answer: oneshot::Sender<DialogAnswer>,
}

impl FakePage {
    pub(super) async fn perform(&self, script: Script) -> Result<Value> {
        match script {
            Script::Literal(value) => return Ok(value),
            Script::Href => return Ok(self.url().into()),
            Script::Title => return Ok(locked(&self.state).title().into()),
            Script::SetTitle(title) => {
                locked(&self.state).title = Some(title.clone());
                return Ok(title.into());
            }
            Script::Field => return Ok(locked(&self.state).form.name().into()),
            Script::Cookies => return Ok(self.cookies.text().into()),
            Script::SetCookie(cookie) => {
                self.cookies.set(&cookie, &visit::host(&self.url()));
                return Ok(cookie.into());
            }
            Script::Sleep { milliseconds } => {
                tokio::time::sleep(Script::sleep(milliseconds)).await;
                return Ok(format!("slept {milliseconds}").into());
            }
            Script::Hang => std::future::pending::<()>().await,
            Script::Throw(text) => return Err(DriverError::ScriptFailed(text)),
            Script::Panic(text) => panic!("{text}"),
            Script::Count => return Ok(locked(&self.state).counted().into()),
            Script::Log { level, text } => locked(&self.state).log.push(level, &text),
            Script::Append(text) => {
                locked(&self.state).added.push_str(&text);
                self.life.send_modify(|_| ());
            }
            Script::Ask { kind, text } => return self.ask(kind, text).await,
            Script::Crash => {
                self.crash();
                return Err(DriverError::PageCrashed);
            }
            Script::Open { url } => {
                let url = Visit::to(&url)?.url;
                if let Some(context) = self.context.upgrade() {
                    context.open_popup(url, &self.handle)?;
                    locked(&self.state).opened += 1;
                }
            }
            Script::Copy(text) => self.world(|world| world.copy(text)),
            Script::Paste => return Ok(self.world(FakeWorld::copied).into()),
            Script::Timezone => return Ok(self.world(FakeWorld::timezone).into()),
            Script::OpenChooser => {
                let mut state = locked(&self.state);
                state.chooser = Some(Chooser::One);
                state.tell(PageEvent::ChooserOpened(Chooser::One));
            }
            Script::Close => self.close_itself(),
            Script::EndBrowser => {
                if let Some(browser) = self.context.upgrade().and_then(|context| context.browser.upgrade()) {
                    browser.die();
                }
                return Err(browser_gone());
            }
        }
        Ok(Value::Null)
    }

    fn world<T: Default>(&self, ask: impl FnOnce(&FakeWorld) -> T) -> T {
        self.context.upgrade().map(|context| ask(&context.world)).unwrap_or_default()
    }

    async fn ask(&self, kind: &str, text: String) -> Result<Value> {
        let dialog = Dialog { kind: kind.to_owned(), text };
        let answer = locked(&self.state).open(dialog)?;
        // The sender goes away unanswered only when the document ends, which `evaluate` hears of by itself.
        let Ok(answer) = answer.await else { return std::future::pending().await };
        Ok(match (kind, answer) {
            ("confirm", answer) => (answer != DialogAnswer::Dismiss).into(),
            ("prompt", DialogAnswer::Accept { prompt }) => prompt.unwrap_or_default().into(),
            _ => Value::Null,
        })
    }
}

impl State {
    fn counted(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    fn open(&mut self, dialog: Dialog) -> Result<oneshot::Receiver<DialogAnswer>> {
        if let Some(OpenDialog { dialog: Dialog { kind, text }, .. }) = &self.dialog {
            return Err(DriverError::DialogOpen { kind: kind.clone(), text: text.clone() });
        }
        let (answer, answered) = oneshot::channel();
        self.tell(PageEvent::DialogOpened(dialog.clone()));
        self.dialogs += 1;
        self.dialog = Some(OpenDialog { dialog, answer });
        Ok(answered)
    }
}
