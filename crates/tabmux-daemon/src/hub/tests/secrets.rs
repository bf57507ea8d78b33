//! A registered secret reaches the page, and nothing else.

use serde_json::json;
use tabmux_core::Code;

use crate::settings::Secrets;
use crate::testing::House;

fn house() -> House {
    House::with(|settings| settings.secrets = Secrets::parse("PASSWORD=hunter2/more\n").unwrap())
}

#[tokio::test]
async fn the_page_gets_the_value_and_every_answer_the_name() {
    let house = house();
    let agent = house.agent("k");
    let said = agent.ok("navigate", json!({ "url": "http://a.test/?title=${secret:PASSWORD}" })).await;
    assert!(said.text.contains("<secret PASSWORD>"), "{}", said.text);
    let page = house.session().page(tabmux_core::TabId(1)).unwrap();
    assert!(page.url().contains("hunter2"), "{}", page.url());
    agent.ok("evaluate", json!({ "script": "document.body.append(${secret:PASSWORD})" })).await;
    assert!(page.text().await.unwrap().contains("hunter2/more"));
    let mut answers = Vec::new();
    for (tool, args) in [
        ("read_text", json!({})),
        ("list_pages", json!({})),
        ("network", json!({})),
        ("evaluate", json!({ "script": "location.href" })),
        ("evaluate", json!({ "script": "throw(${secret:PASSWORD})" })),
        ("navigate", json!({ "url": "bad:${secret:PASSWORD}" })),
        ("list_sessions", json!({})),
        (
            "execute_sequence",
            json!({ "actions": [
            { "action": "evaluate", "script": "location.href", "save": "place" },
            { "action": "evaluate", "script": "${place}" },
            { "action": "evaluate", "script": "throw(${secret:PASSWORD})" },
        ] }),
        ),
    ] {
        answers.push(format!("{:?}", agent.answer(tool, args).await));
    }
    assert!(answers.iter().all(|answer| !answer.contains("hunter2")), "{answers:#?}");
    house.on_disk().await;
    let on_disk: Vec<_> =
        std::fs::read_dir(house.dir.path().join("state")).unwrap().filter_map(|entry| std::fs::read(entry.unwrap().path()).ok()).collect();
    assert!(!on_disk.is_empty() && on_disk.iter().all(|file| !String::from_utf8_lossy(file).contains("hunter2")));
}

#[tokio::test]
async fn a_step_of_a_sequence_gives_the_page_the_value_too() {
    let house = house();
    let agent = house.agent("k");
    agent.ok("navigate", json!({ "url": "http://a.test/" })).await;
    let actions = json!([{ "action": "evaluate", "script": "document.body.append(${secret:PASSWORD})" }]);
    agent.ok("execute_sequence", json!({ "actions": actions })).await;
    let page = house.session().page(tabmux_core::TabId(1)).unwrap();
    assert!(page.text().await.unwrap().contains("hunter2/more"));
}

/// A page that writes a reference gets nothing for being read.
#[tokio::test]
async fn a_reference_that_comes_from_a_page_stays_text() {
    let house = house();
    let agent = house.agent("k");
    agent.ok("navigate", json!({ "url": "http://a.test/" })).await;
    let actions = json!([
        { "action": "evaluate", "script": "\"$\\u007bsecret:PASSWORD}\"", "save": "bait" },
        { "action": "evaluate", "script": "document.body.append(${bait})" },
        { "action": "navigate", "url": "http://a.test/?title=${bait}" },
    ]);
    agent.ok("execute_sequence", json!({ "actions": actions })).await;
    let page = house.session().page(tabmux_core::TabId(1)).unwrap();
    assert!(page.url().contains("secret:PASSWORD") && !page.url().contains("hunter2"), "{}", page.url());
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_said() {
    let house = house();
    let agent = house.agent("k");
    let fault = agent.fault("navigate", json!({ "url": "http://a.test/${secret:PASSWROD}" })).await;
    assert!(fault.code == Code::BadArgument && fault.message.contains("No secret is called 'PASSWROD'; there are PASSWORD."), "{fault}");
    assert_eq!(house.sessions(), 0);
}
