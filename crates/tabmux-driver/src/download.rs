//! Downloads: what is told of one, and which name its file gets. How bytes arrive is the browser's business.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// How many downloads of one context are told; of more, the oldest that ended are forgotten (their files stay).
pub const MAX_DOWNLOADS: usize = 100;

/// The longest name a file gets, in bytes; file systems end at 255, and a number may be added.
const MAX_NAME_BYTES: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Download {
    /// The browser's own name for it; nothing an agent sees.
    pub id: String,
    /// What its file is called: the site's suggestion, made safe; numbered when there is such a file already.
    pub name: String,
    pub url: String,
    pub bytes: u64,
    pub state: DownloadState,
    /// Where the file is, once it is whole.
    pub path: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DownloadState {
    InProgress,
    Completed,
    Canceled,
}

impl Download {
    pub fn begun(id: &str, url: &str, suggested: &str) -> Self {
        let (id, url) = (id.to_owned(), url.to_owned());
        Self { id, name: safe_name(suggested), url, bytes: 0, state: DownloadState::InProgress, path: None }
    }
}

/// A site's suggestion as the name of a plain, visible file in one directory, whatever it says.
pub fn safe_name(suggested: &str) -> String {
    let last = suggested.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().map(|letter| if is_harmless(letter) { letter } else { '_' }).collect();
    let plain = plain.trim().trim_start_matches(['.', '~', '-']);
    if plain.is_empty() {
        return "download".to_owned();
    }
    let (stem, ending) = split(plain);
    let ending = if ending.len() > 20 { "" } else { ending };
    let stem = if ending.is_empty() { plain } else { stem };
    format!("{}{ending}", &stem[..stem.floor_char_boundary(MAX_NAME_BYTES)])
}

/// The name, or `name (1)`, `name (2)`, … before its ending.
fn numbered(name: &str, number: u32) -> String {
    if number == 0 {
        return name.to_owned();
    }
    let (stem, ending) = split(name);
    format!("{stem} ({number}){ending}")
}

/// Moves a finished file into the directory under the first free form of its name; nothing there is ever replaced.
pub fn settle(file: &Path, directory: &Path, name: &str) -> std::io::Result<PathBuf> {
    for number in 0..10_000 {
        let target = directory.join(numbered(name, number));
        match std::fs::hard_link(file, &target) {
            Ok(()) => {
                std::fs::remove_file(file)?;
                return Ok(target);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

fn split(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(at) if at > 0 => name.split_at(at),
        _ => (name, ""),
    }
}

/// No control characters, none that turn the direction of text or cannot be seen.
fn is_harmless(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | ':' | '"' | '<' | '>' | '|' | '*' | '?')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggested_name_cannot_leave_its_directory_or_hide() {
        let cases = [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("..", "download"),
            ("", "download"),
            (".bashrc", "bashrc"),
            ("-rf", "rf"),
            ("a\nb\u{202e}gpj.exe", "a_b_gpj.exe"),
            ("  a b.txt ", "a b.txt"),
        ];
        for (suggested, name) in cases {
            assert_eq!(safe_name(suggested), name, "{suggested:?}");
        }
        let long = safe_name(&format!("{}.tar.gz", "ä".repeat(300)));
        assert!(long.len() <= 220 && long.ends_with(".gz"), "{long}");
        assert!(safe_name(&format!("a.{}", "x".repeat(400))).len() <= 220);
    }

    #[test]
    fn files_of_one_name_are_numbered_and_none_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let put = |text: &str| {
            let from = home.path().join("arriving");
            std::fs::write(&from, text).unwrap();
            settle(&from, home.path(), "a.tar.gz").unwrap()
        };
        let names = ["first", "second", "third"].map(|text| put(text).file_name().unwrap().to_str().unwrap().to_owned());
        assert_eq!(names, ["a.tar.gz", "a.tar (1).gz", "a.tar (2).gz"]);
        assert_eq!(std::fs::read_to_string(home.path().join("a.tar.gz")).unwrap(), "first");
    }
}
