//! One call at a time per session, in the order they came; a bound on what waits; deadlines and cancels anywhere.

use std::time::Duration;

use serde_json::{Value, json};
use tabmux_core::Code;
use tokio_util::sync::CancellationToken;

use crate::testing::{Agent, House, eventually};

/// An agent with a session `s` that has a page.
async fn with_session(house: &House) -> Agent {
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    agent
}

fn script(text: &str) -> Value {
    json!({"sessionId": "s", "script": text})
}

/// Nothing of a call is left: not in the registry, not in the hub's maps.
fn assert_quiet(house: &House) {
    let counts = house.hub.look(tabmux_core::Registry::counts);
    assert_eq!((counts.running, counts.waiting, house.hub.look(tabmux_core::Registry::visits)), (0, 0, 0));
    assert_eq!(house.hub.lock().enders.len(), 0);
}

/// S2.15, S0.17, C3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_one_session_run_in_order_and_each_gets_its_own_result() {
    let house = House::new();
    let agent = with_session(&house).await;
    let mut calls = vec![agent.begin("evaluate", script("sleep(20)")).await];
    for _ in 0..50 {
        calls.push(agent.begin("evaluate", script("count()")).await);
    }
    for (at, call) in calls.into_iter().enumerate() {
        let said = call.await.unwrap().unwrap();
        let expected = if at == 0 { "\"slept 20\"".to_owned() } else { at.to_string() };
        assert_eq!(said.text.lines().next(), Some(expected.as_str()));
        assert_eq!(said.result.get("queuedBehind").is_some(), at > 0, "the queue is said: {}", said.text);
    }
    assert_quiet(&house);
}

/// S2.16
#[tokio::test]
async fn a_failing_call_does_not_stall_the_queue() {
    let house = House::new();
    let agent = with_session(&house).await;
    let mut calls = Vec::new();
    for text in ["throw(\"no\")", "panic(\"x\")", "crash()", "1"] {
        calls.push(agent.begin("evaluate", script(text)).await);
    }
    let mut codes = Vec::new();
    for call in calls {
        codes.push(call.await.unwrap().map(|said| said.text).map_err(|fault| fault.code));
    }
    assert_eq!(codes, [Err(Code::BadArgument), Err(Code::Internal), Err(Code::TabCrashed), Err(Code::TabCrashed)]);
    let back = agent.ok("navigate", json!({"sessionId": "s", "url": "http://a.test/"})).await;
    assert!(!back.text.contains("crashed"), "its answers said so: {}", back.text);
    assert_eq!(agent.eval("s", "1").await.unwrap(), "1");
    assert_eq!(house.hub.counters.panics.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_quiet(&house);
}

/// S2.16: the deadline counts the time in the queue, and what was stopped has stopped.
#[tokio::test]
async fn a_call_that_takes_too_long_ends_at_its_deadline_and_the_next_one_runs() {
    let house = House::new();
    let agent = with_session(&house).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let hangs = agent.begin("evaluate", json!({"sessionId": "s", "script": "hang()", "timeout": 2000})).await;
    let impatient = agent.begin("evaluate", json!({"sessionId": "s", "script": "1", "timeout": 500})).await;
    let patient = agent.begin("evaluate", json!({"sessionId": "s", "script": "2", "timeout": 3000})).await;
    assert_eq!(impatient.await.unwrap().unwrap_err().code, Code::Timeout);
    assert_eq!(began.elapsed().as_millis() / 100, 5);
    assert_eq!(hangs.await.unwrap().unwrap_err().code, Code::Timeout);
    assert_eq!(patient.await.unwrap().unwrap().text.lines().next(), Some("2"));
    assert_eq!(began.elapsed().as_millis() / 100, 20);
    assert_quiet(&house);
}

/// Who is told that the time was up is told what for, and where the page is then.
#[tokio::test]
async fn a_call_that_ran_out_of_time_says_what_it_waited_for() {
    let house = House::new();
    let agent = with_session(&house).await;
    agent.ok("navigate", json!({"url": "http://a.test/?title=One"})).await;
    tokio::time::pause();
    let at = "the page is at http://a.test/?title=One — \"One\".";
    for (tool, args, said) in [
        ("wait_for", json!({"text": "Done", "timeout": 300}), "Text \"Done\" did not appear within 300 ms"),
        (
            "wait_for",
            json!({"gone": "fake", "url": "*/x", "timeout": 300}),
            "The page did not come to \"*/x\", and \"fake\" did not go away within 300 ms",
        ),
        (
            "navigate",
            json!({"url": "http://b.test/?delay=9000", "timeout": 500}),
            "http://b.test/?delay=9000 did not finish loading within 500 ms",
        ),
        ("evaluate", json!({"script": "hang()"}), "evaluate did not finish within 30000 ms"),
    ] {
        let began = tokio::time::Instant::now();
        let fault = agent.fault(tool, args.clone()).await;
        assert_eq!((fault.code, fault.message), (Code::Timeout, format!("{said}; {at}")));
        assert!(fault.hint.contains("timeout (ms, at most 600000)"), "{}", fault.hint);
        let given = args["timeout"].as_u64().unwrap_or(30_000);
        assert_eq!(began.elapsed().as_millis() / 10, u128::from(given / 10), "at the deadline, and no later");
    }
    let hangs = agent.begin("evaluate", json!({"script": "hang()", "timeout": 5000})).await;
    let waits = agent.fault("evaluate", json!({"script": "1", "timeout": 500})).await;
    assert!(waits.message.contains("was not begun") && waits.code == Code::Timeout, "{waits}");
    hangs.await.unwrap().unwrap_err();
    assert_quiet(&house);
}

/// C1: 30 s where the call does not say.
#[tokio::test]
async fn a_call_without_a_timeout_has_the_settings_deadline() {
    let house = House::new();
    let agent = with_session(&house).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let fault = agent.fault("evaluate", script("hang()")).await;
    assert_eq!((fault.code, began.elapsed().as_secs()), (Code::Timeout, 30));
    assert!(fault.hint.contains("600000"), "{fault}");
}

/// The deadline is the caller's: what it waited for at a daemon that died is part of it.
#[tokio::test]
async fn a_call_that_was_waited_for_before_has_what_is_left_of_its_time() {
    let house = House::new();
    let agent = with_session(&house).await;
    tokio::time::pause();
    for (waited, left) in [(20, 10), (40, 0)] {
        let began = tokio::time::Instant::now();
        let fault = agent.fault_after(Duration::from_secs(waited), "evaluate", script("hang()")).await;
        assert_eq!((fault.code, began.elapsed().as_secs()), (Code::Timeout, left));
        assert!(fault.message.contains("within 30000 ms"), "{fault}");
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_whether_it_waits_or_runs() {
    let house = House::new();
    let agent = with_session(&house).await;
    let (stop_running, stop_waiting) = (CancellationToken::new(), CancellationToken::new());
    let running = agent.begin_cancellable("evaluate", script("hang()"), stop_running.clone()).await;
    let waiting = agent.begin_cancellable("evaluate", script("count()"), stop_waiting.clone()).await;
    let last = agent.begin("evaluate", script("count()")).await;
    eventually("the first runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    stop_waiting.cancel();
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::Cancelled);
    assert_eq!(house.hub.look(|registry| registry.counts().waiting), 1);
    stop_running.cancel();
    assert_eq!(running.await.unwrap().unwrap_err().code, Code::Cancelled);
    assert_eq!(last.await.unwrap().unwrap().text.lines().next(), Some("1"), "the cancelled call never ran");
    assert_quiet(&house);
}

#[tokio::test]
async fn a_caller_that_stops_listening_ends_its_call() {
    let house = House::new();
    let agent = with_session(&house).await;
    let running = agent.begin("evaluate", script("hang()")).await;
    let waiting = agent.begin("evaluate", script("count()")).await;
    waiting.abort();
    running.abort();
    assert_eq!(agent.eval("s", "count()").await.unwrap().lines().next(), Some("1"));
    assert_quiet(&house);
}

/// A call that was given up does not stay in the session's mailbox until its turn would have come.
#[tokio::test]
async fn calls_given_up_take_no_room_while_another_runs() {
    let house = House::new();
    let agent = with_session(&house).await;
    let blocker = agent.begin("evaluate", script("hang()")).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    for _ in 0..500 {
        let cancel = CancellationToken::new();
        let call = agent.begin_cancellable("evaluate", script("1"), cancel.clone()).await;
        assert_eq!(house.session().waiting().0, 1);
        cancel.cancel();
        assert_eq!(call.await.unwrap().unwrap_err().code, Code::Cancelled);
        assert_eq!(house.session().waiting().0, 0);
    }
    blocker.abort();
}

/// The bound is exactly `limits.queue`; what comes on top is answered at once, and others notice nothing.
#[tokio::test]
async fn ten_thousand_calls_to_one_session_keep_its_bound_and_disturb_nobody() {
    let house = House::with(|settings| settings.limits.queue = 10);
    let agent = with_session(&house).await;
    let other = house.agent("b");
    other.ok("start_browser", json!({"sessionId": "o"})).await;
    let blocker = agent.begin("evaluate", script("hang()")).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    let (mut waiting, mut refused) = (Vec::new(), 0);
    for _ in 0..10_000 {
        let call = agent.begin("evaluate", script("count()")).await;
        if call.is_finished() || house.hub.look(|registry| registry.counts().waiting) == waiting.len() {
            let fault = call.await.unwrap().unwrap_err();
            assert_eq!((fault.code, fault.message.as_str()), (Code::QueueFull, "10 calls already wait in session 's'."));
            refused += 1;
        } else {
            waiting.push(call);
        }
    }
    assert_eq!((waiting.len(), refused), (10, 9_990));
    assert_eq!(other.eval("o", "1").await.unwrap(), "1");
    blocker.abort();
    for (at, call) in waiting.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap().text.lines().next(), Some((at + 1).to_string().as_str()));
    }
    assert_quiet(&house);
}

/// S0.16: 20 s in one session delay no other.
#[tokio::test]
async fn a_slow_call_delays_no_other_session() {
    let house = House::new();
    let agent = with_session(&house).await;
    agent.ok("start_browser", json!({"sessionId": "t"})).await;
    let other = house.agent("b");
    other.ok("start_browser", json!({"sessionId": "s"})).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let slow = agent.begin("evaluate", script("sleep(20000)")).await;
    for _ in 0..100 {
        assert_eq!(agent.eval("t", "1").await.unwrap(), "1");
        assert_eq!(other.eval("s", "1").await.unwrap(), "1");
    }
    assert!(began.elapsed() < Duration::from_millis(100));
    assert_eq!(slow.await.unwrap().unwrap().text.lines().next(), Some("\"slept 20000\""));
    assert_eq!(began.elapsed().as_secs(), 20);
}

/// Many callers come, give up and are cut short at random moments; every call ends once and nothing is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_given_up_at_any_moment_leave_nothing_behind() {
    let house = House::new();
    let agent = with_session(&house).await;
    for round in 0..60u64 {
        let mut calls = Vec::new();
        for n in 0..20u64 {
            let cancel = CancellationToken::new();
            let text = if n % 5 == 0 { "sleep(1)" } else { "count()" };
            calls.push((agent.begin_cancellable("evaluate", script(text), cancel.clone()).await, cancel));
        }
        for (n, (call, cancel)) in calls.iter().enumerate() {
            match (round + n as u64) % 4 {
                0 => call.abort(),
                1 => cancel.cancel(),
                2 => tokio::task::yield_now().await,
                _ => {}
            }
        }
        for (call, _) in calls {
            if let Ok(Err(fault)) = call.await {
                assert_eq!(fault.code, Code::Cancelled, "{fault}");
            }
        }
    }
    eventually("all have left", || house.hub.look(tabmux_core::Registry::visits) == 0).await;
    assert_quiet(&house);
    assert!(agent.eval("s", "1").await.is_ok());
}

/// S2.25: callers may number their calls alike; nothing here depends on a caller's id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_callers_with_a_hundred_calls_each_get_their_own_answers() {
    let house = House::new();
    let mut agents = Vec::new();
    for n in 0..8 {
        let agent = house.agent(&format!("agent-{n}"));
        agent.ok("start_browser", json!({"sessionId": "same"})).await;
        agents.push(agent);
    }
    let mut calls = Vec::new();
    for id in 0..100 {
        for (n, agent) in agents.iter().enumerate() {
            let args = json!({"sessionId": "same", "script": format!("\"{n}/{id}\"")});
            let agent = agent.clone();
            calls.push((n, id, tokio::spawn(async move { agent.call("evaluate", args).await })));
        }
    }
    for (n, id, call) in calls {
        match call.await.unwrap() {
            Ok(said) => assert!(said.text.starts_with(&format!("\"{n}/{id}\"")), "{}", said.text),
            Err(fault) => assert_eq!(fault.code, Code::QueueFull),
        }
    }
    assert_quiet(&house);
}
