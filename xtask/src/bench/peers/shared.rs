//! One MCP server on stdio behind which several agents stand: each call waits for the line with its id.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::bench::client;

pub(super) struct SharedLines {
    child: Child,
    state: Arc<Mutex<State>>,
}

struct State {
    input: Option<ChildStdin>,
    next_id: u64,
    /// Who waits for which id. Dropped when the server ends, which wakes all of them.
    waiting: HashMap<u64, Sender<Value>>,
    ended: bool,
}

impl SharedLines {
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let state = State { input: child.stdin.take(), next_id: 0, waiting: HashMap::new(), ended: false };
        let state = Arc::new(Mutex::new(state));
        let readers = Arc::clone(&state);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
                let waiting = message["id"].as_u64().and_then(|id| locked(&readers).waiting.remove(&id));
                if let Some(waiting) = waiting {
                    // Whoever asked may have given up.
                    let _ = waiting.send(message);
                }
            }
            let mut state = locked(&readers);
            state.ended = true;
            state.waiting.clear();
        });
        Ok(Self { child, state })
    }

    pub(super) fn initialize(&self) -> Result<()> {
        self.round_trip("initialize", &client::initialize_parameters())?;
        write(&mut locked(&self.state), &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    }

    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Result<Value> {
        self.round_trip("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    fn round_trip(&self, method: &str, parameters: &Value) -> Result<Value> {
        let (sender, answer) = channel();
        {
            let mut state = locked(&self.state);
            if state.ended {
                bail!("the server has ended");
            }
            state.next_id += 1;
            let id = state.next_id;
            state.waiting.insert(id, sender);
            write(&mut state, &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}))?;
        }
        answer.recv().with_context(|| format!("the server ended in the middle of {method}"))
    }
}

impl Drop for SharedLines {
    fn drop(&mut self) {
        drop(locked(&self.state).input.take());
        let _ = self.child.wait();
    }
}

fn write(state: &mut State, message: &Value) -> Result<()> {
    let input = state.input.as_mut().context("stdin is open until drop")?;
    input.write_all(format!("{message}\n").as_bytes())?;
    Ok(input.flush()?)
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_out_of_order_reach_who_asked_and_an_end_wakes_all() {
        let mut server = Command::new("sh");
        // Reads two calls, answers the second first, reads a third and ends.
        let second_first = r#"read a; read b; echo '{"id":2,"result":"two"}'; echo '{"id":1,"result":"one"}'; read c"#;
        server.args(["-c", second_first]);
        let lines = SharedLines::start(server).unwrap();
        std::thread::scope(|scope| {
            let calls = [(); 2].map(|()| scope.spawn(|| lines.call("t", &json!({})).unwrap()));
            for answer in calls.map(|call| call.join().unwrap()) {
                let expected = if answer["id"] == 1 { "one" } else { "two" };
                assert_eq!(answer["result"], expected);
            }
        });
        assert!(lines.call("t", &json!({})).is_err());
    }
}
