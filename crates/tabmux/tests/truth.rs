//! What agents are told is true, with the shipped binary on a real Chromium: nothing that failed is told as done, what an act
//! brought about is told with it, and what was read in one session holds in another.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use support::site::{Site, html, with};
use support::{Lab, SOON, at_once, process, until};

#[test]
fn an_act_that_leads_where_nothing_is_fails() {
    // The site's port is its own at 127.0.0.1 only, so at this address nobody listens.
    let page = "<title>Here</title><a id=dead>Go</a><form id=form><button id=send>Send</button></form><script>
        dead.href = form.action = location.origin.replace('127.0.0.1', '127.0.0.2') + '/nobody'</script>";
    let (lab, site) = (Lab::real(), Site::start(|_| page.into()));
    let client = lab.ready_client();
    for (tool, arguments) in [
        ("click_element", json!({"selector": "#dead"})),
        ("click_element", json!({"selector": "#send"})),
        ("press_key", json!({"selector": "#dead", "key": "Enter"})),
    ] {
        client.ok("navigate", &json!({"url": site.at("/")}));
        let text = client.fails(tool, &arguments, "navigation_failed");
        assert!(text.contains("could not go where that leads") && text.contains("/nobody"), "{text}");
    }
    // What was wrong before is nothing new.
    client.ok("evaluate", &json!({"script": "1"}));
}

/// A script says what it came to before the page has gone anywhere.
#[test]
fn a_script_that_sends_the_page_where_nothing_is_fails() {
    let page = "<title>Here</title><form id=form></form><iframe id=frame></iframe><script>
        const dead = form.action = location.origin.replace('127.0.0.1', '127.0.0.2') + '/nobody'</script>";
    let (lab, site) = (Lab::real(), Site::start(|_| page.into()));
    let client = lab.ready_client();
    for script in ["location.href = dead", "location.replace(dead); 1", "form.submit()"] {
        client.ok("navigate", &json!({"url": site.at("/")}));
        let text = client.fails("evaluate", &json!({ "script": script }), "navigation_failed");
        assert!(text.contains("could not go where that leads") && text.contains("/nobody"), "{script}: {text}");
    }
    client.ok("navigate", &json!({"url": site.at("/")}));
    client.fails("evaluate", &json!({"script": "if (confirm('Go?')) location.href = dead"}), "dialog_open");
    client.fails("handle_dialog", &json!({}), "navigation_failed");
}

/// Where a document sends the page as soon as it is there belongs to where it was sent; and an error page is told as one, however the
/// page came there.
#[test]
fn a_page_that_is_sent_on_to_where_nothing_is_is_told_as_not_reached() {
    const DEAD: &str = "<script>const dead = location.origin.replace('127.0.0.1', '127.0.0.2') + '/nobody'</script>";
    let site = Site::answering(|path| match path {
        "/at-once" => html(&format!("{DEAD}<script>location = dead</script>")),
        "/loaded" => html(&format!("{DEAD}<script>onload = () => {{ location = dead }}</script>")),
        "/refreshed" => html(&format!("{DEAD}<script>document.write(`<meta http-equiv=refresh content='0;url=${{dead}}'>`)</script>")),
        "/on" => html("<title>First</title><script>location = '/there'</script>"),
        "/there" => html("<title>There</title>"),
        _ => html(&format!("{DEAD}<title>Here</title><button id=later onclick='setTimeout(() => location = dead, 300)'>Later</button>")),
    });
    let lab = Lab::real();
    let client = lab.ready_client();
    for path in ["/at-once", "/loaded", "/refreshed"] {
        let text = client.fails("navigate", &json!({"url": site.at(path)}), "navigation_failed");
        assert!(text.contains("/nobody"), "{path}: {text}");
    }
    let text = client.ok("navigate", &json!({"url": site.at("/on")})).text();
    assert!(text.contains(&site.at("/there")) && text.contains("There"), "{text}");
    client.ok("navigate", &json!({"url": site.at("/")}));
    client.ok("click_element", &json!({"selector": "#later"}));
    client.ok("wait_for", &json!({"url": "**/nobody"}));
    for tool in ["snapshot", "read_text", "list_pages"] {
        let text = client.ok(tool, &json!({})).text();
        assert!(text.contains("could not be reached: net::ERR_CONNECTION_REFUSED"), "{tool}: {text}");
    }
    let listed = client.ok("list_pages", &json!({})).structured()["pages"][0].clone();
    assert_eq!((&listed["title"], &listed["unreachable"]), (&json!(""), &json!("net::ERR_CONNECTION_REFUSED")), "{listed}");
    // The next daemon knows it too.
    process::kill(lab.daemon_pid());
    let text = client.ok("list_pages", &json!({})).text();
    assert!(text.contains("could not be reached: net::ERR_CONNECTION_REFUSED"), "{text}");
    client.ok("navigate", &json!({"url": site.at("/")}));
    assert!(!client.ok("list_pages", &json!({})).text().contains("could not be reached"));
}

/// A refresh without delay, the classic way on: the answer is about the page it leads to, and so is the next call. One that leaves time to read stays.
#[test]
fn a_page_that_refreshes_at_once_is_told_as_the_one_it_leads_to() {
    let site = Site::answering(|path| match path {
        "/at-once" => html("<title>First</title><meta http-equiv=refresh content='0;url=/there'>"),
        "/soon" => html("<title>First</title><meta http-equiv=refresh content='0.2;url=/there'>"),
        "/later" => html("<title>First</title><meta http-equiv=refresh content='60;url=/there'>"),
        _ => html("<title>There</title><p>arrived"),
    });
    let lab = Lab::real();
    let client = lab.ready_client();
    for path in ["/at-once", "/soon"] {
        for round in 0..8 {
            let text = client.ok("navigate", &json!({"url": site.at(path)})).text();
            assert!(text.contains(&format!("{} — \"There\"", site.at("/there"))), "{path} {round}: {text}");
            let shown = client.ok("evaluate", &json!({"script": "document.body.innerText"})).text();
            assert!(shown.contains("arrived"), "{path} {round}: {shown}");
        }
    }
    let text = client.ok("navigate", &json!({"url": site.at("/later")})).text();
    assert!(text.contains("/later — \"First\""), "{text}");
}

/// Chromium passes nothing on to such a page; what keeps it is its server, and no script of its own.
#[test]
fn a_page_that_an_act_sent_to_a_silent_server_is_told_as_on_its_way() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("http://{}/nowhere", silent.local_addr().unwrap());
    let there = nowhere.clone();
    let (lab, site) = (Lab::real(), Site::start(move |_| format!("<title>Here</title><p>here<a id=go href='{there}'>Go</a>")));
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    client.ok("click_element", &json!({"selector": "#go"}));
    for (tool, args) in [("evaluate", json!({"script": "1", "timeout": 500})), ("wait_for", json!({"text": "never", "timeout": 500}))] {
        let text = client.fails(tool, &args, "timeout");
        let way = format!("It is on its way to {nowhere}, whose server has not answered; till then it answers nothing.");
        assert!(text.contains(&way) && text.contains("call it off with navigate") && !text.contains("script that kept"), "{tool}: {text}");
    }
    client.ok("navigate", &json!({"reload": true}));
    assert!(client.ok("read_text", &json!({})).text().contains("here"));
}

/// Nothing reaches such a page any more, from no side: neither another address nor a longer wait helps.
#[test]
fn a_page_whose_script_keeps_it_from_going_is_told_as_that_with_the_way_out() {
    let (lab, site) = (Lab::real(), Site::start(|path| format!("<title>{path}</title><p>here")));
    let client = lab.ready_client();
    for script in ["location = '/there'; for (;;);", "location = 'about:blank'; for (;;);", "for (;;) history.back()"] {
        let tab = client.ok("new_page", &json!({"url": site.at("/one")})).result()["tabId"].clone();
        client.ok("navigate", &json!({"url": site.at("/two")}));
        client.ok("evaluate", &json!({"script": format!("setTimeout(() => {{ {script} }}), 1")}));
        let held = |text: &str| text.contains("a script of the page that it is leaving keeps it from going");
        let way = |text: &str| text.contains("close_page") && text.contains("new_page") && !text.contains("has not answered");
        until("it is held", SOON, || held(&client.call("evaluate", &json!({"script": "1", "timeout": 500})).text()).then_some(()));
        for (tool, args) in
            [("navigate", json!({"url": site.at("/three"), "timeout": 3000})), ("wait_for", json!({"text": "never", "timeout": 500}))]
        {
            let text = client.fails(tool, &args, "timeout");
            assert!(held(&text) && way(&text), "{tool} after {script}: {text}");
        }
        client.ok("close_page", &json!({"tabId": tab}));
    }
    client.ok("new_page", &json!({"url": site.at("/one")}));
}

/// A move within the document is told after the answer to it.
#[test]
fn a_fragment_is_where_the_page_is() {
    let (lab, site) = (Lab::real(), Site::start(|_| "<title>One</title><h1>One</h1>".into()));
    let client = lab.ready_client();
    for place in ["/", "/#a", "/#b", "/#b", "/#c"] {
        let text = client.ok("navigate", &json!({"url": site.at(place)})).text();
        assert!(text.contains(&format!("{} —", site.at(place))), "{place}: {text}");
    }
}

/// Whatever way it opens, and though it comes up in a process of its own.
#[test]
fn a_page_that_an_act_opens_is_named_in_its_reply() {
    let page = "<a id=blank target=_blank href=/new>Blank</a><a id=kept target=_blank rel=opener href=/new>Kept</a>
        <button id=script onclick=\"window.open('/new')\">Script</button>";
    let (lab, site) = (Lab::real(), Site::start(move |_| page.into()));
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    for (at, selector) in ["#blank", "#kept", "#script", "#blank"].into_iter().enumerate() {
        let text = client.ok("click_element", &json!({ "selector": selector })).text();
        assert!(text.contains(&format!("A page opened tab t{}", at + 2)), "{selector}: {text}");
        assert_eq!(client.ok("list_pages", &json!({})).structured()["pages"].as_array().unwrap().len(), at + 2);
    }
    let text = client.ok("evaluate", &json!({"script": "void open('/new')"})).text();
    assert!(text.contains("A page opened tab t6"), "{text}");
}

/// Whoever changed it: no event of a browser tells of a title.
#[test]
fn a_title_is_told_as_it_is() {
    let page = "<title>One</title><a target=_blank href=/popup>Popup</a>";
    let (lab, site) = (Lab::real(), Site::start(move |path| if path == "/popup" { "<title>Popup</title>".into() } else { page.into() }));
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    client.ok("evaluate", &json!({"script": "document.title = 'Two'"}));
    let asserted = json!({"actions": [{"action": "assert", "title": {"equals": "Two"}}]});
    client.ok("execute_sequence", &asserted);
    client.ok("evaluate", &json!({"script": "document.title = 'Three'"}));
    client.ok("click_element", &json!({"selector": "a"}));
    let titles = || {
        let listed = client.ok("list_pages", &json!({})).structured();
        let titles: Vec<_> = listed["pages"].as_array().unwrap().iter().map(|page| page["title"].as_str().unwrap().to_owned()).collect();
        (titles == ["Three", "Popup"]).then_some(())
    };
    until("both are listed", SOON, titles);
}

/// Tab leads out of the last field, to where a browser has its own; keys are the page's all the same.
#[test]
fn a_key_that_is_pressed_after_tab_left_the_last_field_is_the_pages() {
    let page =
        "<!doctype html><button>One</button><script>const keys = []; addEventListener('keydown', (event) => keys.push(event.key))</script>";
    let (lab, site) = (Lab::real(), Site::start(move |_| page.into()));
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    for key in ["Tab", "Tab", "Escape", "x"] {
        client.ok("press_key", &json!({ "key": key }));
    }
    assert_eq!(client.ok("evaluate", &json!({"script": "keys"})).result()["value"], json!(["Tab", "Tab", "Escape", "x"]));
}

/// Also of a tab that is closed: a ref means one element of the session, or none.
#[test]
fn a_ref_of_one_tab_means_nothing_in_another() {
    let site = Site::answering(|path| html(&format!("<button onclick='window.hit = 1'>{path}</button>")));
    let lab = Lab::real();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/cancel")}));
    assert!(client.ok("snapshot", &json!({})).text().contains("e1 button"));
    for _ in 0..2 {
        client.ok("new_page", &json!({"url": site.at("/delete")}));
        let seen = client.ok("snapshot", &json!({})).text();
        assert!(!seen.contains("e1 button"), "{seen}");
        client.fails("click_element", &json!({"selector": "e1"}), "stale_ref");
        assert_eq!(client.ok("evaluate", &json!({"script": "window.hit ?? null"})).result()["value"], Value::Null);
        client.ok("close_page", &json!({"pageIdx": 1}));
    }
    client.ok("click_element", &json!({"selector": "e1"}));
}

/// What the page takes back a moment later, or never got, is not told as set.
#[test]
fn a_choice_or_a_text_that_the_page_does_not_keep_is_not_told_as_kept() {
    let page = "<!doctype html><select id=choice onchange=\"setTimeout(() => { this.value = 'a' })\"><option>a<option>b</select>
        <div id=anew></div><div id=rich contenteditable>a<br>b</div><script>
        const draw = (text) => { anew.innerHTML = `<input id=field value='${text}'>`; field.oninput = () => draw(field.value); }; draw('')</script>";
    let (lab, site) = (Lab::real(), Site::start(move |_| page.into()));
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    let value = |script: &str| client.ok("evaluate", &json!({ "script": script })).result()["value"].clone();
    for (tool, arguments) in
        [("select_option", json!({"selector": "#choice", "options": ["b"]})), ("set_value", json!({"selector": "#choice", "value": "b"}))]
    {
        let text = client.fails(tool, &arguments, "element_not_actionable");
        assert!(text.contains("did not keep the choice"), "{text}");
    }
    let text = client.fails("type_text", &json!({"selector": "#field", "text": "hello"}), "element_not_actionable");
    assert!(text.contains("went away while it was typed into: it got 1 of 5 keys"), "{text}");
    assert_eq!(value("field.value"), json!("h"));
    for text in ["a b", "a\nb", "a"] {
        client.ok("set_value", &json!({"selector": "#rich", "value": text}));
        assert_eq!(value("rich.innerText"), json!(text));
    }
}

/// What gives nothing to show leaves the page where it is, and that is said; so is what the page itself does not allow.
#[test]
fn an_act_that_leads_to_nothing_to_show_says_that_the_page_stayed() {
    let site = Site::answering(|path| match path {
        "/empty" => with("204 No Content", "text/html", "", ""),
        "/file" => with("200 OK", "text/plain", "Content-Disposition: attachment; filename=a.txt\r\n", "a file"),
        _ => with(
            "200 OK",
            "text/html",
            "Content-Security-Policy: form-action 'none'\r\n",
            "<title>Here</title><a id=empty href=/empty>Empty</a><a id=file href=/file>File</a><form action=/sent><button id=send>Send</button></form>",
        ),
    });
    let lab = Lab::real();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    for (tool, arguments) in [("click_element", json!({"selector": "#empty"})), ("click_element", json!({"selector": "#file"}))] {
        let text = client.ok(tool, &arguments).text();
        assert!(text.contains("sent elsewhere and stayed"), "{arguments}: {text}");
    }
    for path in ["/empty", "/file"] {
        let text = client.fails("navigate", &json!({"url": site.at(path)}), "navigation_failed");
        assert!(text.contains("the page stays where it was"), "{text}");
    }
    let text = client.ok("click_element", &json!({"selector": "#send"})).text();
    assert!(text.contains("sent elsewhere and stayed") && !text.contains("Now at"), "{text}");
    assert_eq!(client.ok("evaluate", &json!({"script": "document.title"})).result()["value"], "Here");
}

/// Files that the page does not keep: taken and gone, or never taken.
#[test]
fn files_that_the_page_does_not_keep_are_told_as_such() {
    let page = "<input type=file id=kept><input type=file id=emptied><input type=file id=gone><input type=file id=off disabled><script>
        window.heard = []; for (const one of document.querySelectorAll('input')) one.onchange = () => heard.push(one.id, one.files[0].name);
        emptied.addEventListener('change', () => { emptied.value = ''; }); gone.addEventListener('change', () => gone.remove());</script>";
    let (lab, site) = (Lab::real(), Site::start(|_| page.into()));
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    let file = lab.path().join("a.txt");
    std::fs::write(&file, "a").unwrap();
    for (selector, words) in
        [("#kept", "Gave 1 file to the page.\n"), ("#emptied", "emptied the input again"), ("#gone", "took the input away")]
    {
        let text = client.ok("upload_file", &json!({"paths": [file], "selector": selector})).text();
        assert!(format!("{text}\n").contains(words), "{selector}: {text}");
    }
    client.fails("upload_file", &json!({"paths": [file], "selector": "#off"}), "bad_argument");
    let heard = client.ok("evaluate", &json!({"script": "heard"})).result()["value"].clone();
    assert_eq!(heard, json!(["kept", "a.txt", "emptied", "a.txt", "gone", "a.txt"]));
}

#[test]
fn an_act_that_leads_to_a_site_that_is_not_allowed_fails() {
    let site = Site::start(|_| "<a id=away>Away</a><script>away.href = location.href.replace('127.0.0.1', 'localhost')</script>".into());
    let lab = Lab::with(&[("TABMUX_BROWSER", ""), ("TABMUX_ALLOW_DOMAINS", "127.0.0.1")]);
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    client.fails("click_element", &json!({"selector": "#away"}), "policy_denied");
}

#[test]
fn an_error_of_the_server_is_said() {
    let site = Site::answering(|path| match path {
        "/broken" => with("500 Internal Server Error", "text/html", "", "<h1>Broken</h1>"),
        _ => html("<a id=go href=/broken>Go</a>"),
    });
    let lab = Lab::real();
    let client = lab.ready_client();
    let text = client.ok("navigate", &json!({"url": site.at("/")})).text();
    assert!(!text.contains("HTTP"), "{text}");
    let text = client.ok("click_element", &json!({"selector": "#go"})).text();
    assert!(text.contains("(HTTP 500)") && text.contains("Broken"), "{text}");
    for tool in ["navigate", "new_page"] {
        let reply = client.ok(tool, &json!({"url": site.at("/broken")}));
        assert!(reply.text().contains("(HTTP 500)") && reply.result()["httpStatus"] == 500, "{reply:?}");
    }
    let text = client.ok("start_browser", &json!({"sessionId": "other", "navigationUrl": site.at("/broken")})).text();
    assert!(text.contains("HTTP 500"), "{text}");
}

#[test]
fn a_page_that_is_closed_under_an_act_is_an_error() {
    let (lab, site) = (Lab::real(), Site::start(|_| "<p>nothing to click".into()));
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    client.ok("new_page", &json!({"url": site.at("/")}));
    let late = client.start_call("click_element", &json!({"selector": "#never", "timeout": 60_000}));
    until("the call runs", SOON, || (lab.status()["calls"]["running"] == json!(1)).then_some(()));
    client.ok("close_page", &json!({"tabId": "t2"}));
    let ended = client.finish_call(&late, SOON);
    assert_eq!(ended.code(), "tab_gone", "{ended:?}");
}

/// What was done is told as done, what was not is told with what it waited for.
#[test]
fn a_call_that_runs_out_of_time_says_how_far_it_came() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let held = Arc::clone(&gate);
    let site = Site::answering(move |path| {
        if path.contains("never") {
            let open = held.0.lock().unwrap();
            drop(held.1.wait_timeout_while(open, Duration::from_secs(60), |open| !*open).unwrap());
        }
        html("<p>Half<a id=go href=/never-come>Go</a><img src=/never.png></p>")
    });
    let (lab, half) = (Lab::real(), site.at("/half"));
    let client = lab.ready_client();
    client.ok("new_page", &json!({}));
    let late = client.fails("navigate", &json!({"url": half, "timeout": 3000}), "timeout");
    let waits =
        format!("{half} did not finish loading within 3000 ms; the page is at {half} and still waits for {}.", site.at("/never.png"));
    assert!(late.contains(&waits), "{late}");
    let text = client.ok("click_element", &json!({"selector": "#go", "timeout": 3000})).text();
    let done = format!("The time was up before the page came to rest and still waits for {}", site.at("/never"));
    assert!(text.starts_with("Clicked e1 link \"Go\".") && text.contains(&done), "{text}");
    let never = site.at("/never-there");
    let late = client.fails("navigate", &json!({"url": never, "timeout": 1000}), "timeout");
    assert!(late.contains(&format!("{never} did not finish loading within 1000 ms; the page is at {half}")), "{late}");
    assert!(!late.contains(&format!("waits for {never}")), "it was called off: {late}");
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
}

/// A value the page takes back at once is not told as set.
#[test]
fn a_value_that_did_not_stick_is_an_error() {
    let site = Site::start(|_| "<input id=field oninput=\"this.value = ''\"><input id=fine>".into());
    let lab = Lab::real();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    client.fails("set_value", &json!({"selector": "#field", "value": "Ann"}), "element_not_actionable");
    client.ok("set_value", &json!({"selector": "#fine", "value": "Ann"}));
}

/// The server answers only after the page has been at rest for some frames: whoever looks at frames alone sees nothing.
#[test]
fn what_an_act_fetched_is_told_with_it() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let held = Arc::clone(&gate);
    let site = Site::answering(move |path| match path {
        "/data" => {
            let open = held.0.lock().unwrap();
            drop(held.1.wait_timeout_while(open, Duration::from_secs(60), |open| !*open).unwrap());
            html("It was saved")
        }
        "/rested" => {
            *held.0.lock().unwrap() = true;
            held.1.notify_all();
            html("")
        }
        _ => html(
            "<button id=save>Save</button><p id=out></p><script>save.onclick = () => {
               fetch('/data').then((reply) => reply.text()).then((text) => { out.textContent = text; });
               let frames = 6;
               const next = () => (--frames ? requestAnimationFrame(next) : navigator.sendBeacon('/rested'));
               next();
             };</script>",
        ),
    });
    let lab = Lab::real();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    client.ok("snapshot", &json!({}));
    let text = client.ok("click_element", &json!({"selector": "#save"})).text();
    // On a machine so busy that six frames take seconds it is said that more will come.
    assert!(text.contains("+ \"It was saved\"") || text.contains("still loads"), "{text}");
}

/// An answer that never comes holds nobody up for long, and is said.
#[test]
fn what_never_comes_is_not_waited_for() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let held = Arc::clone(&gate);
    let site = Site::answering(move |path| {
        if path == "/never" {
            let open = held.0.lock().unwrap();
            drop(held.1.wait_timeout_while(open, Duration::from_secs(60), |open| !*open).unwrap());
        }
        html("<button id=ask onclick=\"fetch('/never'); this.textContent = 'Asked'\">Ask</button>")
    });
    let lab = Lab::real();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    client.ok("snapshot", &json!({}));
    let text = client.ok("click_element", &json!({"selector": "#ask"})).text();
    assert!(text.contains("still loads"), "{text}");
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
}

#[test]
fn what_an_act_changed_in_a_frame_of_another_site_is_told_with_it() {
    let other = Site::start(|_| "<button onclick=\"this.textContent = 'Paid'\">Pay</button>".into());
    let far = other.at("/").replace("127.0.0.1", "localhost");
    let site = Site::start(move |_| format!("<h1>Shop</h1><iframe src='{far}'></iframe>"));
    let lab = Lab::real();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    let seen = until("the frame is there", SOON, || {
        let text = client.ok("snapshot", &json!({})).text();
        text.contains("button \"Pay\"").then_some(text)
    });
    let line = seen.lines().find(|line| line.contains("button \"Pay\"")).unwrap();
    let name = line.split_whitespace().find(|word| word.starts_with('e') && word[1..].parse::<u32>().is_ok()).unwrap();
    let text = client.ok("click_element", &json!({"selector": name})).text();
    assert!(text.contains("in a frame of http://localhost:") && text.contains(&format!("~ {name} button \"Paid\"")), "{text}");
}

const LOGIN: &str = "<title>Login</title><form onsubmit='logIn(); return false'><label>User <input id=user></label> \
    <label>Password <input id=word type=password></label><label>Role <select id=role><option>guest<option>admin</select></label> \
    <label><input type=checkbox id=stay> Stay</label><button id=go>Log in</button></form><button id=menu>Menu</button><p id=state>Out</p> \
    <script>const logIn = () => { state.textContent = `${user.value} is in as ${role.value}${stay.checked ? ', stays' : ''}, ${word.value.length}`; };
    menu.addEventListener('touchstart', () => { menu.textContent = 'Touched'; });</script>";

fn logging_in(user: &str) -> Value {
    json!([
        {"action": "set_value", "selector": "#user", "value": user},
        {"action": "set_value", "selector": "~Password", "value": "hunter2"},
        {"action": "select_option", "selector": "//select", "options": ["admin"]},
        {"action": "click_element", "selector": "text=Stay"},
        {"action": "tap_element", "selector": "role=button[name=Menu]"},
        {"action": "click_element", "selector": "text=Log in"},
        {"action": "wait_for", "text": format!("{user} is in as admin, stays, 7")},
        {"action": "assert", "text": "Touched"},
        {"action": "evaluate", "script": "state.textContent", "save": "state"},
    ])
}

/// S0.25, S0.27, S0.28, S0.33
#[test]
fn several_sessions_log_in_by_sequence_at_the_same_time() {
    let (lab, site) = (Lab::real(), Site::start(|_| LOGIN.into()));
    let client = lab.ready_client();
    at_once(vec!["ann", "bob", "cem"], |user: &str| {
        client.ok("start_browser", &json!({"sessionId": user, "navigationUrl": site.at("/")}));
        let reply = client.ok("execute_sequence", &json!({"sessionId": user, "actions": logging_in(user)}));
        assert!(reply.text().starts_with("9 steps done."), "{}", reply.text());
        assert!(!reply.0.to_string().contains("hunter2"), "{reply:?}");
    });
    let fan_out: Vec<_> = ["ann", "bob"]
        .iter()
        .map(|user| {
            let mut actions = logging_in(&format!("{user}2"));
            actions.as_array_mut().unwrap().insert(0, json!({"action": "navigate", "reload": true}));
            json!({"sessionId": user, "actions": actions})
        })
        .collect();
    let text = client.ok("execute_sequence", &json!({ "fanOut": fan_out })).text();
    assert!(text.contains("ann2 is in as admin") && text.contains("bob2 is in as admin"), "{text}");
}

/// S0.25
#[test]
fn a_step_that_fails_ends_the_sequence_and_shows_the_page_as_it_was() {
    let (lab, site) = (Lab::real(), Site::start(|_| LOGIN.into()));
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site.at("/")}));
    let actions = json!([
        {"action": "set_value", "selector": "#user", "value": "ann"},
        {"action": "click_element", "selector": "text=Log out", "timeout": 10_000},
        {"action": "click_element", "selector": "#go"},
    ]);
    let text = client.fails("execute_sequence", &json!({ "actions": actions }), "element_not_found");
    assert!(text.contains("Step 2 of 3 failed.") && text.contains("textbox \"User\" = \"ann\"") && text.contains("3 not run."), "{text}");
    assert_eq!(client.ok("evaluate", &json!({"script": "state.textContent"})).result()["value"], "Out");
}

/// S0.28
#[test]
fn a_click_scrolls_to_its_element_unless_it_is_told_not_to() {
    let page = "<div style='height:5000px'></div><button id=far onclick='this.textContent = \"Pressed\"'>Far</button>";
    let (lab, site) = (Lab::real(), Site::start(|_| page.into()));
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "web", "navigationUrl": site.at("/")}));
    let stays = json!({"sessionId": "web", "selector": "#far", "scrollToView": false, "timeout": 2000});
    let refused = client.call("click_element", &stays);
    // On a machine too busy to look twice in that time, the call ends by its deadline.
    let named = refused.code() == "element_not_actionable" && refused.text().contains("outside of the part of the page that is shown");
    assert!(named || refused.code() == "timeout", "{refused:?}");
    let at = |client: &support::Mcp| client.ok("evaluate", &json!({"script": "[scrollY > 0, far.textContent]"})).result()["value"].clone();
    assert_eq!(at(&client), json!([false, "Far"]));
    client.ok("click_element", &json!({"selector": "#far", "timeout": 60_000}));
    assert_eq!(at(&client), json!([true, "Pressed"]));
    client.ok("click_element", &json!({"sessionId": "web", "selector": "#far", "scrollToView": false}));
}

/// S0.29, S0.30
#[test]
fn a_selector_read_in_one_session_works_in_another() {
    let (lab, site) = (Lab::real(), Site::start(|_| LOGIN.into()));
    let client = lab.ready_client();
    for name in ["reader", "doer"] {
        client.ok("start_browser", &json!({"sessionId": name, "navigationUrl": site.at("/")}));
    }
    let seen = client.ok("get_visible_elements", &json!({"sessionId": "reader"})).text();
    let elements: Vec<Value> = seen.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let button = elements.iter().find(|element| element["text"] == "Log in").unwrap_or_else(|| panic!("{seen}"));
    client.ok("click_element", &json!({"sessionId": "doer", "selector": button["cssSelector"]}));
    let state = |name: &str| client.ok("evaluate", &json!({"sessionId": name, "script": "state.textContent"})).result()["value"].clone();
    assert_eq!((state("reader"), state("doer")), (json!("Out"), json!(" is in as guest, 0")));
}

/// S0.29, S0.30: also where many are alike but for the frame or the shadow tree they are in. The doer has seen another page before, and numbers its
/// elements in its own way.
#[test]
fn a_selector_means_the_same_element_elsewhere_whatever_frame_or_shadow_tree_it_is_in() {
    const BUTTONS: &str = "<body><button onclick='this.textContent += \"!\"'>";
    const CARDS: &str = "<a-card></a-card><a-card></a-card><script>
        let cards = 0;
        customElements.define('a-card', class extends HTMLElement { connectedCallback() {
            const root = this.attachShadow({ mode: 'open' });
            root.innerHTML = `<p>Card</p><button>Buy ${++cards}</button><button>Keep ${cards}</button><div></div>`;
            root.querySelector('div').attachShadow({ mode: 'open' }).innerHTML = `<button>Deep ${cards}</button>`;
            for (const button of [...root.querySelectorAll('button'), root.querySelector('div').shadowRoot.querySelector('button')])
                button.onclick = () => { button.textContent += '!' };
        } })</script>";
    let page = |path: &str, other: &str| match path {
        "/" => format!(
            "<button>Top</button><iframe src=/left></iframe><iframe src={other}/cross></iframe><iframe sandbox=allow-scripts src=/boxed></iframe>{CARDS}"
        ),
        "/left" => format!("{BUTTONS}left</button><iframe src=/inner></iframe>"),
        "/cross" => format!("{BUTTONS}cross</button>{CARDS}"),
        named => format!("{BUTTONS}{}</button>", &named[1..]),
    };
    let other = Site::start(move |path| page(path, ""));
    let elsewhere = other.at("").replace("127.0.0.1", "localhost");
    let (lab, site) = (Lab::real(), Site::start(move |path| page(path, &elsewhere)));
    let client = lab.ready_client();
    for name in ["reader", "doer"] {
        client.ok("start_browser", &json!({"sessionId": name, "navigationUrl": site.at("/inner")}));
    }
    client.ok("snapshot", &json!({"sessionId": "doer"}));
    for name in ["reader", "doer"] {
        client.ok("navigate", &json!({"sessionId": name, "url": site.at("/")}));
    }
    let wanted = ["left", "inner", "cross", "boxed", "Buy 1", "Keep 2", "Deep 2"];
    let elements = until("all frames to be there", SOON, || {
        let seen = client.ok("get_visible_elements", &json!({"sessionId": "reader"})).text();
        let buttons = seen.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(|element: &Value| element["tag"] == "button");
        // Cards are in the page and in one of its frames.
        Some(buttons.collect::<Vec<_>>()).filter(|buttons| buttons.len() == 1 + 4 + 2 * 6)
    });
    assert!(wanted.iter().all(|text| elements.iter().any(|element| element["text"] == *text)), "{elements:?}");
    for element in &elements {
        let done = client.ok("click_element", &json!({"sessionId": "doer", "selector": element["cssSelector"]})).text();
        let first = done.lines().find(|line| line.contains("Clicked")).unwrap_or_else(|| panic!("{done}"));
        assert!(first.contains(&format!("button {}", element["text"])), "{element}: {done}");
        assert!(!first.contains(" of "), "one is meant: {element}: {done}");
    }
}
