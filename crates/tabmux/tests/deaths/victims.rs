//! The five processes between an agent and its page, as the test sees and kills them.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::support::{Lab, Mcp, process};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    Client,
    Shim,
    Daemon,
    Keeper,
    Browser,
}

pub(crate) const VICTIMS: [Victim; 5] = [Victim::Client, Victim::Shim, Victim::Daemon, Victim::Keeper, Victim::Browser];

impl Victim {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Shim => "shim",
            Self::Daemon => "daemon",
            Self::Keeper => "keeper",
            Self::Browser => "browser",
        }
    }

    /// The processes of this kind that live now. The client is the two `cat`s of [`client`] and their shell.
    pub(crate) fn living(self, lab: &Lab) -> Vec<u32> {
        let is = |pid: &u32| {
            let line = process::command_line(*pid);
            let tabmux = |word: &str| line.contains("tabmux") && line.split(' ').any(|argument| argument == word);
            match self {
                Self::Client => line.starts_with("cat ") || line.starts_with(SHELL),
                Self::Shim => tabmux("mcp") && !line.starts_with("sh "),
                Self::Daemon => tabmux("daemon"),
                Self::Keeper => tabmux("keeper"),
                Self::Browser => line.contains("--remote-debugging-pipe") && !line.contains("--type="),
            }
        };
        process::of_runtime_dir(&lab.runtime_dir()).into_iter().filter(is).collect()
    }
}

/// Two `cat`s and the shim between them; the shell keeps no end of a pipe, so that the end of either is seen.
const CLIENT: &str = "exec 3<&0; cat <&3 | \"$0\" mcp --session \"$1\" 3<&- | cat 3<&- & exec <&- 3<&- >&-; wait";

/// How its command line begins.
const SHELL: &str = "sh -c exec 3<&0; cat";

/// An MCP client in processes of its own, which hold the only other ends of the shim's pipes. Not yet initialized.
pub(crate) fn client(lab: &Lab, session: &str) -> Mcp {
    let mut command = Command::new("sh");
    command.args(["-c", CLIENT, env!("CARGO_BIN_EXE_tabmux"), session]);
    lab.environment(&mut command);
    Mcp::start(lab, command.stderr(Stdio::null()))
}

pub(crate) fn ready_client(lab: &Lab, session: &str) -> Mcp {
    let client = client(lab, session);
    client.initialize();
    client
}

/// Every process of the client that this one belongs to, without its shim.
pub(crate) fn whole_client(pid: u32) -> Vec<u32> {
    // One whose shell was killed has another parent, which may be anybody.
    let is_shell = |pid: &u32| process::command_line(*pid).starts_with(SHELL);
    let Some(shell) = Some(pid).filter(is_shell).or_else(|| process::parent(pid).filter(is_shell)) else { return vec![pid] };
    let cats = process::below(shell).into_iter().filter(|pid| process::command_line(*pid).starts_with("cat "));
    cats.chain([shell]).collect()
}

/// All at one moment: none of them lives to see another's death.
pub(crate) fn kill_at_once(pids: &[u32]) {
    for signal in [Signal::STOP, Signal::KILL] {
        pids.iter().for_each(|pid| process::signal(*pid, signal));
    }
}

/// What browsers have on disk: a directory and a lock each.
pub(crate) fn directories(lab: &Lab) -> usize {
    let names = |path: &Path| std::fs::read_dir(path).map(|entries| entries.count()).unwrap_or_default();
    names(&lab.state_dir().join("browsers")).div_ceil(2)
}

/// The sockets of keepers.
pub(crate) fn sockets(lab: &Lab) -> usize {
    let entries = std::fs::read_dir(lab.runtime_dir()).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("keeper-")).count()
}
