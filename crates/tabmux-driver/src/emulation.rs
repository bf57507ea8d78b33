//! What the pages of a context are made to see: screen, language, place, network, permissions; and the secrets a context may
//! show to servers. Secrets are never written down or printed.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Everything is the browser's own where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Emulation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub viewport: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_scale_factor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mobile: Option<bool>,
    /// As `mobile` says where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touch: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color_scheme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduced_motion: Option<String>,
    /// `screen` or `print`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offline: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Throttle>,
    /// How many times slower the processor is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geolocation: Option<Geolocation>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub permissions: BTreeMap<String, Permission>,
    /// Shown to servers that ask. Never written down.
    #[serde(skip)]
    pub credentials: Option<Credentials>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Throttle {
    #[serde(default)]
    pub latency_ms: f64,
    /// Unlimited where nothing is said.
    pub download_kbps: Option<f64>,
    pub upload_kbps: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geolocation {
    pub latitude: f64,
    pub longitude: f64,
    /// In metres.
    #[serde(default = "precise")]
    pub accuracy: f64,
}

fn precise() -> f64 {
    1.0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    #[serde(alias = "granted")]
    Grant,
    #[serde(alias = "denied")]
    Deny,
    Prompt,
}

/// A name and a password. Prints without them.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    pub username: String,
    pub password: String,
    /// The only one they are for; whoever asks where nothing is said.
    #[serde(default)]
    pub origin: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

impl Emulation {
    /// The permission as the context has it: a place that is emulated may be asked for.
    pub fn permission(&self, name: &str) -> Option<Permission> {
        let placed = name == "geolocation" && self.geolocation.is_some();
        self.permissions.get(name).copied().or_else(|| placed.then_some(Permission::Grant))
    }

    /// Every permission that is not the browser's own.
    pub fn all_permissions(&self) -> BTreeMap<&str, Permission> {
        let named = self.permissions.keys().map(String::as_str).chain(["geolocation"]);
        named.filter_map(|name| Some((name, self.permission(name)?))).collect()
    }
}

/// A proxy of one context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// `http://host:port` or `socks5://host:port`.
    pub server: String,
    /// Hosts that are reached without it, separated by commas; none where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypass: Option<String>,
    /// Never written down.
    #[serde(skip)]
    pub credentials: Option<Credentials>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_neither_written_nor_printed() {
        let secret = Credentials { username: "ann".into(), password: "hunter2".into(), origin: None };
        let emulation = Emulation { credentials: Some(secret.clone()), timezone: Some("Asia/Tokyo".into()), ..Emulation::default() };
        let proxy = Proxy { server: "http://a.test:1".into(), bypass: None, credentials: Some(secret) };
        let shown =
            format!("{emulation:?} {proxy:?} {} {}", serde_json::to_string(&emulation).unwrap(), serde_json::to_string(&proxy).unwrap());
        assert!(!shown.contains("hunter2") && !shown.contains("ann") && shown.contains("Asia/Tokyo"), "{shown}");
    }

    #[test]
    fn a_place_that_is_emulated_may_be_asked_for_unless_that_is_denied() {
        let place = Geolocation { latitude: 1.0, longitude: 2.0, accuracy: 1.0 };
        let mut emulation = Emulation { geolocation: Some(place), ..Emulation::default() };
        assert_eq!(emulation.all_permissions(), BTreeMap::from([("geolocation", Permission::Grant)]));
        emulation.permissions.insert("geolocation".into(), Permission::Deny);
        assert_eq!(emulation.permission("geolocation"), Some(Permission::Deny));
        assert_eq!(Emulation::default().all_permissions(), BTreeMap::new());
    }
}
