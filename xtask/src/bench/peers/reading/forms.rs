//! One task: open an order form, read it, fill in six fields, a choice and a tick, send it, and read the number of the order. The
//! server's record says whether it was done right, and the number, which only the server knows, whether it was read.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::super::agent::Ground;
use super::super::measure::Watchdog;
use super::super::pages::Pages;
use super::super::result::Spread;
use super::super::tree;
use super::LIMIT;
use super::dialect::{Dialect, Entry, FormDialect, Kind, Talk, reference};
use super::result::{FormDone, Outcome, Spent};

/// Label, name in the record, kind, and what is to be in it.
const FIELDS: [(&str, &str, Kind, &str); 8] = [
    ("Full name", "name", Kind::Text, "Ada Lovelace"),
    ("Email", "email", Kind::Text, "ada@example.org"),
    ("Street", "street", Kind::Text, "12 Analytical Row"),
    ("City", "city", Kind::Text, "London"),
    ("Postcode", "postcode", Kind::Text, "W1 4AB"),
    ("Country", "country", Kind::Choice, "Japan"),
    ("Notes", "notes", Kind::Text, "Leave it with the porter, please."),
    ("Send me news", "news", Kind::Tick, "yes"),
];
const BUTTON: &str = "Place order";
const NUMBER: &str = "Your order number is ";

/// What the server was sent, by task.
#[derive(Default)]
pub(in super::super) struct Orders {
    /// So that nobody can know a number beforehand.
    secret: RandomState,
    sent: Mutex<BTreeMap<usize, Vec<String>>>,
}

pub(super) fn path(task: usize) -> String {
    format!("/order-{task}.html")
}

impl Orders {
    fn number(&self, task: usize) -> String {
        (100_000 + self.secret.hash_one(task) % 900_000).to_string()
    }

    /// The form, or after it was sent the confirmation.
    pub(in super::super) fn answer(&self, path: &str, sent: Option<&str>) -> Option<String> {
        let task = path.strip_prefix("/order-")?.strip_suffix(".html")?.parse().ok()?;
        let Some(body) = sent else { return Some(form(task)) };
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).entry(task).or_default().push(body.to_owned());
        let number = self.number(task);
        Some(page("Thank you", &format!("<h1>Thank you</h1><p>{NUMBER}{number}.</p><p><a href=\"/\">Back to the shop</a></p>")))
    }

    /// Whether exactly this was sent, once, and its number read.
    pub(super) fn check(&self, task: usize, read: &str) -> Result<()> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner).get(&task).cloned().unwrap_or_default();
        let wanted: Vec<_> = FIELDS.iter().map(|(_, name, _, value)| format!("{name}={}", encoded(value))).collect();
        ensure!(sent == [wanted.join("&")], "the server was sent {sent:?}");
        ensure!(read.contains(&format!("{NUMBER}{}", self.number(task))), "the number of the order was not read in {read:?}");
        Ok(())
    }
}

/// As a browser writes what is in a form.
fn encoded(value: &str) -> String {
    let one = |byte: u8| match byte {
        b' ' => "+".to_owned(),
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    value.bytes().map(one).collect()
}

fn page(title: &str, main: &str) -> String {
    let links: String = ["Home", "Books", "Maps", "Basket", "Help"].map(|name| format!("<a href=\"/{name}\">{name}</a> ")).concat();
    format!(
        "<!doctype html><html lang=en><title>{title}</title><link rel=icon href=\"data:,\"><nav>{links}</nav><main>{main}</main>\
         <footer><p>Prices include taxes. Orders are sent within two days.</p></footer></html>"
    )
}

fn form(task: usize) -> String {
    let countries = ["Austria", "Brazil", "Canada", "France", "Japan", "Kenya"].map(|name| format!("<option>{name}</option>")).concat();
    let field = |(label, name, kind, _): &(&str, &str, Kind, &str)| match kind {
        Kind::Tick => format!("<p><input type=checkbox id={name} name={name} value=yes> <label for={name}>{label}</label></p>"),
        Kind::Choice => format!("<p><label for={name}>{label}</label> <select id={name} name={name}>{countries}</select></p>"),
        Kind::Text => format!("<p><label for={name}>{label}</label> <input id={name} name={name}></p>"),
    };
    let fields: String = FIELDS.iter().map(field).collect();
    let main = format!("<h1>Order</h1><form method=post action=\"{}\">{fields}<button>{BUTTON}</button></form>", path(task));
    page("Order", &main)
}

pub(super) fn measure(dialect: &Dialect, form: FormDialect, ground: &Ground, pages: &Pages, tasks: usize) -> Result<Outcome<FormDone>> {
    let watchdog = Watchdog::start(LIMIT);
    let done = measure_watched(dialect, form, ground, pages, tasks);
    tree::end()?;
    Ok(match done {
        Err(_) if watchdog.has_bitten() => Err(format!("hung: ended with all its processes after {} s", LIMIT.as_secs())),
        done => done.map_err(|error| format!("{error:#}")),
    })
}

fn measure_watched(dialect: &Dialect, form: FormDialect, ground: &Ground, pages: &Pages, tasks: usize) -> Result<FormDone> {
    let mut talk = Talk::start(dialect, ground)?;
    let (mut times, mut spent, mut errors, mut first_problem) = (Vec::new(), Spent::default(), 0, None);
    // The first one warms up, and is not counted.
    for _ in 0..=tasks {
        let task = pages.next_task();
        let done = fill_in(form, dialect, &mut talk, pages, task);
        let now = talk.spent();
        match done {
            Ok(time) => {
                times.push(time);
                spent = now;
            }
            Err(error) => {
                errors += 1;
                first_problem.get_or_insert_with(|| format!("{error:#}").chars().take(300).collect::<String>());
            }
        }
    }
    if times.len() > 1 {
        times.remove(0);
    }
    if times.is_empty() {
        bail!("never done right: {}", first_problem.unwrap_or_default());
    }
    Ok(FormDone { time: Spread::of(times), spent, errors, first_problem })
}

fn fill_in(form: FormDialect, dialect: &Dialect, talk: &mut Talk, pages: &Pages, task: usize) -> Result<Duration> {
    let began = Instant::now();
    talk.call(&(dialect.open)(&pages.at(&path(task))))?;
    let text = talk.call(&(form.look)())?;
    let found = |role: &str, name: &str| reference(&text, role, name).with_context(|| format!("no {role} {name:?} in {text}"));
    let entry = |(name, _, kind, value): (&'static str, _, Kind, &str)| {
        Ok(Entry { name, kind, reference: found(kind.role(), name)?, value: value.to_owned() })
    };
    let entries = FIELDS.into_iter().map(entry).collect::<Result<Vec<_>>>()?;
    let mut read = String::new();
    for step in (form.fill)(&entries, &found("button", BUTTON)?) {
        read = talk.call(&step)?;
    }
    // Some tell what came of it by themselves.
    if !read.contains(NUMBER) {
        read = talk.call(&(form.confirm)())?;
    }
    let took = began.elapsed();
    pages.orders().check(task, &read)?;
    Ok(took)
}
