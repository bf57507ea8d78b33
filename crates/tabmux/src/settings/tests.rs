//! What a person may write, and what they read when it is wrong.

use std::time::Duration;

use super::*;
use crate::failure::Exit;

struct Desk {
    home: tempfile::TempDir,
    variables: BTreeMap<String, String>,
    flags: Flags,
}

impl Desk {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let variables = BTreeMap::from([("HOME".to_owned(), home.path().to_str().unwrap().to_owned())]);
        Self { home, variables, flags: Flags::default() }
    }

    fn var(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    fn set(mut self, pair: &str) -> Self {
        self.flags.set.push(pair.into());
        self
    }

    fn file(self, text: &str) -> Self {
        let path = self.home.path().join("c.toml");
        std::fs::write(&path, text).unwrap();
        self.var("TABMUX_CONFIG", path.to_str().unwrap())
    }

    fn config(&self) -> Outcome<Config> {
        let env = Environment { variables: self.variables.clone(), cwd: "/".into(), temp_dir: "/tmp".into(), uid: 1 };
        Config::resolve(&self.flags, env)
    }

    fn complaint(&self) -> String {
        let failure = self.config().unwrap_err();
        assert_eq!(failure.exit, Exit::BadConfiguration);
        format!("{} {}", failure.fault.message, failure.fault.hint)
    }
}

/// S0.19, S0.20, S1.10, S1.46, S2.23, S3.19
#[test]
fn with_nothing_set_the_documents_defaults_hold() {
    let config = Desk::new().config().unwrap();
    let clocks = config.settings.clocks;
    assert_eq!(clocks.session_idle, Some(Duration::from_secs(1800)));
    assert_eq!(clocks.orphan_grace, Some(Duration::from_secs(300)));
    assert_eq!(clocks.exit_when_empty, Some(Duration::from_secs(60)));
    assert_eq!(clocks.call_deadline, Duration::from_secs(30));
    let limits = config.settings.limits;
    assert_eq!((limits.warn_sessions, limits.max_sessions, limits.max_clones), (5, 0, 10));
    assert_eq!(config.settings.listen.addr, Some("127.0.0.1:3026".parse().unwrap()));
    assert!(config.settings.chromium.headless && config.settings.chromium.args.is_empty() && config.log == "info");
}

#[test]
fn a_flag_wins_over_a_variable_and_a_variable_over_the_file() {
    let desk = Desk::new().file("[session]\nidle = \"1m\"\norphan_grace = 7\non_lost = \"keep\"");
    let clocks = |desk: &Desk| desk.config().unwrap().settings.clocks;
    assert_eq!(clocks(&desk).session_idle, Some(Duration::from_secs(60)));
    assert_eq!(clocks(&desk).orphan_grace, Some(Duration::from_secs(7)));
    assert_eq!(desk.config().unwrap().settings.on_lost, OnLost::Keep);
    let desk = desk.var("TABMUX_SESSION_IDLE", "2m");
    assert_eq!(clocks(&desk).session_idle, Some(Duration::from_secs(120)));
    let desk = desk.set("session.idle=0");
    assert_eq!(clocks(&desk).session_idle, None);
}

#[test]
fn every_key_of_the_file_is_read() {
    let text = r#"
        browser = "fake"
        browser_args = ["--a b", "--c"]
        headless = false
        log = "debug"
        window = { bounds = "1,-2,300x400", scope = false, include_all_pages = true, devtools_pages = true }
        session = { idle = 1, orphan_grace = "2s", on_lost = "close" }
        daemon.exit_when_empty = 0
        call.deadline = "4s"
        limits = { warn_sessions = 1, max_sessions = 2, max_clones = 3, queue = 4 }
        listen = { addr = "[::1]:0", also = [8765, 3000], on_conflict = "next" }
        reply.session_info = "always"
        test.conformance_fixtures = true"#;
    let config = Desk::new().file(text).config().unwrap();
    let Settings { clocks, limits, listen, .. } = config.settings;
    assert_eq!(config.settings.chromium.args, ["--a b", "--c"]);
    assert_eq!((clocks.exit_when_empty, clocks.call_deadline), (None, Duration::from_secs(4)));
    assert_eq!((limits.warn_sessions, limits.max_sessions, limits.max_clones, limits.queue), (1, 2, 3, 4));
    assert_eq!((listen.addr, listen.also, listen.on_conflict), (Some("[::1]:0".parse().unwrap()), vec![8765, 3000], OnConflict::Next));
    assert_eq!(config.settings.browser, BrowserChoice::Fake);
    let Windows { scoping, bounds, strangers } = config.settings.windows;
    assert_eq!((scoping, bounds), (Scoping::Off, WindowBounds { left: 1, top: -2, width: 300, height: 400 }));
    assert_eq!(strangers, Strangers { all_kinds: true, devtools: true });
    assert!(
        config.settings.conformance_fixtures && config.settings.session_info == SessionInfo::Always && !config.settings.chromium.headless
    );
}

#[test]
fn an_unknown_key_names_itself_its_place_and_its_neighbour() {
    let complaint = Desk::new().file("\n[session]\nidel = 5\n").complaint();
    for part in ["session.idel = \"5\"", "c.toml:3", "Did you mean session.idle?", "limits.queue"] {
        assert!(complaint.contains(part), "{part}: {complaint}");
    }
    assert!(!complaint.contains("conformance"));
    assert!(Desk::new().set("browzer=x").complaint().contains("Did you mean browser?"));
}

#[test]
fn a_bad_value_names_key_value_source_and_choices() {
    for (desk, parts) in [
        (Desk::new().file("session.idle = \"soon\""), ["session.idle = \"soon\"", "c.toml:1", "500ms"]),
        (Desk::new().var("TABMUX_EXIT_WHEN_EMPTY", "1d"), ["daemon.exit_when_empty", "variable TABMUX_EXIT_WHEN_EMPTY", "5m"]),
        (Desk::new().set("session.on_lost=forget"), ["session.on_lost = \"forget\"", "flag --set", "grace, close or keep"]),
        (Desk::new().file("limits.queue = 0"), ["limits.queue = \"0\"", "c.toml:1", "1 to 100000"]),
        (Desk::new().file("listen.also = [0]"), ["listen.also", "[\"0\"]", "ports"]),
        (Desk::new().var("TABMUX_CALL_DEADLINE", "0"), ["call.deadline", "\"0\"", "10m"]),
        (Desk::new().var("TABMUX_HEADLESS", "maybe"), ["headless", "\"maybe\"", "true or false"]),
        (Desk::new().var("TABMUX_LOG", "loud"), ["log = \"loud\"", "TABMUX_LOG", "debug"]),
        (Desk::new().var("TABMUX_WINDOW_BOUNDS", "20,20"), ["window.bounds = \"20,20\"", "TABMUX_WINDOW_BOUNDS", "20,20,1800x1200"]),
        (Desk::new().file("a = \n"), ["c.toml:1", "not TOML", "Correct"]),
        (Desk::new().var("TABMUX_SESSION_IDLE", "\u{fffd}"), ["TABMUX_SESSION_IDLE = \"\u{fffd}\"", "no UTF-8", "unset"]),
    ] {
        let complaint = desk.complaint();
        for part in parts {
            assert!(complaint.contains(part), "{part}: {complaint}");
        }
    }
}

#[test]
fn a_variable_that_is_not_ours_is_an_error_where_it_begins_like_one() {
    assert!(Desk::new().var("TABMUX_BROWSR", "fake").complaint().contains("Did you mean TABMUX_BROWSER?"));
    let unknown = Desk::new().var("TABMUX_NOSUCH", "1").complaint();
    for part in ["TABMUX_NOSUCH = \"1\"", "TABMUX_SESSION_IDLE", "TABMUX_TOKEN"] {
        assert!(unknown.contains(part), "{part}: {unknown}");
    }
    assert!(Desk::new().var("CMUX_WORKSPACE_ID", "w").config().is_ok());
    assert!(Desk::new().var("TABMUX_BLESS", "1").config().is_ok());
}

#[test]
fn the_http_door_opens_on_loopback_only() {
    let listen = |value: &str| Desk::new().var("TABMUX_LISTEN", value).config().map(|config| config.settings.listen.addr);
    assert_eq!(listen("off").unwrap(), None);
    for (text, addr) in [("4000", "127.0.0.1:4000"), ("localhost:0", "127.0.0.1:0"), ("127.0.0.2:1", "127.0.0.2:1"), ("[::1]:5", "[::1]:5")]
    {
        assert_eq!(listen(text).unwrap(), Some(addr.parse().unwrap()), "{text}");
    }
    for text in ["0.0.0.0:3026", "192.168.1.5:80", "[::]:1"] {
        let failure = listen(text).unwrap_err();
        assert_eq!(failure.exit, Exit::BadConfiguration);
        assert!(failure.fault.message.contains("other machines"), "{text}");
    }
    assert!(Desk::new().var("TABMUX_LISTEN", "example.com:80").complaint().contains("loopback"));
}

#[test]
fn a_private_daemon_takes_a_free_port_unless_told() {
    let mut desk = Desk::new();
    desk.flags.instance = Some("t".into());
    assert_eq!(desk.config().unwrap().settings.listen.addr, Some("127.0.0.1:0".parse().unwrap()));
    let desk = desk.var("TABMUX_LISTEN", "4001");
    assert_eq!(desk.config().unwrap().settings.listen.addr, Some("127.0.0.1:4001".parse().unwrap()));
}

#[test]
fn a_file_that_was_named_must_exist_and_the_default_one_need_not() {
    assert!(Desk::new().config().is_ok());
    assert!(Desk::new().var("TABMUX_CONFIG", "/nowhere/c.toml").complaint().contains("/nowhere/c.toml"));
    let desk = Desk::new();
    std::fs::create_dir_all(desk.home.path().join(".config/tabmux")).unwrap();
    std::fs::write(desk.home.path().join(".config/tabmux/config.toml"), "session.idle = 9").unwrap();
    assert_eq!(desk.config().unwrap().settings.clocks.session_idle, Some(Duration::from_secs(9)));
}

/// As an error shows it, as in the file, and as variables have always been read.
#[test]
fn a_list_is_written_in_brackets_or_without() {
    let allowed =
        |desk: Desk| desk.config().unwrap().settings.chromium.domains.allowed().iter().map(ToString::to_string).collect::<Vec<_>>();
    let written = "[\"127.0.0.1\", \"*.example.com\"]";
    for desk in [
        Desk::new().set(&format!("policy.allow_domains={written}")),
        Desk::new().set("policy.allow_domains=127.0.0.1,*.example.com"),
        Desk::new().var("TABMUX_ALLOW_DOMAINS", written),
        Desk::new().file(&format!("policy.allow_domains = {written}")),
    ] {
        assert_eq!(allowed(desk), ["127.0.0.1", "*.example.com"]);
    }
    assert_eq!(allowed(Desk::new().set("policy.allow_domains=[::1]")), ["::1"]);
    assert!(Desk::new().set("policy.allow_domains=[[\"a.test\"]]").complaint().contains("a list of domains"));
}
