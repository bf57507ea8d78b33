//! What an agent and a person see and keep of a page: pictures, paper, requests, cookies. Over MCP and the command line.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};
use support::{Lab, Reply};

fn images(reply: &Reply) -> Vec<Value> {
    let content = reply.0["result"]["content"].as_array().unwrap().clone();
    content.into_iter().filter(|part| part["type"] == "image").collect()
}

#[test]
fn a_screenshot_is_a_small_picture_in_the_reply() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": "https://a.test/"}));
    let reply = client.ok("screenshot", &json!({"fullPage": true}));
    let [image] = &images(&reply)[..] else { panic!("one picture: {reply:?}") };
    assert_eq!(image["mimeType"], "image/jpeg");
    assert!(image["data"].as_str().unwrap().starts_with("/9j/"), "{image}");
    assert!(reply.text().starts_with("1×1 jpeg of https://a.test/."), "{}", reply.text());
    assert_eq!(reply.result()["tabId"], "t1");
    assert_eq!(images(&client.ok("screenshot", &json!({"format": "png"})))[0]["mimeType"], "image/png");
    client.fails("screenshot", &json!({"selector": "#nowhere"}), "element_not_found");
}

#[test]
fn pictures_and_paper_go_into_absolute_files_of_ours_alone() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": "https://a.test/"}));
    for (tool, name, start) in [("screenshot", "shot.png", &b"\x89PNG"[..]), ("pdf", "page.pdf", b"%PDF")] {
        let file = lab.path().join(name);
        let reply = client.ok(tool, &json!({"file": file}));
        assert!(images(&reply).is_empty() && reply.text().starts_with(&format!("Saved {}: ", file.display())), "{reply:?}");
        assert!(std::fs::read(&file).unwrap().starts_with(start), "{name}");
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o7777, 0o600, "{name}");
        client.fails(tool, &json!({"file": name}), "bad_argument");
        let link = lab.path().join(format!("link-{name}"));
        std::os::unix::fs::symlink(lab.path().join("elsewhere"), &link).unwrap();
        client.fails(tool, &json!({"file": link}), "policy_denied");
    }
    assert!(!lab.path().join("elsewhere").exists());
}

#[test]
fn the_network_of_one_agent_is_not_that_of_another() {
    let lab = Lab::new();
    let (one, other) = (lab.ready_client(), lab.ready_client());
    one.ok("navigate", &json!({"url": "https://one.test/"}));
    other.ok("navigate", &json!({"url": "https://other.test/"}));
    let listed = one.ok("network", &json!({}));
    assert!(listed.text().starts_with("#1 GET 200 document https://one.test/"), "{}", listed.text());
    let urls: Vec<_> = listed.structured()["requests"].as_array().unwrap().iter().map(|request| request["url"].clone()).collect();
    assert_eq!(urls, ["https://one.test/"]);
    assert_eq!(one.ok("network", &json!({"filter": "other"})).structured()["requests"], json!([]));
}

/// S3.30
#[test]
fn a_cookie_is_set_seen_and_cleared_by_its_own_agent_only() {
    let lab = Lab::new();
    let (one, other) = (lab.ready_client(), lab.ready_client());
    for (client, cookie) in [(&one, ("agent1_token", "secret123")), (&other, ("agent2_token", "xyz789"))] {
        client.fails("cookies", &json!({}), "session_required");
        client.ok("navigate", &json!({"url": "https://a.test/"}));
        client.ok("cookies", &json!({"set": [{"name": cookie.0, "value": cookie.1, "url": "https://a.test/"}]}));
    }
    let names = |client: &support::Mcp| {
        let listed = client.ok("cookies", &json!({})).structured();
        listed["cookies"].as_array().unwrap().iter().map(|cookie| cookie["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names(&one), names(&other)), (vec!["agent1_token".to_owned()], vec!["agent2_token".to_owned()]));
    assert_eq!(one.ok("evaluate", &json!({"script": "document.cookie"})).result()["value"], "agent1_token=secret123");
    one.ok("cookies", &json!({"clear": true}));
    assert_eq!((names(&one), names(&other)), (vec![], vec!["agent2_token".to_owned()]));
}

#[test]
fn the_command_line_names_files_from_where_it_runs() {
    let lab = Lab::new();
    let here = lab.path().join("here");
    std::fs::create_dir(&here).unwrap();
    let run = |arguments: &[&str]| lab.run_command(lab.command(arguments).current_dir(&here));
    assert_eq!(run(&["new", "-s", "web", "https://a.test/"]).code, 0);
    for (arguments, name, start) in [
        (&["screenshot"][..], "screenshot.png", &b"\x89PNG"[..]),
        (&["screenshot", "-t", "web", "--full-page", "full.jpg"], "full.jpg", b"\xff\xd8\xff"),
        (&["call", "screenshot", "file=called.png"], "called.png", b"\x89PNG"),
        (&["call", "pdf", "file=page.pdf", "landscape=true"], "page.pdf", b"%PDF"),
    ] {
        let printed = run(arguments);
        assert_eq!(printed.code, 0, "{printed:?}");
        assert!(printed.stdout.starts_with(&format!("Saved {}: ", here.join(name).display())), "{printed:?}");
        assert!(std::fs::read(here.join(name)).unwrap().starts_with(start), "{name}");
    }
    let missing = run(&["screenshot", "part.png", "--selector", "#nowhere"]);
    assert!(missing.code == 1 && missing.stderr.contains("[element_not_found]") && !here.join("part.png").exists(), "{missing:?}");
    assert_eq!(run(&["screenshot", "--full-page", "--selector", "p"]).code, 2);
    assert!(run(&["call", "network"]).stdout.contains("GET 200 document https://a.test/"));
    assert_eq!(run(&["call", "cookies", "--json"]).json()["structured"], json!({"cookies": []}));
}
