//! Every reply to its own caller, sessions that never wait for each other, and queues that end.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use support::{Lab, SOON, at_once};

/// S0.16, S1.37, S1.46, S2.25, S2.35
#[test]
fn eight_clients_with_equal_request_ids_get_their_own_replies() {
    let lab = Lab::new();
    let clients: Vec<_> = at_once((0..8).collect(), |number| {
        let client = lab.ready_client();
        // Equal names on purpose: names are the caller's own. Two, so that no queue reaches its bound.
        for session in ["even", "odd"] {
            client.ok("start_browser", &json!({"sessionId": session}));
        }
        (number, client)
    });
    at_once(clients, |(number, client)| {
        let arguments = |n: u64| json!({"sessionId": if n.is_multiple_of(2) { "even" } else { "odd" }, "script": format!("\"client {number} call {n};\"")});
        for n in 0..100 {
            client.send_as(&json!(n), "tools/call", &json!({"name": "evaluate", "arguments": arguments(n)}));
        }
        for n in 0..100 {
            let reply = client.finish_call(&json!(n), Duration::from_secs(60));
            assert!(reply.text().contains(&format!("client {number} call {n};")), "client {number} call {n} got {reply:?}");
        }
    });
}

/// S0.17, S2.15
#[test]
fn calls_of_one_session_run_in_the_order_they_came() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "one"}));
    let calls: Vec<_> = (0..50).map(|_| client.start_call("evaluate", &json!({"sessionId": "one", "script": "count()"}))).collect();
    for (at, id) in calls.iter().enumerate() {
        let reply = client.finish_call(id, SOON);
        assert!(reply.text().lines().any(|line| line.trim() == (at + 1).to_string()), "call {at}: {reply:?}");
    }
}

/// S0.16, S0.35, S2.16
#[test]
fn a_call_of_twenty_seconds_does_not_delay_another_session() {
    let lab = Lab::new();
    let (slow, quick) = (lab.ready_client(), lab.ready_client());
    slow.ok("start_browser", &json!({"sessionId": "slow"}));
    slow.ok("start_browser", &json!({"sessionId": "beside"}));
    quick.ok("start_browser", &json!({"sessionId": "quick"}));
    let sleeping = slow.start_call("evaluate", &json!({"sessionId": "slow", "script": "sleep(20000)"}));
    let began = Instant::now();
    for _ in 0..100 {
        quick.ok("evaluate", &json!({"script": "1"}));
        slow.ok("evaluate", &json!({"sessionId": "beside", "script": "1"}));
    }
    let took = began.elapsed();
    println!("200 calls beside a sleeping session took {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(slow.try_reply(&sleeping, Duration::ZERO).is_err(), "the slow call still runs");
    // Cancelled, it lets the next one in at once.
    let behind = slow.start_call("evaluate", &json!({"sessionId": "slow", "script": "\"next\""}));
    slow.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": sleeping, "reason": "test"}}));
    let next = slow.finish_call(&behind, Duration::from_secs(5));
    assert!(next.text().contains("next"), "{next:?}");
}

/// S2.16
#[test]
fn a_late_call_answers_timeout_and_does_not_hold_up_the_queue() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "one"}));
    let late = client.start_call("evaluate", &json!({"sessionId": "one", "script": "hang()", "timeout": 500}));
    let wrong = client.start_call("evaluate", &json!({"sessionId": "one", "script": "throw(\"no\")"}));
    let panics = client.start_call("evaluate", &json!({"sessionId": "one", "script": "panic(\"ouch\")"}));
    let next = client.start_call("evaluate", &json!({"sessionId": "one", "script": "\"fine\""}));
    let timeout = client.finish_call(&late, SOON);
    assert_eq!(timeout.code(), "timeout", "{timeout:?}");
    assert_eq!(timeout.result()["sessionId"], "one", "the error names its session");
    assert!(client.finish_call(&wrong, SOON).failed());
    assert_eq!(client.finish_call(&panics, SOON).code(), "internal");
    assert!(client.finish_call(&next, SOON).text().contains("fine"));
}

/// S1.37, S2.11, S2.15
#[test]
fn ten_thousand_requests_to_one_session_meet_a_bound_and_nobody_else_notices() {
    const FLOOD: u64 = 10_000;
    let lab = Lab::new();
    let (flooder, other) = (lab.ready_client(), lab.ready_client());
    flooder.ok("start_browser", &json!({"sessionId": "full"}));
    other.ok("start_browser", &json!({"sessionId": "calm"}));
    let sleeping = flooder.start_call("evaluate", &json!({"sessionId": "full", "script": "sleep(50000)", "timeout": 120000}));
    let request = json!({"name": "evaluate", "arguments": {"sessionId": "full", "script": "\"served\"", "timeout": 120000}});
    let worst = std::thread::scope(|scope| {
        scope.spawn(|| (0..FLOOD).for_each(|n| flooder.send_as(&json!(format!("f{n}")), "tools/call", &request)));
        let timed = |_| {
            let began = Instant::now();
            other.ok("evaluate", &json!({"sessionId": "calm", "script": "1"}));
            began.elapsed()
        };
        (0..100).map(timed).max().unwrap()
    });
    println!("the slowest call beside the flood took {worst:?}");
    assert!(worst < Duration::from_secs(3), "{worst:?}");
    // What the queue took waits for the sleeper; all else has its answer before anything else happens.
    flooder.take_in_until_quiet(Duration::from_secs(2));
    let mut accepted = Vec::new();
    for n in 0..FLOOD {
        match flooder.try_reply(&json!(format!("f{n}")), Duration::ZERO) {
            Ok(reply) => assert_eq!(support::Reply(reply.clone()).code(), "queue_full", "{reply}"),
            Err(_) => accepted.push(n),
        }
    }
    println!("{} of {FLOOD} were queued; the others knew at once", accepted.len());
    assert!((1..=64).contains(&accepted.len()), "the bound is 64, but {} were taken", accepted.len());
    flooder.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": sleeping}}));
    for n in accepted {
        let reply = flooder.finish_call(&json!(format!("f{n}")), SOON);
        assert!(reply.text().contains("served"), "{reply:?}");
    }
}

/// Cancelled while it waited, a call never starts.
#[test]
fn cancelled_calls_never_run() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "one"}));
    let running = client.start_call("evaluate", &json!({"sessionId": "one", "script": "sleep(1000)"}));
    let queued = client.start_call("evaluate", &json!({"sessionId": "one", "script": "count()"}));
    client.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": queued}}));
    assert!(!client.finish_call(&running, SOON).failed());
    let count = client.ok("evaluate", &json!({"sessionId": "one", "script": "count()"}));
    assert!(count.text().lines().any(|line| line.trim() == "1"), "the cancelled call ran: {count:?}");
}

/// S1.38: `cargo xtask bench` has the numbers; this keeps the shape.
#[test]
fn the_cost_of_a_call_does_not_grow_with_the_number_of_sessions() {
    let lab = Lab::new();
    let client = lab.ready_client();
    let median = || {
        let timed = |_| {
            let began = Instant::now();
            client.ok("evaluate", &json!({"sessionId": "s0", "script": "1"}));
            began.elapsed()
        };
        let mut times: Vec<_> = (0..200).map(timed).collect();
        times.sort();
        times[100]
    };
    client.ok("start_browser", &json!({"sessionId": "s0"}));
    median();
    let alone = median();
    for n in 1..300 {
        client.ok("start_browser", &json!({"sessionId": format!("s{n}")}));
    }
    let among = median();
    println!("a call takes {alone:?} alone and {among:?} among 300 sessions");
    assert!(among < alone * 3 + Duration::from_millis(1), "{alone:?} alone, {among:?} among 300");
}
