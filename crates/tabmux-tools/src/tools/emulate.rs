//! Changes what the session's pages see, until it is changed back. What is given is added to what was set before.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tabmux_core::{Code, Fault};
use tabmux_driver::{Credentials, Emulation, Geolocation, Permission, Throttle};

use crate::arguments::{Object, of_page, own_schema, wrong};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "emulate",
    group: Group::State,
    level: Level::Full,
    description: "Change what the session's pages see.",
    effect: Effect::Write,
    own_schema: own_schema::<Emulate>,
    run: Run::Page(&Change),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Emulate {
    /// {viewport: "WxH", deviceScaleFactor, mobile, touch, userAgent, locale, timezone, colorScheme, reducedMotion, media, offline, network: {latencyMs, downloadKbps, uploadKbps}, cpu: slowdown, geolocation: {latitude, longitude}, permissions: {name: grant|deny|prompt}, httpCredentials: {username, password}}
    #[schemars(with = "Option<Object>")]
    set: Option<Wanted>,
    /// Undo all first
    reset: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Wanted {
    viewport: Option<Value>,
    device_scale_factor: Option<f64>,
    mobile: Option<bool>,
    touch: Option<bool>,
    user_agent: Option<String>,
    locale: Option<String>,
    timezone: Option<String>,
    color_scheme: Option<ColorScheme>,
    reduced_motion: Option<ReducedMotion>,
    media: Option<Media>,
    offline: Option<bool>,
    network: Option<Throttle>,
    cpu: Option<f64>,
    geolocation: Option<Geolocation>,
    permissions: Option<BTreeMap<String, Permission>>,
    http_credentials: Option<Credentials>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ColorScheme {
    Light,
    Dark,
    NoPreference,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReducedMotion {
    Reduce,
    NoPreference,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Media {
    Screen,
    Print,
}

/// The longest side of a viewport.
const MAX_SIDE: u32 = 16_384;

/// More than any screen has, and what a browser can still draw at once.
const MAX_PIXELS: f64 = 1e8;

/// Half the way around the earth, in metres.
const MAX_ACCURACY: f64 = 2e7;

const MAX_PERMISSIONS: usize = 50;

const MAX_LATENCY_MS: f64 = 600_000.0;

const MAX_KBPS: f64 = 1e9;

struct Change;

#[async_trait]
impl PageTool for Change {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let args = gathered(args);
        let Emulate { set, reset } = of_page(&args)?;
        let reset = reset.unwrap_or_default();
        if args.get("set").and_then(Value::as_object).is_none_or(Map::is_empty) && !reset {
            return Err(Fault::new(Code::BadArgument, "There is nothing to change.", "Give set, or reset."));
        }
        let set = set.unwrap_or_default().checked()?;
        // A page to try it on, so that what the browser does not take is said now.
        cx.page().await?;
        let former = cx.context().await?.emulation();
        let was_logged_in = former.credentials.clone();
        let wanted = added(set, if reset { Emulation::default() } else { former })?;
        // A browser forgets no login while its context lives.
        let stays = if was_logged_in.is_some() && was_logged_in != wanted.credentials { STAYS_LOGGED_IN } else { "" };
        cx.emulate(wanted).await?;
        // The client's own viewport is there again when no other one is.
        let now = cx.context().await?.emulation();
        let (named, beyond) = (said(&now), out_of_reach(&now));
        let text = if named.is_empty() { "Nothing is emulated any more.".to_owned() } else { format!("Emulated now: {named}.{beyond}") };
        Ok(Reply::text(format!("{text}{stays}")))
    }
}

/// Settings may stand beside `set` too, as one is tempted to write them. `null` counts as left out in both places.
fn gathered(mut args: Arguments) -> Arguments {
    if args.get("set").is_some_and(|set| !set.is_object() && !set.is_null()) {
        return args;
    }
    let loose: Vec<String> = args.keys().filter(|name| !["set", "reset"].contains(&name.as_str())).cloned().collect();
    let mut set = args.shift_remove("set").and_then(|set| set.as_object().cloned()).unwrap_or_default();
    for name in loose {
        if let Some(value) = args.shift_remove(&name) {
            set.insert(name, value);
        }
    }
    set.retain(|_, value| !value.is_null());
    args.insert("set".into(), Value::Object(set));
    args
}

impl Wanted {
    /// All that can be said of it whatever the browser, before anything is changed.
    fn checked(self) -> Result<Emulation, Fault> {
        let viewport = self.viewport.as_ref().map(sides).transpose()?;
        let bounded = |name: &str, value: Option<f64>, least: f64, most: f64| match value {
            Some(number) if !(least..=most).contains(&number) => Err(wrong(name, &number.into(), &format!("{least} to {most}"))),
            other => Ok(other),
        };
        bounded("latitude", self.geolocation.map(|place| place.latitude), -90.0, 90.0)?;
        bounded("longitude", self.geolocation.map(|place| place.longitude), -180.0, 180.0)?;
        bounded("accuracy", self.geolocation.map(|place| place.accuracy), 0.0, MAX_ACCURACY)?;
        bounded("latencyMs", self.network.map(|network| network.latency_ms), 0.0, MAX_LATENCY_MS)?;
        bounded("downloadKbps", self.network.and_then(|network| network.download_kbps), 0.0, MAX_KBPS)?;
        bounded("uploadKbps", self.network.and_then(|network| network.upload_kbps), 0.0, MAX_KBPS)?;
        if let Some(locale) = self.locale.as_deref().filter(|locale| !is_locale(locale)) {
            return Err(wrong("locale", &locale.into(), "a language such as de, en-GB or zh-Hant-TW"));
        }
        if let Some(agent) = self.user_agent.as_deref().filter(|agent| agent.trim().is_empty() || agent.contains(char::is_control)) {
            return Err(wrong("userAgent", &agent.into(), "a text in one line; reset gives the browser's own back"));
        }
        if self.timezone.as_deref().is_some_and(|zone| zone.trim().is_empty()) {
            return Err(wrong("timezone", &"".into(), "one such as Europe/Paris; reset gives the machine's own back"));
        }
        let scale = bounded("deviceScaleFactor", self.device_scale_factor, 0.1, 10.0)?;
        let cpu = bounded("cpu", self.cpu, 1.0, 100.0)?;
        let word = |text: Option<&'static str>| text.map(str::to_owned);
        let scheme = word(self.color_scheme.map(|scheme| match scheme {
            ColorScheme::Light => "light",
            ColorScheme::Dark => "dark",
            ColorScheme::NoPreference => "no-preference",
        }));
        let motion = word(self.reduced_motion.map(|motion| match motion {
            ReducedMotion::Reduce => "reduce",
            ReducedMotion::NoPreference => "no-preference",
        }));
        let media = word(self.media.map(|media| match media {
            Media::Screen => "screen",
            Media::Print => "print",
        }));
        Ok(Emulation {
            viewport,
            device_scale_factor: scale,
            mobile: self.mobile,
            touch: self.touch,
            user_agent: self.user_agent,
            locale: self.locale,
            timezone: self.timezone,
            color_scheme: scheme,
            reduced_motion: motion,
            media,
            offline: self.offline,
            network: self.network,
            cpu,
            geolocation: self.geolocation,
            permissions: self.permissions.unwrap_or_default(),
            credentials: self.http_credentials,
        })
    }
}

/// What is set, and beside it what was set before.
fn added(set: Emulation, mut before: Emulation) -> Result<Emulation, Fault> {
    before.permissions.extend(set.permissions);
    if before.permissions.len() > MAX_PERMISSIONS {
        return Err(Fault::new(Code::BadArgument, "That are too many permissions.", "Reset first."));
    }
    let emulation = Emulation {
        viewport: set.viewport.or(before.viewport),
        device_scale_factor: set.device_scale_factor.or(before.device_scale_factor),
        mobile: set.mobile.or(before.mobile),
        touch: set.touch.or(before.touch),
        user_agent: set.user_agent.or(before.user_agent),
        locale: set.locale.or(before.locale),
        timezone: set.timezone.or(before.timezone),
        color_scheme: set.color_scheme.or(before.color_scheme),
        reduced_motion: set.reduced_motion.or(before.reduced_motion),
        media: set.media.or(before.media),
        // Online is what the browser is by itself.
        offline: set.offline.or(before.offline).filter(|offline| *offline),
        network: set.network.or(before.network),
        cpu: set.cpu.or(before.cpu),
        geolocation: set.geolocation.or(before.geolocation),
        permissions: before.permissions,
        credentials: set.credentials.or(before.credentials),
    };
    // What is drawn is as many pixels as the screen has, whatever a page calls one.
    let scale = emulation.device_scale_factor.unwrap_or(1.0);
    match emulation.viewport {
        Some((width, height)) if f64::from(width) * f64::from(height) * scale * scale > MAX_PIXELS => {
            let given = format!("{width}x{height}, deviceScaleFactor {scale}");
            Err(wrong(
                "viewport",
                &given.into(),
                &format!("of at most {MAX_PIXELS} pixels; give a smaller one, or a smaller deviceScaleFactor"),
            ))
        }
        _ => Ok(emulation),
    }
}

/// Of `"390x844"`, or as Playwright writes it.
fn sides(size: &Value) -> Result<(u32, u32), Fault> {
    let side = |side: &Value| side.as_u64().and_then(|side| u32::try_from(side).ok());
    let sides = match size {
        Value::String(text) => text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?))),
        Value::Object(sides) if sides.len() == 2 => sides.get("width").and_then(side).zip(sides.get("height").and_then(side)),
        _ => None,
    };
    let fits = |side: u32| (1..=MAX_SIDE).contains(&side);
    let sides = sides.filter(|(width, height)| fits(*width) && fits(*height));
    sides.ok_or_else(|| wrong("viewport", size, &format!("\"WIDTHxHEIGHT\", each 1 to {MAX_SIDE}")))
}

/// Browsers take any word for a language and then speak none; what has the shape of one is left to them. No language has a name of
/// more than three letters.
fn is_locale(locale: &str) -> bool {
    let mut parts = locale.split(['-', '_']);
    let language = parts.next().is_some_and(|part| (2..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphabetic()));
    language && parts.all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// The names of what is set; the values may be long, and credentials are nobody's to read.
fn said(emulation: &Emulation) -> String {
    let written = serde_json::to_value(emulation).unwrap_or_default();
    let names = written.as_object().map(Map::keys).into_iter().flatten().map(String::as_str);
    names.chain(emulation.credentials.as_ref().map(|_| "httpCredentials")).collect::<Vec<_>>().join(", ")
}

const STAYS_LOGGED_IN: &str = " Sites that took the former httpCredentials keep that login; be somebody else there in another session.";

/// Whom no browser lets us take off the network or slow down.
fn out_of_reach(emulation: &Emulation) -> String {
    let network = match (emulation.offline, emulation.network) {
        (Some(true), _) => " Shared and service workers, and workers of workers, stay online.",
        (_, Some(_)) => " Workers are not slowed down.",
        _ => "",
    };
    // Full Chromium keeps those in a process of their own and lets nobody log in there.
    let frames = if emulation.credentials.is_some() { " A full Chromium does not log in frames of other sites." } else { "" };
    format!("{network}{frames}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPages, text};
    use serde_json::json;

    #[tokio::test]
    async fn settings_are_added_and_reset_and_secrets_are_not_said() {
        let pages = TestPages::new().await;
        let said = async |args: Value| text(&pages.call("emulate", args).await.unwrap()).to_owned();
        let all = json!({ "viewport": "390x844", "mobile": true, "timezone": "Asia/Tokyo", "colorScheme": "dark",
            "geolocation": { "latitude": 1, "longitude": 2 }, "permissions": { "camera": "deny" },
            "httpCredentials": { "username": "ann", "password": "hunter2" } });
        assert_eq!(
            said(json!({ "set": all })).await,
            "Emulated now: viewport, mobile, timezone, colorScheme, geolocation, permissions, httpCredentials. \
             A full Chromium does not log in frames of other sites."
        );
        let stays = "Sites that took the former httpCredentials keep that login; be somebody else there in another session.";
        let only = json!({ "set": { "timezone": "Europe/Paris" }, "reset": true });
        assert_eq!(said(only).await, format!("Emulated now: timezone. {stays}"));
        assert_eq!(said(json!({ "viewport": { "width": 10, "height": 20 }, "locale": null })).await, "Emulated now: viewport, timezone.");
        let emulation = pages.context().await.unwrap().emulation();
        assert_eq!((emulation.viewport, emulation.timezone.as_deref()), (Some((10, 20)), Some("Europe/Paris")));
        assert_eq!(said(json!({ "reset": true })).await, "Nothing is emulated any more.");
        assert_eq!(
            said(json!({ "offline": true, "locale": "zh-Hant_TW" })).await,
            "Emulated now: locale, offline. Shared and service workers, and workers of workers, stay online."
        );
        assert_eq!(said(json!({ "offline": false })).await, "Emulated now: locale.");
        assert_eq!(
            said(json!({ "network": { "latencyMs": 100 }, "reset": true })).await,
            "Emulated now: network. Workers are not slowed down."
        );
    }

    #[tokio::test]
    async fn what_is_wrong_whatever_the_browser_opens_no_page() {
        let pages = TestPages::new().await;
        pages.call("emulate", json!({ "locale": "bogus" })).await.unwrap_err();
        assert_eq!(pages.tabs(), []);
    }

    #[tokio::test]
    async fn what_is_wrong_is_named_and_changes_nothing() {
        let pages = TestPages::new().await;
        for args in [
            json!({}),
            json!({ "set": { "viewport": "big" } }),
            json!({ "viewport": "0x10" }),
            json!({ "set": { "cpu": 0 } }),
            json!({ "set": { "colour": "red" } }),
            json!({ "set": { "media": "paper" } }),
            json!({ "set": { "geolocation": { "latitude": 91, "longitude": 0 } } }),
            json!({ "set": { "permissions": { "camera": "maybe" } } }),
            json!({ "set": { "timezone": "No Such" } }),
            json!({ "set": { "locale": "zz_bad!" } }),
            json!({ "set": { "locale": "" } }),
            json!({ "locale": "bogus" }),
            json!({ "locale": "english" }),
            json!({ "timezone": "" }),
            json!({ "timezone": 7 }),
            json!({ "userAgent": "" }),
            json!({ "userAgent": " " }),
            json!({ "userAgent": "A\r\nX-Evil: 1" }),
            json!({ "offline": null }),
            json!({ "set": { "offline": null } }),
            json!({ "set": null }),
            json!({ "offline": "yes" }),
            json!({ "viewport": "-5x10" }),
            json!({ "viewport": { "width": -5, "height": 10 } }),
            json!({ "viewport": { "width": 5.5, "height": 10 } }),
            json!({ "viewport": { "width": 5 } }),
            json!({ "viewport": { "width": 5, "height": 5, "depth": 5 } }),
            json!({ "viewport": [5, 5] }),
            json!({ "viewport": "99999999999x10" }),
            json!({ "viewport": "16385x10" }),
            json!({ "viewport": "16384x16384" }),
            json!({ "viewport": "4000x4000", "deviceScaleFactor": 10 }),
            json!({ "deviceScaleFactor": -1 }),
            json!({ "geolocation": { "latitude": 0, "longitude": 180.5 } }),
            json!({ "geolocation": { "latitude": 0 } }),
            json!({ "geolocation": { "latitude": 0, "longitude": 0, "accuracy": -1 } }),
            json!({ "mobile": true, "timezone": "No Such" }),
            json!({ "set": { "network": { "latencyMs": -1 } } }),
            json!({ "set": { "network": { "downloadKbps": -5 } } }),
            json!({ "set": {} }),
            json!({ "set": 3 }),
        ] {
            let fault = pages.call("emulate", args.clone()).await.unwrap_err();
            assert_eq!(fault.code, Code::BadArgument, "{args}: {fault}");
        }
        let said = async |args: Value| pages.call("emulate", args).await.unwrap_err().to_string();
        let fault = said(json!({ "viewport": { "width": -5, "height": 10 } })).await;
        insta::assert_snapshot!(fault, @r#"[bad_argument] Argument viewport is {"width":-5,"height":10}. It must be "WIDTHxHEIGHT", each 1 to 16384."#);
        let fault = said(json!({ "userAgent": "" })).await;
        insta::assert_snapshot!(fault, @r#"[bad_argument] Argument userAgent is "". It must be a text in one line; reset gives the browser's own back."#);
        let fault = said(json!({ "viewport": "9000x9000", "deviceScaleFactor": 2 })).await;
        insta::assert_snapshot!(fault, @r#"[bad_argument] Argument viewport is "9000x9000, deviceScaleFactor 2". It must be of at most 100000000 pixels; give a smaller one, or a smaller deviceScaleFactor."#);
        let fault = pages.call("emulate", json!({ "httpCredentials": { "username": "ann", "password": 7 } })).await.unwrap_err();
        assert!(!fault.to_string().contains("ann"), "{fault}");
        assert_eq!(pages.context().await.unwrap().emulation(), Emulation::default());
    }
}
