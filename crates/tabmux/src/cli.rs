//! The one table of commands: parser, help, man page and completions all come from it. What a command does is in `commands/`.

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};

use crate::settings::Flags;

/// Tabs for AI agents, shared safely: one daemon, many clients, each with sessions of its own.
///
/// Add `tabmux mcp` to your MCP client, or run `tabmux up` to see how.
#[derive(Debug, Parser)]
#[command(name = "tabmux", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// Print one JSON document, also for errors
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The same with `tabmux mcp` alone. A shim lives as long as its agent, and memory once taken for the table of all
/// commands would stay with it.
#[derive(Parser)]
struct Lean {
    #[command(flatten)]
    flags: Flags,
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    only: OnlyMcp,
}

#[derive(Subcommand)]
enum OnlyMcp {
    Mcp(Box<Mcp>),
}

impl Cli {
    pub(crate) fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        match Lean::try_parse_from(words) {
            Ok(Lean { flags, json, only: OnlyMcp::Mcp(mcp) }) => Ok(Self { flags, json, command: Some(Command::Mcp(mcp)) }),
            // Another command, or something is wrong: the whole table knows which.
            Err(_) => Self::try_parse_from(words),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve MCP on standard input and output; finds or starts the daemon
    Mcp(Box<Mcp>),
    /// Run and supervise the daemon in the foreground, and show how to connect clients
    Up {
        /// Use a browser that already runs: its address, a port, or auto to find it
        #[arg(long, value_name = "URL|auto")]
        attach: Option<String>,
        #[command(flatten)]
        scope: Scope,
    },
    /// Show what runs
    Status,
    /// End the daemon, its sessions and its browsers
    #[command(visible_alias = "kill-server")]
    Stop,
    /// Print the daemon's log
    Logs {
        /// Go on printing what is added
        #[arg(short, long)]
        follow: bool,
    },
    /// Say what is wrong and how to put it right
    Doctor {
        /// Try instead what two sessions see of each other, in a daemon and browser of its own; UNIT is context, window, tab or browser
        #[arg(long, value_name = "UNIT", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
        #[arg(value_parser = ["all", "context", "window", "tab", "browser"], hide_possible_values = true)]
        isolation: Option<String>,
        /// Both are one session, so that everything leaks: proves that the doctor would see it
        #[arg(long, hide = true, requires = "isolation")]
        same_session: bool,
    },
    /// Make a session
    #[command(visible_alias = "new-session")]
    New {
        /// Its name
        #[arg(short, value_name = "NAME")]
        session: Option<String>,
        #[command(flatten)]
        make: Make,
        /// Where it goes first
        url: Option<String>,
    },
    /// List sessions
    #[command(visible_alias = "list-sessions")]
    Ls(Ls),
    /// Exit 0 if the session exists, else 1
    HasSession {
        #[arg(short, value_name = "NAME")]
        target: String,
    },
    /// End a session and close its tabs
    KillSession {
        #[arg(short, value_name = "NAME")]
        target: String,
    },
    /// Give a session another name
    RenameSession {
        #[arg(short, value_name = "NAME")]
        target: String,
        /// The new name
        name: String,
    },
    /// Copy a session with its logins and pages; prints the copies' names
    Fork(Fork),
    /// Give others a right to a session: prints a capability, once
    Share(Share),
    /// Open the live view of a session (not built yet)
    #[command(visible_alias = "attach-session")]
    Attach {
        #[arg(short, value_name = "NAME")]
        target: Option<String>,
    },
    /// Call any tool: `tabmux call navigate url=https://example.com`
    Call {
        tool: String,
        /// key=value (read as JSON where it is JSON) or key:=JSON
        #[arg(value_name = "KEY=VALUE")]
        pairs: Vec<String>,
        /// All arguments as one JSON object
        #[arg(long, value_name = "JSON")]
        args: Option<String>,
        #[command(flatten)]
        at: At,
    },
    #[command(flatten)]
    Short(Short),
    /// List the tools
    Tools {
        /// Also what each costs a model, in tokens
        #[arg(long)]
        cost: bool,
    },
    /// Identities for HTTP clients
    #[command(subcommand)]
    Token(Token),
    /// Logins that tabmux keeps, for sessions to begin with: `tabmux new --from NAME`
    #[command(subcommand)]
    Profile(Profile),
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
    /// Sessions of one agent, by uuid
    #[command(subcommand)]
    AgentSession(AgentSession),
    /// Print the man page
    #[command(hide = true)]
    Man,
    /// Be the daemon
    #[command(hide = true)]
    Daemon {
        /// Never exit when empty
        #[arg(long)]
        supervised: bool,
    },
}

/// What sessions isolated by window see of the rest of their browser; the operator's to say.
#[derive(Debug, Default, Args)]
pub(crate) struct Scope {
    /// Show sessions isolated by window the person's pages too
    #[arg(long)]
    pub(crate) no_window_scope: bool,
    /// Then also pages that are no tabs
    #[arg(long)]
    pub(crate) include_all_pages: bool,
    /// Then also the pages of developer tools
    #[arg(long)]
    pub(crate) devtools_pages: bool,
}

impl Scope {
    /// As settings.
    pub(crate) fn settings(&self) -> impl Iterator<Item = String> {
        let flags = [
            (self.no_window_scope, "window.scope=false"),
            (self.include_all_pages, "window.include_all_pages=true"),
            (self.devtools_pages, "window.devtools_pages=true"),
        ];
        flags.into_iter().filter(|(given, _)| *given).map(|(_, setting)| setting.to_owned())
    }
}

/// How a session is made.
#[derive(Debug, Default, Args)]
pub(crate) struct Make {
    /// What keeps it apart from others: context, window, tab or browser
    #[arg(long, value_name = "UNIT", value_parser = ["context", "window", "tab", "browser"], hide_possible_values = true)]
    pub(crate) isolation: Option<String>,
    /// Whose logins it begins with: a session, a profile, or a storage-state file
    #[arg(long, value_name = "SOURCE")]
    pub(crate) from: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Keep this client's session under a name, so that a restarted client gets it back
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// How many tools to list; all of them stay callable
    #[arg(long, value_parser = ["slim", "core", "full"])]
    pub(crate) tools: Option<String>,
    /// Show the browser
    #[arg(long)]
    pub(crate) headed: bool,
    /// Size of the page, for example 1280x720
    #[arg(long, value_name = "WxH")]
    pub(crate) viewport_size: Option<String>,
    #[command(flatten)]
    pub(crate) make: Make,
    /// Cookies and storage to begin with
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub(crate) storage_state: Option<std::path::PathBuf>,
    /// A running browser to use: its address, a port, or auto
    #[arg(long, value_name = "URL")]
    pub(crate) cdp_endpoint: Option<String>,
    /// Accept bad certificates
    #[arg(long)]
    pub(crate) ignore_https_errors: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Ls {
    /// One line per session, for example '#{session_name} #{session_tabs}'
    #[arg(short = 'F', value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Everybody's sessions, not only yours
    #[arg(short, long)]
    pub(crate) all: bool,
}

/// Where a call goes.
#[derive(Debug, Default, Args)]
pub(crate) struct At {
    /// The session; without it the current one
    #[arg(short, value_name = "NAME", env = "TABMUX_SESSION", hide_env = true)]
    pub(crate) target: Option<String>,
    /// The tab; without it the current one
    #[arg(long, value_name = "ID")]
    pub(crate) tab: Option<String>,
    /// Milliseconds the call may take
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<u64>,
}

/// Short forms of the tools that are used all day.
#[derive(Debug, Subcommand)]
pub(crate) enum Short {
    /// Go to a URL
    Open {
        url: String,
        #[command(flatten)]
        at: At,
    },
    /// Show the page as an agent reads it
    Snapshot {
        #[command(flatten)]
        at: At,
    },
    /// Click an element
    Click {
        /// A ref (e12), CSS, XPath, ~accessibility-id, text=… or role=…
        selector: String,
        #[command(flatten)]
        at: At,
    },
    /// Put a value into a field
    Fill {
        selector: String,
        text: String,
        #[command(flatten)]
        at: At,
    },
    /// Type where the focus is
    Type {
        text: String,
        #[command(flatten)]
        at: At,
    },
    /// Press a key
    Press {
        key: String,
        #[command(flatten)]
        at: At,
    },
    /// Run a script in the page
    Eval {
        script: String,
        #[command(flatten)]
        at: At,
    },
    /// Take a picture of the page
    Screenshot {
        /// Where to; its ending says the format (.png, .jpg)
        #[arg(default_value = "screenshot.png")]
        file: String,
        /// All of the page, however long
        #[arg(long, conflicts_with = "selector")]
        full_page: bool,
        /// Only the first element that matches
        #[arg(long, value_name = "SELECTOR")]
        selector: Option<String>,
        #[command(flatten)]
        at: At,
    },
    /// Bring back the pages and logins that a session lost with its browser
    Restore {
        #[command(flatten)]
        at: At,
    },
    /// Move a session, with its pages and logins, into another browser or another kind of isolation
    Migrate {
        /// context, browser, window or tab
        #[arg(long, value_name = "UNIT", value_parser = ["context", "browser", "window", "tab"], hide_possible_values = true)]
        isolation: Option<String>,
        /// Into a browser with a window
        #[arg(long)]
        headed: bool,
        /// Into one without
        #[arg(long, conflicts_with = "headed")]
        headless: bool,
        /// Also where something cannot move and is lost, or where others get its logins
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        at: At,
    },
    /// Wait for a text, or for what the flags say
    Wait {
        text: Option<String>,
        /// Until an element that matches can be seen
        #[arg(long, value_name = "CSS")]
        selector: Option<String>,
        /// Until the address has this part, or fits this glob
        #[arg(long, value_name = "PART")]
        url: Option<String>,
        /// Until this text or element is gone
        #[arg(long)]
        gone: Option<String>,
        #[command(flatten)]
        at: At,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The session; without it the current one
    #[arg(short, value_name = "NAME", env = "TABMUX_SESSION", hide_env = true)]
    pub(crate) target: Option<String>,
    /// How many copies
    #[arg(short = 'n', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) count: u32,
    /// What their names begin with; without it the session's name
    #[arg(short, value_name = "PREFIX")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Profile {
    /// Make a profile
    New {
        name: String,
        /// What it begins with: a session, a profile, or a storage-state file
        #[arg(long, value_name = "SOURCE")]
        from: Option<String>,
    },
    /// List profiles
    Ls,
    /// Remove a profile and its logins
    Rm { name: String },
    /// Keep the logins of a session in a profile
    Save {
        name: String,
        /// The session; without it the current one
        #[arg(short, value_name = "NAME", env = "TABMUX_SESSION", hide_env = true)]
        target: Option<String>,
    },
    /// Show a window to log in at, and keep what is in it when it is closed
    Login {
        name: String,
        /// Where it goes first
        url: Option<String>,
    },
    /// Keep the logins of your own browser, while it is closed
    Import {
        name: String,
        /// Which browser: chrome, chromium, edge or brave
        #[arg(long, value_parser = ["chrome", "chromium", "edge", "brave"], hide_possible_values = true)]
        browser: Option<String>,
        /// Its profile, as chrome://version shows it
        #[arg(long, value_name = "DIR")]
        profile_dir: Option<std::path::PathBuf>,
        /// Also where there is a profile of that name: it then holds what was read instead
        #[arg(long)]
        replace: bool,
    },
    /// Write a profile to a file, in Playwright's storage-state format; - is standard output
    Export { name: String, file: std::path::PathBuf },
}

/// What is shared, with which limits; or what is to be done about what was.
#[derive(Debug, Args)]
pub(crate) struct Share {
    /// The session; without it the current one
    #[arg(short, value_name = "NAME", env = "TABMUX_SESSION", hide_env = true)]
    pub(crate) target: Option<String>,
    /// read: look only; act: use its pages; hand_over: the first use takes the session over
    #[arg(long, value_parser = ["read", "act", "hand_over"], hide_possible_values = true)]
    pub(crate) mode: Option<String>,
    /// Only for this tool; several times for several
    #[arg(long = "tool", value_name = "TOOL")]
    pub(crate) tools: Vec<String>,
    /// Only for this site and what is below it; several times for several
    #[arg(long = "domain", value_name = "HOST")]
    pub(crate) domains: Vec<String>,
    /// For how long, for example 10m
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<String>,
    /// For one call
    #[arg(long)]
    pub(crate) once: bool,
    /// Show what is shared
    #[arg(long, conflicts_with_all = ["mode", "tools", "domains", "ttl", "once", "revoke"])]
    pub(crate) list: bool,
    /// End a grant by its id, or all
    #[arg(long, value_name = "ID", conflicts_with_all = ["mode", "tools", "domains", "ttl", "once"])]
    pub(crate) revoke: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make an identity and print its token, once
    New { name: String },
    /// List identities
    Ls,
    /// End an identity
    Revoke { name: String },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentSession {
    /// Open a session and print its id
    Open {
        /// The profile its logins are copied from
        #[arg(long, value_name = "NAME|UUID")]
        profile: Option<String>,
        #[arg(long)]
        url: Option<String>,
    },
    /// Open one more tab in a session
    Tab {
        #[arg(long, value_name = "UUID")]
        session: String,
        #[arg(long)]
        url: Option<String>,
    },
    /// Close a session and forget its data
    Dispose {
        #[arg(long, value_name = "UUID")]
        session: String,
    },
    /// List your sessions
    List,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Cli, OsString};

    /// The short way for shims must not become a second command line.
    #[test]
    fn one_command_alone_is_read_as_it_is_in_the_whole_table() {
        for line in [
            "tabmux mcp",
            "tabmux -L work --json mcp --session a --tools slim --headed",
            "tabmux mcp -L work --set session.idle=5m --viewport-size 1280x720 --from default --isolation window",
            "tabmux mcp --storage-state a --from b",
            "tabmux mcp --unknown",
            "tabmux mcp --help",
            "tabmux -L mcp",
            "tabmux new -s mcp",
            "tabmux --version",
            "tabmux",
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let said = |read: Result<Cli, clap::Error>| match read {
                Ok(cli) => format!("{cli:?}"),
                Err(error) => error.render().to_string(),
            };
            assert_eq!(said(Cli::read(&words)), said(Cli::try_parse_from(&words)), "{line}");
        }
    }
}
