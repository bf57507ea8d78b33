//! Refs: the same for the same element, gone with it, and never another's.

use super::*;

fn of(number: u32) -> Sight {
    Sight { scope: part(&format!("e{number}")), ..Sight::default() }
}

async fn stale(stage: &Stage, number: u32) {
    assert_eq!(soon(stage.page.snapshot(&of(number))).await, Err(DriverError::StaleRef(format!("e{number}"))));
}

#[tokio::test]
async fn an_element_keeps_its_ref_however_often_and_wherever_it_is_seen() {
    let stage = Stage::showing("<button>A</button><button>B</button>").await;
    assert_eq!(stage.lines().await, "e1 button \"A\" e2 button \"B\"");
    stage.run("document.body.prepend(Object.assign(document.createElement('button'), { textContent: 'New' })); document.body.append(document.querySelector('button:nth-child(2)')); 0").await;
    assert_eq!(stage.lines().await, "e3 button \"New\" e2 button \"B\" e1 button \"A\"");
}

#[tokio::test]
async fn a_ref_is_stale_once_its_element_is_gone_and_is_never_given_again() {
    let stage = Stage::showing("<button>A</button><iframe srcdoc='<button>In</button>'></iframe>").await;
    assert_eq!(stage.lines().await, "e1 button \"A\"\ne2 iframe: e3 button \"In\"");
    stage.run("const kept = document.querySelector('button'); window.kept = kept; kept.remove(); 0").await;
    stale(&stage, 1).await;
    stage.run("document.body.append(window.kept); 0").await;
    assert_eq!(stage.see(&of(1)).await.text, "e1 button \"A\"", "back again, it is the same");
    stage.run("document.querySelector('iframe').remove(); 0").await;
    stale(&stage, 3).await;
    stage.show("<button>Other</button>").await;
    stale(&stage, 1).await;
    assert_eq!(stage.lines().await, "e4 button \"Other\"");
    stale(&stage, 1).await;
    stale(&stage, 999).await;
}
