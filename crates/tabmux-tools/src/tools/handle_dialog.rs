//! Answers an open dialog. It never queues: the call that opened the dialog may be what the queue waits for.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::{Code, Fault, TabId};
use tabmux_driver::{Dialog, DialogAnswer, DriverError};

use crate::arguments::{of_page, own_schema};
use crate::reply::{failed, place};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "handle_dialog",
    group: Group::Act,
    level: Level::Core,
    description: "Answer the open alert, confirm or prompt.",
    effect: Effect::Write,
    own_schema: own_schema::<HandleDialog>,
    run: Run::Page(&Answer),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct HandleDialog {
    /// False dismisses
    #[serde(default = "yes")]
    accept: bool,
    /// Answer to a prompt
    prompt_text: Option<String>,
}

struct Answer;

fn yes() -> bool {
    true
}

#[async_trait]
impl PageTool for Answer {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let (answer, verb) = match of_page(&args)? {
            HandleDialog { accept: true, prompt_text } => (DialogAnswer::Accept { prompt: prompt_text }, "Accepted"),
            HandleDialog { accept: false, prompt_text: None } => (DialogAnswer::Dismiss, "Dismissed"),
            HandleDialog { accept: false, prompt_text: Some(_) } => {
                return Err(Fault::new(Code::BadArgument, "A dismissed prompt takes no promptText.", "Leave out promptText, or accept."));
            }
        };
        let (tab, page) = cx.page().await?;
        let dialog = match page.answer_dialog(answer).await {
            Err(DriverError::NoDialog) => return Err(none_open(tab, &cx.asking())),
            answered => answered.map_err(failed)?,
        };
        let text = match dialog.kind.as_str() {
            "beforeunload" => format!("{verb} the beforeunload: the page is at {}.", place(&*page)),
            kind => format!("{verb} the {kind}: {}.", visible::quoted(&dialog.text)),
        };
        Ok(Reply::text(text).about(tab, &page).with("dialog", dialog.kind))
    }

    fn skips_queue(&self) -> bool {
        true
    }
}

/// Another tab's dialog is named and not answered: who does not name a tab may not know whose it is.
fn none_open(tab: TabId, elsewhere: &[(TabId, Dialog)]) -> Fault {
    match elsewhere {
        [] => failed(DriverError::NoDialog),
        [(other, dialog)] => Fault::new(
            Code::BadArgument,
            format!("No dialog is open in tab {tab}; tab {other} has one ({}): {}.", dialog.kind, visible::quoted(&dialog.text)),
            format!("Call handle_dialog with tabId {other}."),
        ),
        several => {
            let tabs: Vec<String> = several.iter().map(|(other, _)| other.to_string()).collect();
            let message = format!("No dialog is open in tab {tab}; tabs {} have one each.", tabs.join(", "));
            Fault::new(Code::BadArgument, message, "Call handle_dialog with the tabId of one of these.")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tabmux_core::Code;

    use crate::testing::{TestPages, text};

    /// The text of the answer, and what the waiting script got.
    async fn answered(script: &str, args: Value) -> (String, String) {
        let pages = TestPages::new().await;
        let waiting = pages.asking(script).await;
        let reply = pages.call("handle_dialog", args).await.unwrap();
        (text(&reply).to_owned(), waiting.await.unwrap().unwrap().to_string())
    }

    #[tokio::test]
    async fn the_answer_reaches_the_waiting_script() {
        let pair = |text: &str, value: &str| (text.to_owned(), value.to_owned());
        assert_eq!(answered("confirm(\"sure?\")", json!({})).await, pair("Accepted the confirm: \"sure?\".", "true"));
        assert_eq!(answered("confirm(\"sure?\")", json!({ "accept": false })).await, pair("Dismissed the confirm: \"sure?\".", "false"));
        assert_eq!(answered("prompt(\"who?\")", json!({ "promptText": "Ann" })).await, pair("Accepted the prompt: \"who?\".", "\"Ann\""));
    }

    #[tokio::test]
    async fn without_a_dialog_there_is_nothing_to_answer() {
        let pages = TestPages::new().await;
        let fault = pages.call("handle_dialog", json!({})).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] No dialog is open. Call handle_dialog only after a reply said that a dialog is open.");
        let fault = pages.call("handle_dialog", json!({ "accept": false, "promptText": "x" })).await.unwrap_err();
        assert_eq!(fault.code, Code::BadArgument);
    }
}
