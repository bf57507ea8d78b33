//! The floor: a bare client on the debugging pipe of the same browser, one `Runtime.evaluate` after the other. No
//! routing, no sessions of ours, nothing between the pipe and the clock.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::agent::is_root;

pub(in crate::bench) struct RawPipe {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    next_id: u64,
}

const PLAIN: [&str; 6] = [
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-startup-window",
    "--disable-background-networking",
    "--disable-gpu",
    "--disable-renderer-backgrounding",
];

impl RawPipe {
    /// Starts a browser of its own, as anybody would, and goes to the page.
    pub(in crate::bench) fn open(browser: &Path, profile: &Path, url: &str) -> Result<Self> {
        let mut flags = PLAIN.map(str::to_owned).to_vec();
        flags.extend(is_root().then(|| "--no-sandbox".to_owned()));
        Self::open_with(browser, &flags, profile, url)
    }

    /// The same with these flags.
    pub(super) fn open_with(browser: &Path, flags: &[String], profile: &Path, url: &str) -> Result<Self> {
        // The shell puts the pipe where Chromium looks for it, descriptors 3 and 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"]).arg(browser);
        command.args(flags).arg(format!("--user-data-dir={}", profile.display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("stdin is piped")?;
        let output = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let mut raw = Self { child, input, output, session: None, next_id: 0 };
        raw.open_context(url)?;
        Ok(raw)
    }

    /// A context of its own, at this page; the next calls are for it.
    pub(super) fn open_context(&mut self, url: &str) -> Result<()> {
        let context = self.browser("Target.createBrowserContext", &json!({}))?["browserContextId"].clone();
        let target = self.browser("Target.createTarget", &json!({"url": "about:blank", "browserContextId": context}))?["targetId"].clone();
        let session = self.browser("Target.attachToTarget", &json!({"targetId": target, "flatten": true}))?["sessionId"].clone();
        self.session = session.as_str().map(str::to_owned);
        self.call("Page.enable", &json!({}))?;
        self.call("Page.navigate", &json!({"url": url}))?;
        self.event("Page.loadEventFired")
    }

    /// The same question as tabmux asks, with the same parameters.
    pub(super) fn evaluate(&mut self, expression: &str) -> Result<String> {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true});
        Ok(self.call("Runtime.evaluate", &parameters)?["result"]["value"].to_string())
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        let session = self.session.clone();
        self.call_in(session.as_deref(), method, parameters)
    }

    /// Asks the browser itself.
    pub(in crate::bench) fn browser(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.call_in(None, method, parameters)
    }

    fn call_in(&mut self, session: Option<&str>, method: &str, parameters: &Value) -> Result<Value> {
        self.next_id += 1;
        let mut message = json!({"id": self.next_id, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut frame = message.to_string().into_bytes();
        frame.push(0);
        self.input.write_all(&frame)?;
        loop {
            let mut answer = self.read()?;
            if answer["id"] == self.next_id {
                if !answer["error"].is_null() {
                    bail!("{method}: {answer}");
                }
                return Ok(answer["result"].take());
            }
        }
    }

    fn event(&mut self, name: &str) -> Result<()> {
        while self.read()?["method"] != name {}
        Ok(())
    }

    fn read(&mut self) -> Result<Value> {
        let mut frame = Vec::new();
        if self.output.read_until(0, &mut frame)? == 0 {
            bail!("the browser ended");
        }
        frame.pop();
        Ok(serde_json::from_slice(&frame)?)
    }
}

impl Drop for RawPipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
