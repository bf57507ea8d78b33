//! A cookie, in the words of Playwright's storage state, which other tools read and write too.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// Members it does not name are other tools' own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cookie {
    pub name: String,
    pub value: String,
    pub domain: String,
    #[serde(default = "root")]
    pub path: String,
    /// Seconds since 1970; none for a cookie that ends with its session.
    #[serde(default, deserialize_with = "lasting", skip_serializing_if = "Option::is_none")]
    pub expires: Option<f64>,
    #[serde(default)]
    pub http_only: bool,
    #[serde(default)]
    pub secure: bool,
    #[serde(default, deserialize_with = "same_site", skip_serializing_if = "Option::is_none")]
    pub same_site: Option<SameSite>,
    /// The site a partitioned cookie belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<String>,
    /// Whether it was set in a frame that has one of another site around it. Only partitioned cookies know; Playwright's name.
    #[serde(default, rename = "_crHasCrossSiteAncestor", skip_serializing_if = "Option::is_none")]
    pub cross_site_ancestor: Option<bool>,
    /// `Low`, `Medium` or `High`: which cookies of a site go first when there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Who set it: `Secure`, `NonSecure` or `Unset`, and the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_scheme: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<i64>,
}

impl Cookie {
    /// One that browsers take and forget at once.
    pub fn is_over(&self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        self.expires.is_some_and(|expires| (0.0..=now).contains(&expires))
    }
}

/// Whether requests that begin at another site carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SameSite {
    Strict,
    Lax,
    None,
}

impl SameSite {
    /// As browsers and servers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Lax => "Lax",
            Self::None => "None",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::Strict, Self::Lax, Self::None].into_iter().find(|same_site| same_site.name() == name)
    }
}

fn root() -> String {
    "/".to_owned()
}

/// In any case of letters, and as Chrome's extensions write it.
fn same_site<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SameSite>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    match text.to_ascii_lowercase().as_str() {
        "strict" => Ok(Some(SameSite::Strict)),
        "lax" => Ok(Some(SameSite::Lax)),
        "none" | "no_restriction" => Ok(Some(SameSite::None)),
        "" | "unspecified" => Ok(None),
        _ => Err(D::Error::unknown_variant(&text, &["Strict", "Lax", "None"])),
    }
}

/// Playwright writes -1 for a cookie that ends with its session.
fn lasting<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.filter(|seconds| *seconds >= 0.0))
}
