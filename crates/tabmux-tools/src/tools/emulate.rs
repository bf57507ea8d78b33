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
    viewport: Option<Size>,
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

/// `"390x844"`, or as Playwright writes it.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Size {
    Text(String),
    Sides { width: u32, height: u32 },
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
        // A page to try it on, so that what the browser does not take is said now.
        cx.page().await?;
        let before = if reset { Emulation::default() } else { cx.context().await?.emulation() };
        let wanted = set.unwrap_or_default().added_to(before)?;
        let named = said(&wanted);
        cx.emulate(wanted).await?;
        Ok(Reply::text(if named.is_empty() { "Nothing is emulated any more.".to_owned() } else { format!("Emulated now: {named}.") }))
    }
}

/// Settings may stand beside `set` too, as one is tempted to write them.
fn gathered(mut args: Arguments) -> Arguments {
    let loose: Vec<String> = args.keys().filter(|name| !["set", "reset"].contains(&name.as_str())).cloned().collect();
    if loose.is_empty() || args.get("set").is_some_and(|set| !set.is_object()) {
        return args;
    }
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
    fn added_to(self, mut before: Emulation) -> Result<Emulation, Fault> {
        let viewport = self.viewport.map(Size::sides).transpose()?;
        let bounded = |name: &str, value: Option<f64>, least: f64, most: f64| match value {
            Some(number) if !(least..=most).contains(&number) => Err(wrong(name, &number.into(), &format!("{least} to {most}"))),
            other => Ok(other),
        };
        bounded("latitude", self.geolocation.map(|place| place.latitude), -90.0, 90.0)?;
        bounded("longitude", self.geolocation.map(|place| place.longitude), -180.0, 180.0)?;
        bounded("latencyMs", self.network.map(|network| network.latency_ms), 0.0, MAX_LATENCY_MS)?;
        bounded("downloadKbps", self.network.and_then(|network| network.download_kbps), 0.0, MAX_KBPS)?;
        bounded("uploadKbps", self.network.and_then(|network| network.upload_kbps), 0.0, MAX_KBPS)?;
        if let Some(locale) = self.locale.as_deref().filter(|locale| !is_locale(locale)) {
            return Err(wrong("locale", &locale.into(), "a language such as de, en-GB or zh-Hant-TW"));
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
        before.permissions.extend(self.permissions.unwrap_or_default());
        if before.permissions.len() > MAX_PERMISSIONS {
            return Err(Fault::new(Code::BadArgument, "That are too many permissions.", "Reset first."));
        }
        Ok(Emulation {
            viewport: viewport.or(before.viewport),
            device_scale_factor: scale.or(before.device_scale_factor),
            mobile: self.mobile.or(before.mobile),
            touch: self.touch.or(before.touch),
            user_agent: self.user_agent.or(before.user_agent),
            locale: self.locale.or(before.locale),
            timezone: self.timezone.or(before.timezone),
            color_scheme: scheme.or(before.color_scheme),
            reduced_motion: motion.or(before.reduced_motion),
            media: media.or(before.media),
            // Online is what the browser is by itself.
            offline: self.offline.or(before.offline).filter(|offline| *offline),
            network: self.network.or(before.network),
            cpu: cpu.or(before.cpu),
            geolocation: self.geolocation.or(before.geolocation),
            permissions: before.permissions,
            credentials: self.http_credentials.or(before.credentials),
        })
    }
}

impl Size {
    fn sides(self) -> Result<(u32, u32), Fault> {
        let sides = match &self {
            Self::Text(text) => text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?))),
            Self::Sides { width, height } => Some((*width, *height)),
        };
        let fits = |side: u32| (1..=MAX_SIDE).contains(&side);
        sides.filter(|(width, height)| fits(*width) && fits(*height)).ok_or_else(|| {
            let given = match self {
                Self::Text(text) => text,
                Self::Sides { width, height } => format!("{width}x{height}"),
            };
            wrong("viewport", &given.into(), &format!("WIDTHxHEIGHT, each 1 to {MAX_SIDE}"))
        })
    }
}

/// Browsers take any word for a language and then speak none; what has the shape of one is left to them.
fn is_locale(locale: &str) -> bool {
    let mut parts = locale.split(['-', '_']);
    let language = parts.next().is_some_and(|part| (2..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphabetic()));
    language && parts.all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// The names of what is set; the values may be long, and credentials are nobody's to read.
fn said(emulation: &Emulation) -> String {
    let written = serde_json::to_value(emulation).unwrap_or_default();
    let names = written.as_object().map(Map::keys).into_iter().flatten().map(String::as_str);
    names.chain(emulation.credentials.as_ref().map(|_| "httpCredentials")).collect::<Vec<_>>().join(", ")
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
            "Emulated now: viewport, mobile, timezone, colorScheme, geolocation, permissions, httpCredentials."
        );
        assert_eq!(said(json!({ "set": { "timezone": "Europe/Paris" }, "reset": true })).await, "Emulated now: timezone.");
        assert_eq!(said(json!({ "viewport": { "width": 10, "height": 20 }, "locale": null })).await, "Emulated now: viewport, timezone.");
        let emulation = pages.context().await.unwrap().emulation();
        assert_eq!((emulation.viewport, emulation.timezone.as_deref()), (Some((10, 20)), Some("Europe/Paris")));
        assert_eq!(said(json!({ "reset": true })).await, "Nothing is emulated any more.");
        assert_eq!(said(json!({ "offline": true, "locale": "zh-Hant_TW" })).await, "Emulated now: locale, offline.");
        assert_eq!(said(json!({ "offline": false })).await, "Emulated now: locale.");
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
            json!({ "set": { "network": { "latencyMs": -1 } } }),
            json!({ "set": { "network": { "downloadKbps": -5 } } }),
            json!({ "set": {} }),
            json!({ "set": 3 }),
        ] {
            let fault = pages.call("emulate", args.clone()).await.unwrap_err();
            assert_eq!(fault.code, Code::BadArgument, "{args}: {fault}");
        }
        let fault = pages.call("emulate", json!({ "httpCredentials": { "username": "ann", "password": 7 } })).await.unwrap_err();
        assert!(!fault.to_string().contains("ann"), "{fault}");
        assert_eq!(pages.context().await.unwrap().emulation(), Emulation::default());
    }
}
