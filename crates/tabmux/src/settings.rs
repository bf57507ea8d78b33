//! Configuration: a file, variables and flags become one `Config`. A flag wins over a variable, a variable over
//! the file; nothing unknown is ignored. This is the only room that looks at the environment.

mod duration;
pub(crate) mod keys;
mod layers;
pub(crate) mod paths;
mod wishes;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tabmux_daemon::Settings;
use tabmux_daemon::settings::{
    AGAINST_RULES, Attach, BrowserChoice, Chromium, Clocks, Domain, Domains, Limits, Listen, OnConflict, OnLost, Scoping, Secrets,
    SessionInfo, Strangers, WindowBounds, Windows,
};

use crate::failure::{Failure, Outcome};
use layers::{Layers, Raw};
pub(crate) use paths::Places;
pub(crate) use wishes::Wishes;

const DEFAULT_PORT: u16 = 3026;

/// The flags every command takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Flags {
    /// Talk to the private daemon NAME instead of the common one
    #[arg(short = 'L', value_name = "NAME", global = true)]
    pub(crate) instance: Option<String>,
    /// The daemon's socket, instead of tabmux.sock in the runtime directory
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) socket: Option<PathBuf>,
    /// The daemon's pid file
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) pid_file: Option<PathBuf>,
    /// The daemon's log file
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) log_file: Option<PathBuf>,
    /// Set one key of the configuration, for example session.idle=5m; wins over file and variables
    #[arg(long, value_name = "KEY=VALUE", global = true)]
    pub(crate) set: Vec<String>,
}

/// What the process was given from outside.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// Variables that are valid UTF-8.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) cwd: PathBuf,
    pub(crate) temp_dir: PathBuf,
    pub(crate) uid: u32,
}

/// Everything this command line and a daemon it starts need to know.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    pub(crate) places: Places,
    pub(crate) flags: Flags,
    /// A filter for the log, as `tracing` reads it.
    pub(crate) log: String,
    /// `TABMUX_TOKEN`: the capability this command line acts with; without it, it is the operator.
    pub(crate) token: Option<String>,
    pub(crate) env: Environment,
}

impl Environment {
    pub(crate) fn of_process() -> Self {
        Self {
            variables: std::env::vars_os().filter_map(|(name, value)| readable(name.into_string().ok()?, value)).collect(),
            cwd: std::env::current_dir().unwrap_or_else(|_| "/".into()),
            temp_dir: std::env::temp_dir(),
            uid: rustix::process::geteuid().as_raw(),
        }
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(|value| self.cwd.join(value))
    }
}

/// What stands in for what is no text.
const NO_TEXT: char = char::REPLACEMENT_CHARACTER;

/// A setting of ours that is no text is kept as such, to be refused; of others' variables it is none of our business.
fn readable(name: String, value: OsString) -> Option<(String, String)> {
    let value = match value.into_string() {
        Err(odd) if name.starts_with("TABMUX_") => odd.to_string_lossy().into_owned(),
        value => value.ok()?,
    };
    Some((name, value))
}

impl Config {
    pub(crate) fn resolve(flags: &Flags, env: Environment) -> Outcome<Self> {
        let layers = Layers::gather(flags, &env)?;
        Self::of(&layers, flags, env)
    }

    /// As if nothing but places had been set, for commands that must work where the settings are broken.
    pub(crate) fn of_places(flags: &Flags, env: Environment) -> Outcome<Self> {
        Self::of(&Layers::default(), flags, env)
    }

    fn of(layers: &Layers, flags: &Flags, env: Environment) -> Outcome<Self> {
        if let Some((name, value)) = env.variables.iter().find(|(name, value)| name.starts_with("TABMUX_") && value.contains(NO_TEXT)) {
            return Err(Failure::configuration(format!("{name} = {value:?} (a variable) is no UTF-8."), "Write it in UTF-8, or unset it."));
        }
        let places = paths::resolve(flags, &env)?;
        let settings = Settings {
            paths: places.paths.clone(),
            clocks: clocks(layers)?,
            limits: limits(layers)?,
            listen: listen(layers, flags)?,
            on_lost: layers.read("session.on_lost", OnLost::Grace, "grace, close or keep", |raw| {
                one_of(raw, &[("grace", OnLost::Grace), ("close", OnLost::Close), ("keep", OnLost::Keep)])
            })?,
            session_info: layers.read("reply.session_info", SessionInfo::Auto, "auto, always or never", |raw| {
                one_of(raw, &[("auto", SessionInfo::Auto), ("always", SessionInfo::Always), ("never", SessionInfo::Never)])
            })?,
            browser: layers.read("browser", BrowserChoice::Named(None), "the path of a Chromium, or fake", |raw| match raw.text()? {
                "" => None,
                "fake" => Some(BrowserChoice::Fake),
                path => Some(BrowserChoice::Named(Some(path.into()))),
            })?,
            chromium: chromium(layers, &places, &env.cwd)?,
            windows: windows(layers)?,
            attach: attach(layers, &env)?,
            secrets: secrets(layers, &env)?,
            declared: layers.declared(),
            supervised: false,
            build: crate::build::Build::own().made,
            conformance_fixtures: layers.read("test.conformance_fixtures", false, TRUTH, truth)?,
        };
        Ok(Self {
            settings,
            places,
            flags: flags.clone(),
            log: layers.read("log", "info".into(), "a log filter such as info, debug or tabmux_daemon=debug", log_filter)?,
            token: env.get("TABMUX_TOKEN").map(Into::into),
            env,
        })
    }
}

/// How sessions isolated by window live (Seed 4).
fn windows(layers: &Layers) -> Outcome<Windows> {
    let choices = "LEFT,TOP,WIDTHxHEIGHT such as 20,20,1800x1200";
    Ok(Windows {
        scoping: layers.read("window.scope", Scoping::Windows, TRUTH, |raw| {
            truth(raw).map(|scoped| if scoped { Scoping::Windows } else { Scoping::Off })
        })?,
        bounds: layers.read("window.bounds", WindowBounds::default(), choices, |raw| bounds(raw.text()?))?,
        strangers: Strangers {
            all_kinds: layers.read("window.include_all_pages", false, TRUTH, truth)?,
            devtools: layers.read("window.devtools_pages", false, TRUTH, truth)?,
        },
    })
}

fn bounds(text: &str) -> Option<WindowBounds> {
    let [left, top, size] = text.split(',').map(str::trim).collect::<Vec<_>>()[..] else { return None };
    let (width, height) = size.split_once('x')?;
    let side = |text: &str| text.parse().ok().filter(|side| (100..=16_384).contains(side));
    Some(WindowBounds { left: left.parse().ok()?, top: top.parse().ok()?, width: side(width)?, height: side(height)? })
}

/// The size most sites are made for.
const WINDOW: (u32, u32) = (1280, 720);

fn chromium(layers: &Layers, places: &Places, cwd: &Path) -> Outcome<Chromium> {
    let args = layers.read("browser_args", Vec::new(), "a list of arguments", |raw| Some(raw.items(&[' ', '\t', '\n'])))?;
    let domains = domains(layers, &args)?;
    Ok(Chromium {
        // Where this binary cannot be found, the name of it is; starting a browser then says what is wrong.
        keeper: std::env::current_exe().unwrap_or_else(|_| "tabmux".into()),
        runtime_dir: places.paths.runtime_dir.clone(),
        profiles_dir: places.paths.state_dir.join("browsers"),
        grace: clocks(layers)?.orphan_grace,
        headless: layers.read("headless", true, TRUTH, truth)?,
        args,
        profile: layers.read("browser_profile", None, "the path of a directory", |raw| {
            Some(raw.text().filter(|path| !path.is_empty()).map(|path| cwd.join(path)))
        })?,
        window: WINDOW,
        domains,
    })
}

fn domains(layers: &Layers, browser_args: &[String]) -> Outcome<Domains> {
    let choices = "a list of domains without ports, such as [\"example.com\", \"*.example.org\", \"127.0.0.1\"]";
    let list =
        |name| layers.read(name, Vec::new(), choices, |raw| raw.items(&[',', ' ']).iter().map(|domain| Domain::parse(domain)).collect());
    let domains = Domains::new(list("policy.allow_domains")?, list("policy.deny_domains")?).map_err(|why| {
        Failure::configuration(format!("policy.allow_domains and policy.deny_domains contradict each other: {why}."), "Change one of them.")
    })?;
    let named = |arg: &&String| AGAINST_RULES.contains(&arg.split('=').next().unwrap_or_default());
    match browser_args.iter().find(named) {
        Some(arg) if !domains.is_open() => Err(Failure::configuration(
            format!("browser_args has {arg:?}, with which policy.allow_domains and policy.deny_domains cannot be kept."),
            "Leave out one of them.",
        )),
        _ => Ok(domains),
    }
}

const ENDPOINT: &str = "auto, a port, http://host:port or ws://host:port/devtools/browser/ID";

fn attach(layers: &Layers, env: &Environment) -> Outcome<Attach> {
    let endpoint = layers.read("attach", None, ENDPOINT, |raw| match raw.text()? {
        "" => Some(None),
        text => tabmux_daemon::check_endpoint(text).is_ok().then(|| Some(text.to_owned())),
    })?;
    Ok(Attach { endpoint, home: env.path("HOME"), config_home: env.path("XDG_CONFIG_HOME") })
}

/// Read here, so that a daemon that starts has them, and nobody else can have changed the file's rights by then.
fn secrets(layers: &Layers, env: &Environment) -> Outcome<Secrets> {
    let choices = "the path of a file of NAME=VALUE lines";
    let path = layers.read("secrets", None, choices, |raw| match raw.text()? {
        "" => Some(None),
        path => Some(Some(env.cwd.join(path))),
    })?;
    let Some(path) = path else { return Ok(Secrets::default()) };
    let shown = path.display();
    let refuse =
        |why: String| Failure::configuration(format!("secrets = {shown}: {why}."), format!("Make it yours alone: chmod 600 {shown}."));
    let metadata = std::fs::metadata(&path).map_err(|error| refuse(error.to_string()))?;
    if !metadata.is_file() || metadata.uid() != env.uid || metadata.mode() & 0o077 != 0 {
        return Err(refuse("others may read or write it, or it is not your file".to_owned()));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| refuse(error.to_string()))?;
    Secrets::parse(&text).map_err(|why| Failure::configuration(format!("secrets = {shown}: {why}."), "Correct that file."))
}

const TRUTH: &str = "true or false";

fn truth(raw: &Raw) -> Option<bool> {
    one_of(raw, &[("true", true), ("1", true), ("yes", true), ("on", true), ("false", false), ("0", false), ("no", false), ("off", false)])
}

fn one_of<T: Copy>(raw: &Raw, choices: &[(&str, T)]) -> Option<T> {
    let text = raw.text()?;
    choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
}

fn log_filter(raw: &Raw) -> Option<String> {
    let text = raw.text()?;
    // A bare word that is no level would be read as the name of a module, and silence everything else.
    let plausible = |part: &str| match part.rsplit_once('=') {
        Some((_, level)) => level.parse::<tracing::level_filters::LevelFilter>().is_ok(),
        None => part.parse::<tracing::level_filters::LevelFilter>().is_ok(),
    };
    let valid = !text.is_empty() && text.split(',').all(plausible) && tracing_subscriber::EnvFilter::try_new(text).is_ok();
    valid.then(|| text.to_owned())
}

fn clocks(layers: &Layers) -> Outcome<Clocks> {
    let defaults = Clocks::default();
    let clock = |name, default| layers.read(name, default, duration::CHOICES, |raw| duration::parse(raw.text()?).ok());
    Ok(Clocks {
        session_idle: clock("session.idle", defaults.session_idle)?,
        orphan_grace: clock("session.orphan_grace", defaults.orphan_grace)?,
        session_save: clock("session.save", defaults.session_save)?,
        exit_when_empty: clock("daemon.exit_when_empty", defaults.exit_when_empty)?,
        // A call without a deadline would wait for ever, so off is not among the choices.
        call_deadline: layers.read("call.deadline", defaults.call_deadline, "a duration from 1ms to 10m, such as 30s", |raw| {
            duration::parse(raw.text()?).ok()?.filter(|deadline| deadline.as_secs() <= 600)
        })?,
    })
}

fn limits(layers: &Layers) -> Outcome<Limits> {
    let defaults = Limits::default();
    let count = |name, default| layers.read(name, default, "a whole number; 0 is no limit", |raw| raw.text()?.parse::<u32>().ok());
    Ok(Limits {
        warn_sessions: count("limits.warn_sessions", defaults.warn_sessions)?,
        max_sessions: count("limits.max_sessions", defaults.max_sessions)?,
        max_clones: count("limits.max_clones", defaults.max_clones)?,
        queue: layers.read("limits.queue", defaults.queue, "a whole number from 1 to 100000", |raw| {
            raw.text()?.parse().ok().filter(|queue| (1..=100_000).contains(queue))
        })?,
    })
}

fn listen(layers: &Layers, flags: &Flags) -> Outcome<Listen> {
    let port = if flags.instance.is_some() { 0 } else { DEFAULT_PORT };
    let default = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let addr =
        layers.read("listen.addr", default, "a loopback address such as 127.0.0.1:3026, a port, or off", |raw| address(raw.text()?))?;
    if let Some(addr) = addr
        && !addr.ip().is_loopback()
    {
        let message = format!("listen.addr = {addr} is reachable from other machines, and tabmux would hand them your browser.");
        return Err(Failure::configuration(
            message,
            "Use a loopback address such as 127.0.0.1:3026, and a tunnel such as ssh -L for access from afar.",
        ));
    }
    Ok(Listen {
        addr,
        also: layers.read("listen.also", Vec::new(), "a list of ports, such as [8765, 3000]", |raw| {
            raw.items(&[',', ' ']).iter().map(|port| port.parse().ok().filter(|port| *port != 0)).collect()
        })?,
        on_conflict: layers.read("listen.on_conflict", OnConflict::Refuse, "refuse or next", |raw| {
            one_of(raw, &[("refuse", OnConflict::Refuse), ("next", OnConflict::Next)])
        })?,
    })
}

fn address(text: &str) -> Option<Option<SocketAddr>> {
    if text == "off" {
        return Some(None);
    }
    let local = |port: &str| port.parse().ok().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    local(text).or_else(|| local(text.strip_prefix("localhost:")?)).or_else(|| text.parse().ok()).map(Some)
}

#[cfg(test)]
mod tests;
