//! The pages that are read: a small form, a list, an article, large ones, and documentation as Debian ships it (`scripts/setup.sh docs`). Every one
//! has words that must be in what is read of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::Extent;
use crate::workspace;

/// Where `scripts/setup.sh docs` puts pages of several makers, and how many of each maker are read.
const LIBRARY: &str = "target/docs";
const PAGES_EACH: usize = 4;
const PAGE_BYTES: std::ops::Range<u64> = 3_000..200_000;

pub(super) const FORM: &str = "small form";
pub(super) const LIST: &str = "200-row list";
pub(super) const ARTICLE: &str = "article";
pub(super) const NODES: [usize; 3] = [1_000, 10_000, 50_000];

#[derive(Default)]
pub(in super::super) struct Shelf {
    leaves: Vec<Leaf>,
    /// Where the packages were unpacked.
    library: Option<PathBuf>,
}

/// One page.
pub(super) struct Leaf {
    pub(super) name: String,
    pub(super) path: String,
    /// What must be in a reading of it: a word of its heading, and one of a link for whoever reads only what can be acted upon.
    pub(super) proof: String,
    pub(super) link: Option<String>,
    pub(super) sort: Sort,
    /// None for a file of the library.
    html: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Made,
    Documentation,
}

pub(super) fn nodes_name(nodes: usize) -> String {
    format!("{nodes} nodes")
}

impl Shelf {
    pub(in super::super) fn fill(extent: Extent) -> Result<Self> {
        let trial = extent == Extent::Trial;
        let mut leaves =
            vec![made(FORM, "Sign up", &small_form()), made(LIST, "Orders", &list()), made(ARTICLE, "The quiet harbour", &article())];
        let sizes = if trial { &NODES[..2] } else { &NODES[..] };
        leaves.extend(sizes.iter().map(|nodes| made(&nodes_name(*nodes), "Many nodes", &many(*nodes))));
        let library = library()?;
        leaves.extend(documentation(&library, if trial { 1 } else { PAGES_EACH })?);
        Ok(Self { leaves, library: Some(library) })
    }

    pub(super) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    pub(super) fn sentence(&self) -> String {
        let documents = self.leaves.iter().filter(|leaf| leaf.sort == Sort::Documentation).count();
        format!("Then {documents} pages of documentation from Debian's packages, by makers of their own.")
    }

    /// What is at this path, and its type.
    pub(in super::super) fn get(&self, path: &str) -> Option<(Vec<u8>, &'static str)> {
        if let Some(leaf) = self.leaves.iter().find(|leaf| leaf.path == path && leaf.html.is_some()) {
            return Some((leaf.html.clone()?.into_bytes(), "text/html; charset=utf-8"));
        }
        let relative = Path::new(path.strip_prefix("/library/")?);
        let inside = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let bytes = std::fs::read(self.library.as_ref().filter(|_| inside)?.join(relative)).ok()?;
        Some((bytes, kind(relative)))
    }
}

fn kind(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    }
}

fn made(name: &str, proof: &str, body: &str) -> Leaf {
    let path = format!("/shelf/{}.html", name.replace(' ', "-"));
    let html = format!("<!doctype html><html lang=en><title>{proof}</title><link rel=icon href=\"data:,\"><h1>{proof}</h1>{body}</html>");
    Leaf { name: name.to_owned(), path, proof: proof.to_owned(), link: link(body), sort: Sort::Made, html: Some(html) }
}

fn small_form() -> String {
    let field = |(label, kind): (&str, &str)| format!("<p><label>{label} <input type={kind}></label></p>");
    let fields = [("Name", "text"), ("Email", "email"), ("Password", "password")].map(field).concat();
    format!(
        "<form>{fields}<p><label>Country <select><option>Austria<option>France<option>Japan</select></label></p>\
         <p><label><input type=checkbox> I agree to the terms</label></p><button>Create account</button></form><a href=\"/in\">Sign in instead</a>"
    )
}

fn list() -> String {
    let row = |n: usize| {
        format!(
            "<li><a href=\"/order/{n}\">Order {n}</a> <span>Customer {}</span> <span>{}.{:02} €</span> <button>Open</button> <button>Delete</button></li>",
            n * 7 % 100,
            n * 13 % 500,
            n * 29 % 100
        )
    };
    format!("<ul>{}</ul>", (1..=200).map(row).collect::<String>())
}

const SENTENCES: &str = include_str!("../../../../../crates/tabmux-cdp/tests/driver/sight/sentences.txt");

/// 28 kB of prose with a heading now and then, and links.
fn article() -> String {
    let sentences: Vec<_> = SENTENCES.lines().collect();
    let mut html = String::new();
    for at in 0.. {
        let text = (0..4 + at % 3).map(|sentence| sentences[(at * 3 + sentence) % sentences.len()]).collect::<Vec<_>>().join(" ");
        html += &match at % 8 {
            0 => format!("<h2>Part {at} of the story</h2>"),
            1 | 3 | 5 => format!("<p>{text} See <a href=\"#{at}\">section {at}</a> for <em>more</em>.</p>"),
            _ => format!("<p class=\"body-text\">{text}</p>"),
        };
        if html.len() > 28_000 {
            break;
        }
    }
    format!("<article>{html}</article>")
}

/// Paragraphs of eight nodes each, no two alike in shape with their neighbour, so that folding rows does not help.
fn many(nodes: usize) -> String {
    let item = |n: usize| match n % 2 {
        0 => format!("<div><p>Paragraph {n} with <b>bold</b> and <a href=\"#{n}\">link {n}</a></p></div>"),
        _ => format!("<section><p>Note {n} has <i>style</i> and <button>Button {n}</button></p></section>"),
    };
    (0..nodes / 8).map(item).collect()
}

/// The packages' files, unpacked when they are not there yet.
fn library() -> Result<PathBuf> {
    let status = Command::new("scripts/setup.sh").arg("docs").current_dir(workspace::root()).status()?;
    ensure!(status.success(), "scripts/setup.sh docs did not bring the documentation pages");
    Ok(workspace::root().join(LIBRARY))
}

/// So many pages of each maker, spread evenly over what there is.
fn documentation(library: &Path, count: usize) -> Result<Vec<Leaf>> {
    let mut files = Vec::new();
    collect(library, &mut files)?;
    files.sort();
    let mut makers: BTreeMap<String, Vec<Leaf>> = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(library)?.to_string_lossy().into_owned();
        let Ok(html) = std::fs::read(&file).map(|html| String::from_utf8_lossy(&html).into_owned()) else { continue };
        if let (Some(maker), Some(proof)) = (maker(&path), heading(&html)) {
            let name = format!("{maker}: {}", path.rsplit('/').next().unwrap_or_default());
            let (path, link) = (format!("/library/{path}"), link(&html));
            makers.entry(maker).or_default().push(Leaf { name, path, proof, link, sort: Sort::Documentation, html: None });
        }
    }
    let mut leaves = Vec::new();
    for (maker, pages) in makers {
        ensure!(pages.len() >= count, "{maker} has only {} pages with a heading", pages.len());
        let total = pages.len();
        let chosen = |number: usize| (0..count).any(|one| one * total / count == number);
        leaves.extend(pages.into_iter().enumerate().filter(|(number, _)| chosen(*number)).map(|(_, leaf)| leaf));
    }
    Ok(leaves)
}

/// `usr/share/doc/NAME/…`, `usr/share/gtk-doc/html/NAME/…`.
fn maker(path: &str) -> Option<String> {
    let mut parts = path.strip_prefix("usr/share/")?.split('/');
    let name = if parts.next()? == "doc" { parts.next()? } else { parts.nth(1)? };
    Some(name.to_owned())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)?.flatten() {
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            collect(&path, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|e| e == "html") && PAGE_BYTES.contains(&entry.metadata()?.len()) {
            files.push(path);
        }
    }
    Ok(())
}

/// The longest plain word of the first heading: whoever reads the page must have it.
fn heading(html: &str) -> Option<String> {
    let start = ["<h1", "<h2"].iter().find_map(|tag| html.find(tag))?;
    let rest = &html[start..];
    longest_word(&rest[rest.find('>')? + 1..rest.find("</h")?])
}

/// The same of the first link that has words of its own.
fn link(html: &str) -> Option<String> {
    html.split("<a ").skip(1).find_map(|rest| {
        let (attributes, inner) = rest.split_once('>').filter(|(attributes, _)| attributes.contains("href"))?;
        longest_word(inner.split("</a").next().filter(|_| !attributes.ends_with('/'))?)
    })
}

fn longest_word(html: &str) -> Option<String> {
    let mut text = String::new();
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' => inside = false,
            c if !inside => text.push(c),
            _ => {}
        }
    }
    let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 3);
    words.max_by_key(|word| word.len()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_as_many_nodes_as_its_name_says_and_a_heading_gives_its_word() {
        // Each item is eight: two elements around, two inside, four texts.
        let html = many(1_000);
        assert_eq!(html.matches("<p>").count() * 8, 1_000);
        assert!((28_000..30_000).contains(&article().len()));
        assert_eq!(list().matches("<li>").count(), 200);
        assert_eq!(heading("<h1 id=x>3. <code>git</code> attributes(5)</h1>").as_deref(), Some("attributes"));
        assert_eq!(heading("<p>nothing</p>"), None);
        let links =
            "<a name=words>Anchor</a><a href=/><img alt=Picture></a> <a href=/x>The <b>next</b> chapter</a> <a href=/y>Afterwards</a>";
        assert_eq!((link(links).as_deref(), link("<p>no links")), (Some("chapter"), None));
        assert_eq!(maker("usr/share/doc/exim4-doc-html/spec_html/ch01.html").as_deref(), Some("exim4-doc-html"));
        assert_eq!(maker("usr/share/gtk-doc/html/cairo/index.html").as_deref(), Some("cairo"));
    }

    #[test]
    fn nothing_outside_the_library_is_served() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("library")).unwrap();
        std::fs::write(place.path().join("secret.html"), "s").unwrap();
        std::fs::write(place.path().join("library/page.html"), "p").unwrap();
        let shelf = Shelf { library: Some(place.path().join("library")), leaves: Vec::new() };
        assert_eq!(shelf.get("/library/page.html"), Some((b"p".to_vec(), "text/html; charset=utf-8")));
        assert_eq!(shelf.get("/library/../secret.html"), None);
    }
}
