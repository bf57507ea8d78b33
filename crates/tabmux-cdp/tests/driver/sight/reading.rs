//! What is read as an article: how it is written, what of the page is in it, and what it costs.

use tabmux_driver::{Article, DriverError, Navigation, Reading, Result, Selector};

use super::{Stage, Want, soon};
use crate::support;

fn of(selector: &str) -> Reading {
    Reading { selector: Some(Selector::parse(selector).expect("a selector")), ..Reading::default() }
}

impl Stage {
    async fn try_read(&self, reading: &Reading) -> Result<Article> {
        soon(self.page.read(reading)).await
    }

    async fn read(&self, reading: &Reading) -> Article {
        self.try_read(reading).await.expect("a page can be read")
    }
}

const ARTICLE: &str = r##"<div style="position:fixed;bottom:0">We use cookies. <button>Accept all</button></div>
    <header><nav><a href="/">Home</a> <a href="/about">About</a></nav></header>
    <main><h1>On <em>tabs</em> <a href="#tabs">¶</a></h1>
    <p>A tab is <strong>not</strong> a <a href="/window?a=1">window</a>; see <a href="https://other.test/x y">elsewhere</a>,
       <a href="#below">below</a> and 10<sup>9</sup>.<br>Next <code>line</code>.</p>
    <ul><li>One<li>Two <ul><li>Inner <b>bold</b></ul><li><p>Three</p><p>still three</p></ul>
    <ol start=3><li>Third</li><li>Fourth</li></ol>
    <blockquote><p>Quoted</p><p>twice</p></blockquote>
    <pre><code class="language-rust">fn main() {
    println!("```");
}</code></pre>
    <table><caption>Prices</caption><tr><th>Thing<th>Price<tr><td>Pen | ink<td>1<tr><td colspan=2>none</table>
    <figure><img src="/a.png" alt="A drawn tab"><figcaption>Fig. 1</figcaption></figure><img src="/b.png" alt="">
    <dl><dt>Term</dt><dd>What it means</dd></dl><hr>
    <p style="display:none">hidden</p><p style="visibility:hidden">unseen</p><script>var no = 1</script>
    <p>Name: <input value="Ann"> <input type=password value=hunter2> <select><option>A<option selected>B</select></p></main>
    <div role=status>Saved.</div><aside>Advert</aside><footer>Imprint</footer>"##;

const WRITTEN: &str = r##"Saved.

# On *tabs*

A tab is **not** a [window](/window?a=1); see [elsewhere](https://other.test/x%20y), below and 10^9.
Next `line`.

- One
- Two
  - Inner **bold**
- Three
  still three

3. Third
4. Fourth

> Quoted

> twice

````rust
fn main() {
    println!("```");
}
````

**Prices**

| Thing | Price |
| --- | --- |
| Pen \| ink | 1 |
| none |  |

![A drawn tab](/a.png)

Fig. 1

**Term**
: What it means

---

Name: Ann B"##;

#[tokio::test]
async fn an_article_is_written_as_markdown_without_what_stands_around_it() {
    let stage = Stage::showing(ARTICLE).await;
    let article = stage.read(&Reading::default()).await;
    assert_eq!(article.text, WRITTEN);
    assert_eq!((article.left, article.cursor), (0, None));
    assert_eq!(article.left_out, ["all around the main content"]);
    let whole = stage.read(&of("body")).await;
    assert!(
        ["cookies", "[About](/about)", "Advert", "Imprint", "still three"].iter().all(|words| whole.text.contains(words)),
        "{}",
        whole.text
    );
    assert!(whole.left_out.is_empty() && !whole.text.contains("hunter2"));
    assert_eq!(stage.read(&of("blockquote")).await.text, "> Quoted\n\n> twice");
    assert_eq!(stage.read(&of("text=Inner")).await.text, "Inner **bold**");
}

#[tokio::test]
async fn a_page_that_is_no_article_is_read_whole_but_for_its_navigation() {
    let stage = Stage::showing(
        "<nav>Home About</nav><div id=consent class=cookie-banner>Cookies? <button>OK</button></div><p>Total: <b id=total>42</b></p> \
         <div>Left</div><span>a</span><span>b</span><button>Pay</button><iframe srcdoc='<p>In frame'></iframe> \
         <details><summary>More</summary>closed</details><div id=host></div><script> \
         host.attachShadow({ mode: 'closed' }).innerHTML = '<p>In a closed root'</script>",
    )
    .await;
    let article = stage.read(&Reading::default()).await;
    assert_eq!(article.text, "Total: **42**\n\nLeft\n\nab Pay\n\nIn frame\n\nMore\n\nIn a closed root");
    assert_eq!(article.left_out, ["navigation", "a cookie notice"]);
}

/// Without a main element, where most of the words are.
#[tokio::test]
async fn the_main_content_is_found_by_where_the_words_are() {
    let words = "Words that are worth reading, and enough of them to make a paragraph. ".repeat(4);
    let links = (0..40).map(|number| format!("<li><a href=/{number}>Link number {number} to elsewhere</a>")).collect::<String>();
    let story = (0..6).map(|number| format!("<p>{number}. {words}</p>")).collect::<String>();
    let stage = Stage::showing(&format!("<h1>Story</h1><ul>{links}</ul><div><div>{story}</div></div><p>Small print</p>")).await;
    let text = stage.read(&Reading::default()).await.text;
    assert!(text.starts_with("# Story\n\n0. Words") && text.contains("5. Words"), "{text}");
    assert!(!text.contains("Link number") && !text.contains("Small print"), "{text}");
}

#[tokio::test]
async fn a_budget_is_kept_and_the_cursor_goes_on_until_all_was_read() {
    let paragraphs = (0..300).map(|number| format!("<p>Paragraph {number} says what it has to say.</p>")).collect::<String>();
    let code = (0..400).map(|number| format!("line {number};\n")).collect::<String>();
    let stage = Stage::showing(&format!("<main>{paragraphs}<pre>{code}</pre><p>{}</p></main>", "longword".repeat(2000))).await;
    let mut reading = Reading { budget: 500, ..Reading::default() };
    let (mut read, mut portions) = (String::new(), 0);
    loop {
        let article = stage.read(&reading).await;
        assert!(tabmux_tokens(&article.text) < 1500, "{}", article.text);
        assert_eq!(article.text.matches("```").count() % 2, 0, "code is closed in each portion: {}", article.text);
        read += &article.text;
        read.push('\n');
        portions += 1;
        assert_eq!(article.cursor.is_some(), article.left > 0);
        match article.cursor {
            Some(cursor) => reading.cursor = Some(cursor),
            None => break,
        }
    }
    assert!(portions > 5, "{portions}");
    for number in 0..300 {
        assert!(read.contains(&format!("Paragraph {number} says")), "{number}");
    }
    assert!((0..400).all(|number| read.contains(&format!("line {number};"))));
    assert_eq!(read.replace(['\n', '…'], "").matches("longword").count(), 2000, "nothing of a long word is lost");
}

fn tabmux_tokens(text: &str) -> usize {
    super::costs::tokens(text)
}

#[tokio::test]
async fn a_cursor_of_another_reading_or_document_is_stale() {
    let stage = Stage::showing(&"<p>Some words to read.</p>".repeat(50)).await;
    let small = Reading { budget: 20, ..Reading::default() };
    let first = stage.read(&small).await.cursor.expect("more");
    let second = stage.read(&small).await.cursor.expect("more");
    let going_on = |cursor: &str| Reading { cursor: Some(cursor.to_owned()), ..small.clone() };
    assert!(matches!(stage.try_read(&going_on(&first)).await, Err(DriverError::StaleCursor)));
    stage.read(&going_on(&second)).await;
    stage.show("<p>Another document.</p>").await;
    assert!(matches!(stage.try_read(&going_on(&second)).await, Err(DriverError::StaleCursor)));
    assert!(matches!(stage.try_read(&of("#none")).await, Err(DriverError::ElementNotFound { .. })));
    assert!(matches!(stage.try_read(&of("e99")).await, Err(DriverError::StaleRef(_))));
    assert!(matches!(stage.try_read(&of("p[")).await, Err(DriverError::BadSelector { .. })));
}

/// In full Chromium the frame of another site is in another process.
#[tokio::test]
async fn frames_of_other_sites_are_read_after_the_page_and_by_selector() {
    let site = support::site(|path| match path {
        "/" => "<h1>Outer</h1><script>const far = document.createElement('iframe'); \
                far.src = location.origin.replace('127.0.0.1', 'localhost') + '/far'; document.body.append(far);</script>"
            .into(),
        path => format!("<p>Inside <i id=far>{path}</i>"),
    })
    .await;
    for want in [Want::Plain, Want::Full] {
        let stage = Stage::new(want).await;
        soon(stage.page.navigate(Navigation::To(&format!("{site}/")))).await.expect("it goes there");
        let text = loop {
            let text = stage.read(&Reading::default()).await.text;
            if text.contains("Inside") {
                break text;
            }
        };
        assert_eq!(text, "# Outer\n\nInside */far*");
        assert_eq!(stage.read(&of("#far")).await.text, "*/far*");
        assert_eq!(stage.read(&of("iframe")).await.text, "Inside */far*");
    }
}

#[tokio::test]
async fn elements_nested_beyond_measure_and_great_pages_are_read() {
    let stage = Stage::showing("<p>begin</p><script>let at = document.body; for (let n = 0; n < 1000; n++) at = at.appendChild(document.createElement('div')); at.textContent = 'deep'</script>").await;
    assert_eq!(stage.read(&Reading::default()).await.text, "begin\n\ndeep");
    stage.show("<script>for (let n = 0; n < 3000; n++) { const p = document.createElement('p'); p.innerHTML = '<b>x</b> <i>' + n + '</i> <a href=/' + n + '>y</a>'; document.body.append(p) }</script>").await;
    assert!(stage.read(&Reading { budget: 50_000, ..Reading::default() }).await.text.contains("**x** *2999* [y](/2999)"));
}

#[tokio::test]
async fn a_document_without_a_body_or_a_root_has_no_text_to_read() {
    let stage = Stage::showing("<p>Words").await;
    for (emptied, how) in [("document.body.remove()", "no body"), ("document.documentElement.remove()", "no root")] {
        stage.run(&format!("{emptied}, 1")).await;
        assert_eq!(stage.read(&Reading::default()).await, Article::default(), "{how}");
    }
    stage.show("<p>Words").await;
    stage.run("document.open(), 1").await;
    assert_eq!(stage.read(&Reading::default()).await, Article::default());
}

#[tokio::test]
async fn the_words_of_a_drawing_are_read_where_it_is_the_document_or_is_asked_for() {
    let drawing = "<svg xmlns='http://www.w3.org/2000/svg'><title>No</title><g><text y='20'>Up <tspan>north</tspan></text></g>\
                   <defs><text>unused</text></defs><text y='50'>South</text></svg>";
    let site = support::serve(|_| support::response("200 OK\r\nContent-Type: image/svg+xml", drawing)).await;
    let stage = Stage::new(Want::Plain).await;
    soon(stage.page.navigate(Navigation::To(&site))).await.expect("it goes there");
    let article = stage.read(&Reading::default()).await;
    assert_eq!((article.text.as_str(), article.left_out), ("Up north\n\nSouth", Vec::new()));
    stage.show(&format!("<p>Around {drawing}")).await;
    assert_eq!(stage.read(&of("svg")).await.text, "Up north\n\nSouth");
    assert_eq!(stage.read(&of("p")).await.text, "Around");
}
