//! What the client asked and nobody has answered yet. When a daemon is gone, the ledger says which requests may
//! be sent again and which must be answered here. Bounded: first the texts are no longer kept, then requests are refused.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use serde_json::Value;
use tabmux_core::{Code, Fault};

use super::answer;
use super::glimpse::{CallShape, call_shape, with_wait};

/// Unanswered requests of one client.
const MAX_ENTRIES: usize = 65_536;
/// Text of unanswered requests that is kept for sending again.
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;
/// A request that was there each time a daemon died is not tried a fourth time.
const MAX_SENDS: u8 = 3;

/// Methods that change nothing, or whose repetition does not matter.
const REPEATABLE: [&str; 10] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "completion/complete",
];

#[derive(Debug)]
pub(super) struct Ledger {
    /// Of what does not say for how long it may be waited for.
    deadline: Duration,
    entries: HashMap<Key, Entry>,
    kept_bytes: usize,
    requests: u64,
    /// The last line wholly written, if it was a request.
    last_written: Option<Key>,
    /// Since when somebody waits without a break.
    waiting_since: Option<Instant>,
    /// Answered here because the daemon was silent; what it says to them later nobody waits for.
    given_up: HashSet<Key>,
}

/// An id as the ledger compares it: its JSON text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(String);

/// A line on its way to the daemon, and the request it is, if it is one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) key: Option<Key>,
    /// With its newline.
    pub(super) line: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    order: u64,
    id: Value,
    method: String,
    shape: CallShape,
    /// `None` when the ledger keeps no more text.
    line: Option<Vec<u8>>,
    delivery: Delivery,
    sends: u8,
    /// Since when its client waits.
    since: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// Not wholly written to a daemon, so no daemon can have begun it.
    Waiting,
    Written,
}

/// How a daemon went.
#[derive(Clone, Copy, Debug)]
pub(super) enum Parting<'a> {
    Crash {
        read_only_tools: &'a HashSet<String>,
        tail: Tail,
    },
    /// On purpose: nothing is repeated but what never left us.
    Goodbye,
    /// It had nothing to do and has begun nothing since; whatever reached it meanwhile goes to the next one.
    Empty,
    /// There is none to be had; everything ends here.
    NoDaemon {
        fault: &'a Fault,
    },
}

/// Whether a daemon that died had read all that was written to it. The kernel says so: a socket that is closed with
/// something unread resets the other side. Then the last line was not wholly read, so nobody has begun it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    Read,
    Unread,
}

/// What becomes of the unanswered requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// For the next daemon, in the order they came.
    pub(super) again: Vec<Outgoing>,
    /// Lines for the client.
    pub(super) answers: Vec<Vec<u8>>,
}

/// What is said when a daemon that is there answers nobody.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GivenUp {
    /// For the daemon, should it go on.
    pub(super) cancels: Vec<Vec<u8>>,
    /// For the client.
    pub(super) answers: Vec<Vec<u8>>,
}

impl Key {
    pub(super) fn of(id: &Value) -> Self {
        Self(id.to_string())
    }
}

impl Ledger {
    pub(super) fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            entries: HashMap::new(),
            kept_bytes: 0,
            requests: 0,
            last_written: None,
            waiting_since: None,
            given_up: HashSet::new(),
        }
    }

    /// Whether everything was answered.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Notes a request before it is sent. `Err` is the answer when too many are unanswered.
    pub(super) fn note(&mut self, id: Value, method: String, line: &[u8]) -> Result<Key, Vec<u8>> {
        let shape = if method == "tools/call" { call_shape(line) } else { CallShape::default() };
        if self.entries.len() >= MAX_ENTRIES {
            let message = format!("{MAX_ENTRIES} requests are unanswered already.");
            let fault = Fault::new(Code::QueueFull, message, "Wait for answers, then go on.");
            return Err(refuse(&id, &method, &shape, &fault));
        }
        let keep = self.kept_bytes + line.len() <= MAX_KEPT_BYTES;
        self.kept_bytes += if keep { line.len() } else { 0 };
        self.requests += 1;
        let key = Key::of(&id);
        let line = keep.then(|| line.to_vec());
        let since = Instant::now();
        if self.entries.is_empty() {
            self.waiting_since = Some(since);
        }
        self.given_up.remove(&key);
        let entry = Entry { order: self.requests, id, method, shape, line, delivery: Delivery::Waiting, sends: 0, since };
        if let Some(former) = self.entries.insert(key.clone(), entry) {
            self.forget_text(&former);
        }
        Ok(key)
    }

    /// A line is wholly written: this request, or something else.
    pub(super) fn written(&mut self, key: Option<Key>) {
        if let Some(entry) = key.as_ref().and_then(|key| self.entries.get_mut(key)) {
            entry.delivery = Delivery::Written;
            entry.sends += 1;
        }
        self.last_written = key;
    }

    /// The request was answered, or its client no longer wants to know. Gives its method.
    pub(super) fn settle(&mut self, id: &Value) -> Option<String> {
        let entry = self.entries.remove(&Key::of(id))?;
        self.forget_text(&entry);
        if self.entries.is_empty() {
            self.entries.shrink_to_fit();
        }
        Some(entry.method)
    }

    /// `None` when nobody waits.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        self.waiting_since.filter(|_| !self.entries.is_empty())
    }

    /// Whether this answers what was given up.
    pub(super) fn came_too_late(&mut self, id: &Value) -> bool {
        !self.given_up.is_empty() && self.given_up.remove(&Key::of(id))
    }

    /// The daemon is there and silent: whatever should have been answered by now is answered here.
    pub(super) fn give_up(&mut self, now: Instant, fault: &Fault) -> GivenUp {
        let mut given_up = GivenUp::default();
        let over = |entry: &Entry| now.duration_since(entry.since) >= entry.shape.timeout.unwrap_or(self.deadline);
        let mut over: Vec<_> =
            self.entries.iter().filter(|(_, entry)| over(entry)).map(|(key, entry)| (entry.order, key.clone())).collect();
        over.sort_unstable_by_key(|(order, _)| *order);
        for (_, key) in over {
            let Some(entry) = self.entries.remove(&key) else { continue };
            self.forget_text(&entry);
            given_up.cancels.push(answer::cancelled(&entry.id));
            given_up.answers.push(entry.last_word(Parting::NoDaemon { fault }));
            if self.given_up.len() < MAX_ENTRIES {
                self.given_up.insert(key);
            }
        }
        given_up
    }

    pub(super) fn judge(&mut self, parting: Parting<'_>) -> Verdict {
        let last = self.last_written.take();
        if let (Parting::Crash { tail: Tail::Unread, .. }, Some(entry)) = (parting, last.and_then(|key| self.entries.get_mut(&key))) {
            entry.delivery = Delivery::Waiting;
        }
        let mut entries: Vec<(Key, Entry)> = std::mem::take(&mut self.entries).into_iter().collect();
        entries.sort_unstable_by_key(|(_, entry)| entry.order);
        self.kept_bytes = 0;
        self.given_up.clear();
        let mut verdict = Verdict::default();
        for (key, mut entry) in entries {
            if entry.may_go_again(parting)
                && let Some(line) = entry.line.clone()
            {
                entry.delivery = Delivery::Waiting;
                self.kept_bytes += line.len();
                let line = if entry.method == "tools/call" { with_wait(&line, entry.since.elapsed()) } else { line };
                verdict.again.push(Outgoing { key: Some(key.clone()), line });
                self.entries.insert(key, entry);
            } else {
                verdict.answers.push(entry.last_word(parting));
            }
        }
        verdict
    }

    fn forget_text(&mut self, entry: &Entry) {
        self.kept_bytes -= entry.line.as_ref().map_or(0, Vec::len);
    }
}

impl Entry {
    fn may_go_again(&self, parting: Parting<'_>) -> bool {
        let waiting = self.delivery == Delivery::Waiting;
        match parting {
            Parting::NoDaemon { .. } => false,
            Parting::Goodbye => waiting,
            Parting::Empty => true,
            Parting::Crash { .. } if self.sends >= MAX_SENDS => false,
            Parting::Crash { read_only_tools, .. } => waiting || self.changes_nothing(read_only_tools),
        }
    }

    fn changes_nothing(&self, read_only_tools: &HashSet<String>) -> bool {
        let reads = self.shape.tool.as_ref().is_some_and(|tool| read_only_tools.contains(tool));
        REPEATABLE.contains(&self.method.as_str()) || (self.method == "tools/call" && reads)
    }

    fn last_word(&self, parting: Parting<'_>) -> Vec<u8> {
        let unknown;
        let fault = match parting {
            Parting::NoDaemon { fault } => fault,
            Parting::Crash { read_only_tools, .. } if self.changes_nothing(read_only_tools) => {
                unknown = answer::given_up(self.shape.tool.as_deref(), self.sends);
                &unknown
            }
            _ => {
                unknown = answer::outcome_unknown(self.shape.tool.as_deref());
                &unknown
            }
        };
        refuse(&self.id, &self.method, &self.shape, fault)
    }
}

fn refuse(id: &Value, method: &str, shape: &CallShape, fault: &Fault) -> Vec<u8> {
    if method == "tools/call" { answer::failed_call(id, shape, fault) } else { answer::failed_request(id, fault) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ledger() -> Ledger {
        Ledger::new(Duration::from_secs(30))
    }

    fn reads() -> HashSet<String> {
        HashSet::from(["list_sessions".to_owned()])
    }

    fn call(ledger: &mut Ledger, id: u32, tool: &str) -> Key {
        let line = format!("{{\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\"}}}}\n");
        ledger.note(json!(id), "tools/call".into(), line.as_bytes()).unwrap()
    }

    fn ids(answers: &[Vec<u8>]) -> Vec<Value> {
        answers.iter().map(|line| serde_json::from_slice::<Value>(line).unwrap()["id"].clone()).collect()
    }

    /// S1.26
    #[test]
    fn after_a_crash_reads_go_again_in_order_and_writes_have_an_unknown_outcome() {
        let mut ledger = ledger();
        let keys = [call(&mut ledger, 1, "list_sessions"), call(&mut ledger, 2, "navigate"), call(&mut ledger, 3, "list_sessions")];
        let list = ledger.note(json!("x"), "tools/list".into(), b"{}\n").unwrap();
        for key in keys.iter().chain([&list]) {
            ledger.written(Some(key.clone()));
        }
        let verdict = ledger.judge(Parting::Crash { read_only_tools: &reads(), tail: Tail::Read });
        let again: Vec<_> = verdict.again.iter().map(|out| out.key.clone().unwrap()).collect();
        assert_eq!(again, [keys[0].clone(), keys[2].clone(), list]);
        let answer: Value = serde_json::from_slice(&verdict.answers[0]).unwrap();
        assert_eq!((verdict.answers.len(), &answer["id"], &answer["result"]["isError"]), (1, &json!(2), &json!(true)));
        assert_eq!(answer["result"]["_meta"]["tabmux/error"]["code"], "outcome_unknown");
        assert!(answer["result"]["content"][0]["text"].as_str().unwrap().starts_with("[outcome_unknown]"));
        assert_eq!(answer["result"].get("resultType"), None);
    }

    #[test]
    fn a_write_that_never_left_goes_again_whatever_happened() {
        for parting in [Parting::Goodbye, Parting::Crash { read_only_tools: &HashSet::new(), tail: Tail::Read }] {
            let mut ledger = ledger();
            let key = call(&mut ledger, 1, "navigate");
            let verdict = ledger.judge(parting);
            assert_eq!((verdict.again[0].key.as_ref(), verdict.answers.len()), (Some(&key), 0));
        }
    }

    /// S1.26: a write is repeated only when it is sure that nobody has begun it.
    #[test]
    fn a_write_the_dead_daemon_had_not_read_goes_to_the_next_one() {
        let reads = HashSet::new();
        let crash = |tail| Parting::Crash { read_only_tools: &reads, tail };
        let two_written = || {
            let mut ledger = ledger();
            for id in [1, 2] {
                let key = call(&mut ledger, id, "navigate");
                ledger.written(Some(key));
            }
            ledger
        };
        let verdict = two_written().judge(crash(Tail::Unread));
        assert_eq!((verdict.again.len(), ids(&verdict.answers)), (1, vec![json!(1)]), "the last one only: of the others it is not known");
        assert_eq!(two_written().judge(crash(Tail::Read)).again, []);
        let mut ledger = two_written();
        ledger.written(None);
        assert_eq!(ledger.judge(crash(Tail::Unread)).again, [], "what was not read is something else");
        let mut ledger = two_written();
        ledger.judge(crash(Tail::Unread));
        assert_eq!(ledger.judge(crash(Tail::Unread)).answers.len(), 0, "not written to the next one yet");
    }

    #[test]
    fn after_a_goodbye_even_reads_are_answered_here() {
        let mut ledger = ledger();
        let key = call(&mut ledger, 1, "list_sessions");
        ledger.written(Some(key.clone()));
        let verdict = ledger.judge(Parting::Goodbye);
        assert_eq!((verdict.again.len(), ids(&verdict.answers)), (0, vec![json!(1)]));
    }

    #[test]
    fn what_reached_a_daemon_at_its_empty_exit_goes_to_the_next_one() {
        let mut ledger = ledger();
        let key = call(&mut ledger, 1, "navigate");
        ledger.written(Some(key.clone()));
        let verdict = ledger.judge(Parting::Empty);
        assert_eq!((verdict.again[0].key.as_ref(), verdict.answers.len()), (Some(&key), 0));
    }

    #[test]
    fn a_read_that_kills_every_daemon_is_given_up() {
        let mut ledger = ledger();
        let key = call(&mut ledger, 1, "list_sessions");
        for _ in 0..2 {
            ledger.written(Some(key.clone()));
            assert_eq!(ledger.judge(Parting::Crash { read_only_tools: &reads(), tail: Tail::Read }).again.len(), 1);
        }
        ledger.written(Some(key.clone()));
        let verdict = ledger.judge(Parting::Crash { read_only_tools: &reads(), tail: Tail::Read });
        assert_eq!((verdict.again.len(), verdict.answers.len()), (0, 1));
        let text = String::from_utf8(verdict.answers[0].clone()).unwrap();
        assert!(text.contains("[cancelled] The daemon died 3 times while list_sessions") && text.contains("nothing was changed"), "{text}");
    }

    #[test]
    fn without_a_daemon_every_request_gets_its_own_kind_of_error() {
        let mut ledger = ledger();
        call(&mut ledger, 1, "navigate");
        ledger.note(json!(2), "initialize".into(), b"{}\n").unwrap();
        let fault = Fault::new(Code::PolicyDenied, "Blocked.", "Allow it.");
        let answers = ledger.judge(Parting::NoDaemon { fault: &fault }).answers;
        let [tool, request] = [0, 1].map(|n| serde_json::from_slice::<Value>(&answers[n]).unwrap());
        assert_eq!(tool["result"]["content"][0]["text"], "[policy_denied] Blocked. Allow it.");
        assert_eq!(
            (&request["error"]["data"]["code"], &request["error"]["message"]),
            (&json!("policy_denied"), &json!("[policy_denied] Blocked. Allow it."))
        );
    }

    #[test]
    fn a_stateless_call_gets_a_complete_result() {
        let mut ledger = ledger();
        let line =
            br#"{"id":1,"method":"tools/call","params":{"name":"n","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let key = ledger.note(json!(1), "tools/call".into(), line).unwrap();
        ledger.written(Some(key.clone()));
        let answer: Value = serde_json::from_slice(&ledger.judge(Parting::Goodbye).answers[0]).unwrap();
        assert_eq!(answer["result"]["resultType"], "complete");
    }

    #[test]
    fn what_is_over_is_given_up_once_and_called_off() {
        let mut ledger = ledger();
        let line = br#"{"id":1,"method":"tools/call","params":{"name":"navigate","arguments":{"timeout":3000}}}"#;
        ledger.note(json!(1), "tools/call".into(), line).unwrap();
        call(&mut ledger, 2, "navigate");
        let (now, fault) = (Instant::now(), Fault::new(Code::Timeout, "Silent.", "Wake it."));
        assert_eq!(ledger.give_up(now, &fault), GivenUp::default(), "it has time");
        let given_up = ledger.give_up(now + Duration::from_secs(3), &fault);
        let cancel: Value = serde_json::from_slice(&given_up.cancels[0]).unwrap();
        assert_eq!((&cancel["method"], &cancel["params"]["requestId"]), (&json!("notifications/cancelled"), &json!(1)));
        assert_eq!((given_up.cancels.len(), ids(&given_up.answers)), (1, vec![json!(1)]));
        assert_eq!(ids(&ledger.give_up(now + Duration::from_secs(30), &fault).answers), [json!(2)]);
        assert_eq!((ledger.waiting_since(), ledger.kept_bytes), (None, 0));
        assert_eq!([1, 1, 3].map(|id| ledger.came_too_late(&json!(id))), [true, false, false]);
        call(&mut ledger, 2, "navigate");
        assert!(!ledger.came_too_late(&json!(2)), "asked again under the same id");
    }

    #[test]
    fn what_is_settled_is_forgotten() {
        let mut ledger = ledger();
        call(&mut ledger, 1, "navigate");
        assert_eq!(ledger.settle(&json!(1)).as_deref(), Some("tools/call"));
        assert_eq!(ledger.settle(&json!(1)), None);
        assert_eq!((ledger.judge(Parting::Goodbye), ledger.kept_bytes), (Verdict::default(), 0));
    }

    #[test]
    fn the_ledger_is_bounded_in_text_and_in_number() {
        let mut ledger = ledger();
        let big = vec![b'x'; MAX_KEPT_BYTES - 1];
        ledger.note(json!(0), "ping".into(), &big).unwrap();
        ledger.note(json!(1), "ping".into(), b"{}").unwrap();
        assert!(ledger.kept_bytes <= MAX_KEPT_BYTES);
        assert_eq!(ids(&ledger.judge(Parting::Crash { read_only_tools: &reads(), tail: Tail::Read }).answers), [json!(1)]);
        for id in 1..MAX_ENTRIES {
            ledger.note(json!(id), "ping".into(), b"").unwrap();
        }
        let refused: Value = serde_json::from_slice(&ledger.note(json!("more"), "ping".into(), b"").unwrap_err()).unwrap();
        assert_eq!((&refused["id"], &refused["error"]["data"]["code"]), (&json!("more"), &json!("queue_full")));
    }
}
