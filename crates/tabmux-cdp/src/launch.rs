//! How a browser is started: what is asked for, and the command line that follows from it. Spawning it and holding its
//! pipe is the keeper's; a debugging port is deliberately absent.

mod error;
mod holder;
mod reach;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use error::LaunchError;
pub(crate) use holder::process_name;
pub use holder::{Holder, holder};
pub use reach::AGAINST_RULES;
use tabmux_driver::Domains;

use crate::find::{Binary, Kind};

/// One browser to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub binary: Binary,
    pub mode: Mode,
    pub profile: Profile,
    /// More arguments for the browser (`TABMUX_BROWSER_ARGS`); they win over ours.
    pub args: Vec<String>,
    /// Width and height of new windows.
    pub window: Option<(u32, u32)>,
    pub proxy: Option<String>,
    pub certificates: Certificates,
    #[serde(default)]
    pub sharing: Sharing,
    /// The sites it can reach at all.
    #[serde(default)]
    pub domains: Domains,
}

/// Who uses the browser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    #[default]
    Many,
    /// One context only; the browser ends with it.
    One,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Headless,
    Headed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// A new one, removed when the browser ends.
    Fresh,
    /// This user data directory, which stays.
    Named(PathBuf),
}

/// What the browser thinks of certificates it cannot verify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certificates {
    #[default]
    Checked,
    /// `--ignore-https-errors`.
    Ignored,
}

/// What of the machine the command line depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// Chromium's sandbox refuses to run as root.
    pub root: bool,
    /// Containers often have 64 MB of `/dev/shm`, in which a page of pictures crashes.
    pub little_shared_memory: bool,
    /// There is somewhere to show windows.
    pub display: bool,
}

/// Each costs renderers, downloads, network or memory that no agent asked for. The first five alone save 30 MB a
/// context (FACTS.md §1), the last half a megabyte a page.
const FEATURES_OFF: [&str; 9] = [
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    "AiModeEligibility",
    "SpareRendererForSitePerProcess",
    "Translate",
    "MediaRouter",
    "OptimizationHints",
    "PartitionAllocLargeThreadCacheSize",
];

/// The network's own process costs 10 MB and a tenth of a second at the start, and on Linux it is not sandboxed either way.
const FEATURES_ON: [&str; 1] = ["NetworkServiceInProcess2"];

/// Without a graphics card and without WebGL nothing runs in the graphics process but the putting together of pictures; on a thread of the browser
/// it costs 13 MB less for ten agents, and so does the process that would only start it. Not where the user wants graphics of some kind: drawing
/// what pages send in code is better kept apart. From about 150 on Chromium would draw WebGL by itself without a card, here in the browser's own
/// process; the last switch keeps it from that, and from 15 MB.
const ONE_PROCESS_LESS: [&str; 3] = ["--in-process-gpu", "--no-unsandboxed-zygote", "--disable-software-rasterizer"];

/// Pages are drawn by the processor here, tile by tile, and a tile that is all one colour costs nothing: of smaller ones more are. Nor is a larger old
/// tile kept for a smaller new one. Together 3 MB less for ten agents; pictures take as long as before.
const SMALL_TILES: [&str; 3] = ["--default-tile-width=128", "--default-tile-height=128", "--disallow-non-exact-resource-reuse"];

const LEAN: [&str; 22] = [
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-startup-window",
    "--noerrdialogs",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-component-extensions-with-background-pages",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
    // Without it two processes wait for crashes that nobody is told of.
    "--disable-crashpad-for-testing",
    "--disable-hang-monitor",
    // A page that opens two windows at a click opens both, as in headless-shell; what a session may have is counted by us.
    "--disable-popup-blocking",
    "--disable-search-engine-choice-screen",
    "--hide-crash-restore-bubble",
    "--metrics-recording-only",
    "--password-store=basic",
    // An agent's tab is mostly a background tab, and its timers are awaited.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
];

/// Reaches this machine's own addresses through a proxy too, which Chromium does not unless it is told.
pub(crate) const NO_BYPASS: &str = "<-loopback>";

/// Chromium reads only the last of each.
const OFF_SWITCH: &str = "--disable-features=";
const ON_SWITCH: &str = "--enable-features=";
/// Enough for a few heavy pages.
const ROOMY_SHARED_MEMORY: u64 = 512 << 20;

impl Launch {
    /// A headless or visible browser with a fresh profile and nothing special.
    #[must_use]
    pub fn new(binary: Binary, mode: Mode) -> Self {
        Self {
            binary,
            mode,
            profile: Profile::Fresh,
            args: Vec::new(),
            window: None,
            proxy: None,
            certificates: Certificates::Checked,
            sharing: Sharing::Many,
            domains: Domains::default(),
        }
    }

    /// The browser's arguments when its user data is in `data`.
    #[must_use]
    pub fn arguments(&self, data: &Path, surroundings: Surroundings) -> Vec<String> {
        let mut all: Vec<String> = LEAN.iter().map(|&flag| flag.to_owned()).collect();
        all.push(format!("--user-data-dir={}", data.display()));
        all.push(self.features((OFF_SWITCH, &FEATURES_OFF), ON_SWITCH));
        all.push(self.features((ON_SWITCH, &FEATURES_ON), OFF_SWITCH));
        if self.binary.kind != Kind::HeadlessShell {
            // Lets the pipe, and nothing else, load the extension that puts tabs into windows.
            all.push("--enable-unsafe-extension-debugging".to_owned());
        }
        if self.mode == Mode::Headless {
            if self.binary.kind != Kind::HeadlessShell {
                all.push("--headless=new".to_owned());
                all.extend(self.screen());
            }
            all.extend(["--hide-scrollbars", "--mute-audio", "--disable-gpu"].map(str::to_owned));
            let wants_graphics = self.args.iter().any(|arg| ["gpu", "-gl", "angle", "swiftshader"].iter().any(|word| arg.contains(word)));
            if !wants_graphics {
                all.extend(ONE_PROCESS_LESS.map(str::to_owned));
                all.extend(SMALL_TILES.map(str::to_owned));
            }
        }
        if surroundings.root {
            all.push("--no-sandbox".to_owned());
        }
        if surroundings.little_shared_memory {
            all.push("--disable-dev-shm-usage".to_owned());
        }
        if let Some((width, height)) = self.window {
            all.push(format!("--window-size={width},{height}"));
        }
        if let Some(proxy) = &self.proxy {
            all.push(format!("--proxy-server={proxy}"));
        }
        if self.certificates == Certificates::Ignored {
            all.push("--ignore-certificate-errors".to_owned());
        }
        let has = |switch: &str| self.args.iter().any(|arg| arg.split('=').next() == Some(switch));
        if (self.proxy.is_some() || has("--proxy-server")) && !has("--proxy-bypass-list") {
            all.push(format!("--proxy-bypass-list={NO_BYPASS}"));
        }
        all.extend(self.args.iter().filter(|arg| !arg.starts_with(OFF_SWITCH) && !arg.starts_with(ON_SWITCH)).cloned());
        // Last, so that nothing of the user's takes their place.
        all.extend(reach::arguments(&self.domains));
        all
    }

    /// The screen of a full browser that is unseen is small whatever its windows are, and pages would see one that is wider than its screen. It
    /// gets the size of the windows, unless the user says otherwise.
    fn screen(&self) -> Option<String> {
        let theirs = self.args.iter().rev().find_map(|arg| arg.strip_prefix("--window-size="));
        let window = match theirs {
            Some(size) => size.split_once(',').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?))),
            None => self.window,
        };
        let given = self.args.iter().any(|arg| arg.split('=').next() == Some("--screen-info"));
        window.filter(|_| !given).map(|(width, height)| format!("--screen-info={{{width}x{height}}}"))
    }

    /// The user's features join ours, but for those of ours that the user switches the other way.
    fn features(&self, (switch, ours): (&str, &[&str]), opposite: &str) -> String {
        let named = |switch: &str| -> Vec<&str> {
            self.args.iter().filter_map(|arg| arg.strip_prefix(switch)).flat_map(|list| list.split(',')).collect()
        };
        let refused = named(opposite);
        let kept = ours.iter().copied().filter(|feature| !refused.contains(feature));
        format!("{switch}{}", kept.chain(named(switch)).collect::<Vec<_>>().join(","))
    }
}

impl Surroundings {
    #[must_use]
    pub fn here() -> Self {
        let shm = rustix::fs::statvfs("/dev/shm").map(|shm| shm.f_blocks.saturating_mul(shm.f_frsize));
        Self {
            root: rustix::process::geteuid().is_root(),
            little_shared_memory: cfg!(target_os = "linux") && shm.unwrap_or_default() < ROOMY_SHARED_MEMORY,
            display: !cfg!(target_os = "linux") || has_display(|name| std::env::var_os(name)),
        }
    }
}

/// A variable that is empty names no display.
fn has_display(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().filter_map(variable).any(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(change: impl FnOnce(&mut Launch), surroundings: Surroundings) -> Vec<String> {
        let mut launch = Launch::new(Binary { path: "/usr/lib/chromium/chromium".into(), kind: Kind::Chromium }, Mode::Headless);
        change(&mut launch);
        launch.arguments(Path::new("/data"), surroundings)
    }

    const ORDINARY: Surroundings = Surroundings { root: false, little_shared_memory: false, display: true };

    #[test]
    fn a_variable_that_is_empty_names_no_display() {
        let with = |name: &'static str, value: &'static str| has_display(move |asked| (asked == name).then(|| value.into()));
        assert!(with("DISPLAY", ":0") && with("WAYLAND_DISPLAY", "wayland-0"));
        assert!(!with("DISPLAY", "") && !with("WAYLAND_DISPLAY", "") && !with("TERM", "x"));
    }

    #[test]
    fn the_pipe_is_the_only_debugging_door() {
        let all = arguments(|_| (), ORDINARY);
        assert!(all.contains(&"--remote-debugging-pipe".to_owned()) && all.contains(&"--user-data-dir=/data".to_owned()));
        assert!(!all.iter().any(|arg| arg.contains("remote-debugging-port")));
    }

    #[test]
    fn the_sandbox_is_given_up_only_as_root() {
        let flag = "--no-sandbox".to_owned();
        assert!(!arguments(|_| (), ORDINARY).contains(&flag));
        assert!(arguments(|_| (), Surroundings { root: true, ..ORDINARY }).contains(&flag));
        let small = Surroundings { little_shared_memory: true, ..ORDINARY };
        assert!(arguments(|_| (), small).contains(&"--disable-dev-shm-usage".to_owned()));
    }

    #[test]
    fn headless_is_a_flag_of_full_browsers_only() {
        let headless = |all: Vec<String>| all.iter().any(|arg| arg.starts_with("--headless"));
        assert!(headless(arguments(|_| (), ORDINARY)));
        assert!(!headless(arguments(|launch| launch.mode = Mode::Headed, ORDINARY)));
        assert!(!headless(arguments(|launch| launch.binary.kind = Kind::HeadlessShell, ORDINARY)));
    }

    #[test]
    fn window_proxy_and_certificates_are_passed_on() {
        let all = arguments(
            |launch| {
                launch.window = Some((800, 600));
                launch.proxy = Some("socks5://127.0.0.1:9".into());
                launch.certificates = Certificates::Ignored;
            },
            ORDINARY,
        );
        for flag in ["--window-size=800,600", "--proxy-server=socks5://127.0.0.1:9", "--ignore-certificate-errors"] {
            assert!(all.contains(&flag.to_owned()), "{flag}");
        }
    }

    #[test]
    fn the_screen_of_a_full_browser_that_is_unseen_is_as_large_as_its_windows() {
        let screens = |kind: Kind, mode: Mode, theirs: &[&str]| {
            let change = |launch: &mut Launch| {
                (launch.binary.kind, launch.mode, launch.window) = (kind, mode, Some((1280, 720)));
                launch.args = theirs.iter().map(ToString::to_string).collect();
            };
            arguments(change, ORDINARY).into_iter().filter(|arg| arg.starts_with("--screen-info")).collect::<Vec<_>>()
        };
        let unseen = |theirs: &[&str]| screens(Kind::Chrome, Mode::Headless, theirs);
        assert_eq!(unseen(&[]), ["--screen-info={1280x720}"]);
        assert_eq!(unseen(&["--window-size=10,10", "--window-size=1600,900"]), ["--screen-info={1600x900}"]);
        assert_eq!(unseen(&["--screen-info={800x600}"]), ["--screen-info={800x600}"]);
        assert_eq!(unseen(&["--window-size=large"]), Vec::<String>::new());
        assert_eq!(screens(Kind::Chrome, Mode::Headed, &[]), Vec::<String>::new());
        assert_eq!(screens(Kind::HeadlessShell, Mode::Headless, &[]), Vec::<String>::new());
    }

    /// Who names a proxy means all hosts, as in Playwright; who also says which are reached without it is left alone.
    #[test]
    fn a_proxy_gets_this_machines_own_addresses_too() {
        let bypassed = |theirs: &[&str]| {
            let all = arguments(|launch| launch.args = theirs.iter().map(ToString::to_string).collect(), ORDINARY);
            all.into_iter().filter(|arg| arg.starts_with("--proxy-bypass-list")).collect::<Vec<_>>()
        };
        assert_eq!(bypassed(&["--proxy-server=a.test:1"]), ["--proxy-bypass-list=<-loopback>"]);
        assert_eq!(bypassed(&["--proxy-server=a.test:1", "--proxy-bypass-list=b.test"]), ["--proxy-bypass-list=b.test"]);
        assert_eq!(bypassed(&[]), Vec::<String>::new());
    }

    #[test]
    fn pictures_are_put_together_in_the_browser_unless_the_user_wants_graphics() {
        let lean = |mode: Mode, theirs: &[&str]| {
            let all = arguments(
                |launch| {
                    launch.mode = mode;
                    launch.args = theirs.iter().map(ToString::to_string).collect();
                },
                ORDINARY,
            );
            ONE_PROCESS_LESS.iter().chain(&SMALL_TILES).filter(|flag| all.iter().any(|arg| arg == *flag)).count()
        };
        let every = ONE_PROCESS_LESS.len() + SMALL_TILES.len();
        assert_eq!((lean(Mode::Headless, &["--lang=de"]), lean(Mode::Headed, &[])), (every, 0));
        for theirs in ["--enable-unsafe-swiftshader", "--use-angle=gl", "--use-gl=egl", "--enable-gpu"] {
            assert_eq!(lean(Mode::Headless, &[theirs]), 0, "{theirs}");
        }
    }

    #[test]
    fn features_the_user_names_join_ours_and_other_arguments_come_last() {
        let theirs = ["--disable-features=Foo,Bar", "--enable-features=Baz", "--lang=de"].map(str::to_owned).to_vec();
        let all = arguments(|launch| launch.args = theirs, ORDINARY);
        for (switch, ours, ending) in [(OFF_SWITCH, "WebUIOmniboxPopup", ",Foo,Bar"), (ON_SWITCH, "NetworkServiceInProcess2", ",Baz")] {
            let features: Vec<_> = all.iter().filter(|arg| arg.starts_with(switch)).collect();
            assert_eq!(features.len(), 1);
            assert!(features[0].contains(ours) && features[0].ends_with(ending), "{features:?}");
        }
        assert_eq!(all.last().unwrap(), "--lang=de");
    }

    #[test]
    fn a_feature_the_user_switches_the_other_way_is_theirs() {
        let theirs = ["--disable-features=NetworkServiceInProcess2", "--enable-features=Translate"].map(str::to_owned).to_vec();
        let all = arguments(|launch| launch.args = theirs, ORDINARY);
        let named = |feature: &str| all.iter().filter(|arg| arg.contains(feature)).collect::<Vec<_>>();
        assert!(named("NetworkServiceInProcess2").iter().all(|arg| arg.starts_with(OFF_SWITCH)));
        assert!(named("Translate").iter().all(|arg| arg.starts_with(ON_SWITCH)));
    }
}
