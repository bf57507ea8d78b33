//! What is in closed shadow roots is seen like everything else, and costs something only the first time.

use super::*;

/// What a look says, and what is sent for it by a page that was asked something before.
async fn sent(stage: &Stage) -> (String, Vec<&'static str>) {
    soon(stage.page.text()).await.expect("a page can be read");
    let tap = stage.browser.connection().tap(100);
    let before = tap.sent().len();
    let text = stage.lines().await;
    let sent = tap.sent().into_iter().skip(before).map(|sent| sent.method);
    (text, sent.filter(|method| *method != "Runtime.releaseObject").collect())
}

const KINDS: &str = "<div id=empty></div><div id=full><p class=x>not drawn</p></div><x-own>light</x-own><x-press role=button tabindex=0></x-press> \
    <section><template shadowrootmode=closed><button>Declared</button></template></section> \
    <script>const put = (host, html) => { const root = host.attachShadow({ mode: 'closed' }); root.innerHTML = html; return root; }; \
    put(document.getElementById('empty'), '<button>Empty</button>'); put(document.getElementById('full'), '<button>Full</button>'); \
    customElements.define('x-press', class extends HTMLElement { constructor() { super(); put(this, '<span>Named</span>'); } }); \
    customElements.define('x-own', class extends HTMLElement { constructor() { super(); \
      const root = put(this, '<button>Own</button> <slot></slot> <div></div>'); put(root.querySelector('div'), '<button>Nested</button>'); } })</script>";

#[tokio::test]
async fn closed_shadow_roots_of_all_kinds_are_seen_also_in_each_other() {
    let stage = Stage::showing(KINDS).await;
    let text = stage.lines().await;
    for name in ["Empty", "Full", "Own", "Nested", "Declared", "Named"] {
        assert_eq!(text.matches(&format!("button \"{name}\"")).count(), 1, "{name} in\n{text}");
    }
    assert!(text.contains("light") && !text.contains("not drawn"), "{text}");
}

#[tokio::test]
async fn a_closed_shadow_root_costs_one_round_trip_once_and_its_refs_work() {
    let stage = Stage::showing(
        "<x-own></x-own><script>customElements.define('x-own', class extends HTMLElement { constructor() { super(); \
         this.attachShadow({ mode: 'closed' }).innerHTML = '<button>Own</button>'; } })</script>",
    )
    .await;
    let (text, first) = sent(&stage).await;
    assert_eq!(text, "e1 button \"Own\"");
    let call = "Runtime.callFunctionOn";
    // The look; then the root, what hands it over and the look again, one behind the other.
    assert_eq!(first, [call, "DOM.resolveNode", call, call]);
    assert_eq!(sent(&stage).await, (text.clone(), vec![call]));
    let one = Sight { scope: part("e1"), ..Sight::default() };
    assert_eq!(stage.see(&one).await.text, text);
}

#[tokio::test]
async fn what_only_looks_like_a_closed_shadow_root_is_asked_about_once() {
    let stage = Stage::showing(
        "<x-own>Words</x-own><div style='height: 9px'></div><script>customElements.define('x-own', class extends HTMLElement {})</script>",
    )
    .await;
    let call = "Runtime.callFunctionOn";
    // The look names them; what says that there are none is not waited for.
    assert_eq!(sent(&stage).await, ("\"Words\"".to_owned(), vec![call, call]));
    assert_eq!(sent(&stage).await.1, [call]);
    stage.run("document.body.append(document.createElement('x-own')); 0").await;
    assert_eq!(sent(&stage).await.1, [call, call], "a new one is asked about");
}

#[tokio::test]
async fn a_part_in_a_closed_shadow_root_is_found_by_its_selector() {
    let stage = Stage::showing(KINDS).await;
    let one = Sight { scope: part("role=button[name=Nested]"), ..Sight::default() };
    let text = stage.see(&one).await.text;
    assert!(text.ends_with("button \"Nested\"") && text.lines().count() == 1, "{text}");
}
