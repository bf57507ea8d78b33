//! Gives files to a page: to the file chooser it opened, or to a file input. Which files may be given is decided here, because
//! a page that talks an agent into it could read any of the user's.

use std::path::{Component, Path, PathBuf};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::{Code, Fault};

use crate::act::optional;
use crate::arguments::{missing, of_page, own_schema, wrong};
use crate::reply::{counted, failed};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "upload_file",
    group: Group::Act,
    level: Level::Full,
    description: "Give files to the open file chooser or to an input.",
    effect: Effect::Write,
    own_schema: own_schema::<UploadFile>,
    run: Run::Page(&Upload),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UploadFile {
    /// Absolute
    paths: Vec<String>,
    /// File input, as click_element
    selector: Option<String>,
}

/// How many files one call gives.
const MAX_FILES: usize = 100;

/// Where nothing is an ordinary file, and what the system keeps from all but root, which tabmux may run as.
const SYSTEM: [&str; 8] = ["/proc", "/sys", "/dev", "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private"];

/// Where people and programs keep keys and passwords.
const SECRET: [&str; 17] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config",
    ".local",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".env",
    ".git-credentials",
    ".password-store",
    ".pki",
    ".pgpass",
];

struct Upload;

#[async_trait]
impl PageTool for Upload {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let UploadFile { paths, selector } = of_page(&args)?;
        if paths.is_empty() || paths.len() > MAX_FILES {
            return Err(missing("paths", &format!("1 to {MAX_FILES} files")));
        }
        let downloads = cx.context().await?.downloads().borrow().clone();
        let downloaded = |file: &Path| downloads.iter().any(|download| download.path.as_deref() == Some(file));
        let may = |file: &Path| downloaded(file) || (cx.may_read(file) && !is_secret(file));
        let files = paths.iter().map(|path| plain_file(path, may)).collect::<Result<Vec<_>, _>>()?;
        let selector = optional(selector.as_deref())?;
        let (tab, page) = cx.page().await?;
        let came_of_it = page.upload(&files, selector.as_ref()).await.map_err(failed)?;
        let came_of_it = came_of_it.map(|now| format!(" {}", visible::line(&now))).unwrap_or_default();
        Ok(Reply::text(format!("Gave {} to the page.{came_of_it}", counted(files.len(), "file"))).about(tab, &page))
    }
}

/// The file itself, wherever links lead: an ordinary one that may be given away.
fn plain_file(path: &str, may: impl Fn(&Path) -> bool) -> Result<PathBuf, Fault> {
    if !Path::new(path).is_absolute() {
        return Err(wrong("paths", &path.into(), "absolute paths: tabmux does not run in your directory"));
    }
    let shown = visible::line(path);
    let file = std::fs::canonicalize(path)
        .map_err(|error| Fault::new(Code::BadArgument, format!("{shown} cannot be read ({error})."), "Give a file that is there."))?;
    if !file.is_file() {
        return Err(Fault::new(Code::BadArgument, format!("{shown} is no ordinary file."), "Give a file."));
    }
    if !may(&file) {
        let message = format!("{shown} may not be given to a page: secrets are kept there.");
        return Err(Fault::new(Code::PolicyDenied, message, "Ask the user to copy it elsewhere if it is really wanted."));
    }
    Ok(file)
}

fn is_secret(file: &Path) -> bool {
    let kept = |part: Component<'_>| {
        let name = part.as_os_str().to_string_lossy();
        SECRET.iter().any(|secret| *secret == name) || name.starts_with(".env.") || is_history(&name)
    };
    file.components().any(kept) || is_system_file(file) || is_key_in_place(file)
}

/// What was typed into shells and consoles, passwords among it: `.bash_history`, `.psql_history`, `.zhistory`.
fn is_history(name: &str) -> bool {
    name.starts_with('.') && (name.ends_with("history") || name == ".lesshst" || name == ".viminfo")
}

/// Files that are secret only where they are: a host's keys, a registry's credentials.
fn is_key_in_place(file: &Path) -> bool {
    let (Some(dir), Some(name)) = (file.parent(), file.file_name().map(std::ffi::OsStr::to_string_lossy)) else { return false };
    (dir == Path::new("/etc/ssh") && name.ends_with("_key")) || (dir.ends_with(".cargo") && name.starts_with("credentials"))
}

/// Whether a file, links resolved, is the kernel's: one without an end, without a length, or with what others hold in memory.
pub fn is_system_file(file: &Path) -> bool {
    SYSTEM.iter().any(|place| file.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPages, text};
    use serde_json::json;

    #[tokio::test]
    async fn files_go_to_the_chooser_that_is_open() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = home.path().join(name);
            std::fs::write(&path, name).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (one, two) = (at("a.txt"), at("b.txt"));
        let pages = TestPages::new().await;
        let fault = pages.call("upload_file", json!({ "paths": [one] })).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] No file chooser is open. Click what opens it first, or give the selector of a file input.");
        pages.call("evaluate", json!({ "script": "openChooser()" })).await.unwrap();
        let reply = pages.call("upload_file", json!({ "paths": [one] })).await.unwrap();
        assert_eq!(text(&reply), "Gave 1 file to the page.");
        pages.call("evaluate", json!({ "script": "openChooser()" })).await.unwrap();
        assert_eq!(pages.call("upload_file", json!({ "paths": [one, two] })).await.unwrap_err().code, Code::BadArgument);
        let fault = pages.call("upload_file", json!({ "paths": [one], "selector": "#f" })).await.unwrap_err();
        assert_eq!(fault.code, Code::ElementNotFound);
    }

    #[tokio::test]
    async fn what_is_no_ordinary_file_or_a_secret_is_refused_through_links_too() {
        let home = tempfile::tempdir().unwrap();
        let secret = home.path().join(".ssh");
        std::fs::create_dir(&secret).unwrap();
        std::fs::write(secret.join("id"), "key").unwrap();
        std::fs::write(home.path().join("token"), "the daemon's").unwrap();
        std::os::unix::fs::symlink(secret.join("id"), home.path().join("link.txt")).unwrap();
        let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
        let pages = TestPages::new().await;
        let code = async |path: String| pages.call("upload_file", json!({ "paths": [path] })).await.unwrap_err().code;
        for path in [at(".ssh/id"), at("link.txt"), at("token"), "/proc/self/environ".into()] {
            assert_eq!(code(path.clone()).await, Code::PolicyDenied, "{path}");
        }
        for path in [at("nothing"), at(".ssh"), "a.txt".into()] {
            assert_eq!(code(path.clone()).await, Code::BadArgument, "{path}");
        }
        assert_eq!(pages.call("upload_file", json!({ "paths": [] })).await.unwrap_err().code, Code::BadArgument);
    }

    #[test]
    fn keys_passwords_and_histories_are_secrets_wherever_people_keep_them() {
        for path in [
            "/etc/shadow",
            "/etc/gshadow",
            "/etc/ssl/private/host.pem",
            "/etc/ssh/ssh_host_ed25519_key",
            "/home/a/.pgpass",
            "/home/a/.cargo/credentials",
            "/home/a/.cargo/credentials.toml",
            "/home/a/.bash_history",
            "/home/a/.zsh_history",
            "/root/.python_history",
            "/home/a/.zhistory",
            "/home/a/.aws/credentials",
            "/home/a/app/.env.local",
        ] {
            assert!(is_secret(Path::new(path)), "{path}");
        }
        for path in [
            "/etc/hosts",
            "/etc/ssh/ssh_host_ed25519_key.pub",
            "/etc/ssl/certs/ca.pem",
            "/home/a/.cargo/config.toml",
            "/home/a/history",
            "/home/a/our_history",
            "/home/a/credentials.toml",
            "/home/a/cat.png",
        ] {
            assert!(!is_secret(Path::new(path)), "{path}");
        }
    }
}
