use std::io::{Read, Write};
use std::net::TcpStream;

use super::super::agent::Product;
use super::super::result::Spread;
use super::dialect::reference;
use super::result::{FormDone, Seen, Spent};
use super::shelf::{ARTICLE, FORM, LIST};
use super::*;

fn time(p50_ms: f64) -> Spread {
    Spread { p50_ms, p99_ms: p50_ms, samples: 1 }
}

const DOCUMENT: &str = "cairo: index.html";

/// Invented, with every number of tabmux well within its limit.
fn invented() -> Reading {
    let mut reading = Reading { preface: vec!["A machine.".into()], ..Reading::default() };
    let products = [(Product::Tabmux, 1), (Product::Playwright, 4), (Product::ChromeDevtools, 3), (Product::AgentBrowser, 5)];
    for (product, size) in products {
        reading.lists.push(ListCell { product, tokens: Ok(2_000 * size) });
        let spent = Spent { calls: 3 * size, asked: 100 * size, answered: 200 * size };
        let done = FormDone { time: time(size as f64), spent, errors: 0, first_problem: None };
        reading.forms.push(FormCell { product, how: "x".into(), outcome: Ok(done) });
        for page in [FORM, LIST, ARTICLE, "1000 nodes", DOCUMENT] {
            let seen = Seen { tokens: 1_000 * size, calls: 1, time: time(size as f64) };
            reading.sights.push(SightCell { product, how: "x".into(), page: page.into(), outcome: Ok(seen) });
        }
    }
    reading
}

fn holds(reading: &Reading, what: &str) -> Holds {
    let rows = verdict::verdicts(reading);
    rows.into_iter().find(|row| row.what.starts_with(what)).unwrap_or_else(|| panic!("no verdict on {what}")).holds
}

fn with_sight(page: &str, tokens: usize) -> Reading {
    let mut reading = invented();
    let cell = reading.sights.iter_mut().find(|cell| cell.page == page && cell.product == Product::Tabmux).unwrap();
    cell.outcome = Ok(Seen { tokens, calls: 1, time: time(1.0) });
    reading
}

fn with_form(change: impl Fn(&mut FormDone)) -> Reading {
    let mut reading = invented();
    change(reading.forms[0].outcome.as_mut().unwrap());
    reading
}

#[test]
fn each_limit_is_judged_by_its_own_number() {
    assert_eq!(report(&invented()).1, 0);
    // The smallest peer has 3,000 on each page; of the list half of that is allowed.
    for (page, most) in [(FORM, 3_000), (LIST, 1_500), (ARTICLE, 3_000)] {
        assert_eq!(holds(&with_sight(page, most), page), Holds::Yes);
        assert_eq!(holds(&with_sight(page, most + 1), page), Holds::No);
        assert_eq!(report(&with_sight(page, most + 1)).1, 1, "{page} and nothing else");
    }
    assert_eq!(holds(&with_sight(DOCUMENT, 3_001), "documentation"), Holds::No);
    assert_eq!(holds(&with_form(|done| done.spent.calls = 10), "form: calls"), Holds::No);
    assert_eq!(holds(&with_form(|done| done.spent.asked = 701), "form: tokens"), Holds::No);
    assert_eq!(holds(&with_form(|done| done.time = time(3.1)), "form: time"), Holds::Unjudged);
    assert_eq!(holds(&with_form(|done| done.errors = 1), "errors"), Holds::No);
    assert_eq!(holds(&with_sight("1000 nodes", 9_000), "1000 nodes: tokens"), Holds::Unjudged);
    let mut long = invented();
    long.lists[0].tokens = Ok(2_501);
    assert_eq!(holds(&long, "tool list"), Holds::No);
}

#[test]
fn what_was_not_read_holds_nothing_and_is_shown() {
    let mut reading = invented();
    for cell in reading.sights.iter_mut().filter(|cell| cell.product == Product::Tabmux) {
        cell.outcome = Err("it | fell over".into());
    }
    for what in [FORM, LIST, ARTICLE, "documentation", "errors"] {
        assert_eq!(holds(&reading, what), Holds::No, "{what}");
    }
    let text = report(&reading).0;
    assert!(text.contains("it   fell over"), "{text}");
    assert_eq!(report(&Reading::default()).1, 8, "nothing measured keeps nothing, but for errors that were not made");
}

#[test]
fn the_tables_have_a_row_for_each_page_and_a_column_for_each_contender() {
    let mut reading = invented();
    reading.sights.push(SightCell { product: Product::Tabmux, how: "full".into(), page: LIST.into(), outcome: Err("no".into()) });
    let text = report(&reading).0;
    let (_, sights) = text.split_once("### A page as text").unwrap();
    let rows: Vec<_> = sights.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 5 + 2, "{sights}");
    for row in rows {
        assert_eq!(row.matches('|').count(), 7, "{row}");
    }
}

/// Recorded from each contender.
#[test]
fn a_reference_is_found_in_the_words_of_every_product() {
    let texts = [
        ("    - paragraph [ref=e10]:\n      - text: City\n      - textbox \"City\" [ref=e12]", "e12"),
        ("  uid=1_6 \"City\"\n  uid=1_7 textbox \"City\" multiline", "1_7"),
        ("- textbox \"City\" [expanded=false, ref=e6]: x", "e6"),
        ("form\n  e3 textbox \"City\"", "e3"),
    ];
    for (text, found) in texts {
        assert_eq!(reference(text, "textbox", "City").as_deref(), Some(found));
        assert_eq!(reference(text, "button", "City"), None);
        assert_eq!(reference(text, "textbox", "Cit"), None);
    }
}

fn post(pages: &Pages, path: &str, body: &str) -> String {
    let mut connection = TcpStream::connect(pages.at("").strip_prefix("http://").unwrap()).unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
    connection.shutdown(std::net::Shutdown::Write).unwrap();
    let mut said = String::new();
    connection.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn a_form_is_right_when_the_server_got_it_once_as_it_should_be_and_its_number_was_read() {
    let pages = Pages::serve().unwrap();
    let right = "name=Ada+Lovelace&email=ada%40example.org&street=12+Analytical+Row&city=London&postcode=W1+4AB&country=Japan\
                 &notes=Leave+it+with+the+porter%2C+please.&news=yes";
    let check = |task: usize, read: &str| pages.orders().check(task, read).map_err(|error| error.to_string());
    let read = post(&pages, &forms::path(1), right);
    assert!(read.contains("Your order number is "), "{read}");
    assert_eq!(check(1, &read), Ok(()));
    assert!(check(1, "Your order number is 1").unwrap_err().contains("was not read"));
    assert!(check(2, &read).unwrap_err().contains("was sent []"));
    let read = post(&pages, &forms::path(3), &right.replace("Japan", "Austria"));
    assert!(check(3, &read).unwrap_err().contains("Austria"));
    post(&pages, &forms::path(1), right);
    assert!(check(1, &read).is_err(), "sent twice is not right");
}
