//! Gathers what was set where: the file, over it the variables, over them the flags. Every value remembers its
//! source, because an error must say where to look. What a value means is decided by its reader in `settings.rs`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::keys::{self, KEYS, Stranger};
use super::{Environment, Flags};
use crate::failure::{Failure, Outcome};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Raw {
    One(String),
    Many(Vec<String>),
}

#[derive(Clone, Debug)]
struct Given {
    raw: Raw,
    /// `config.toml:3`, `variable TABMUX_LISTEN` or `flag --set`.
    source: String,
}

#[derive(Debug, Default)]
pub(super) struct Layers(BTreeMap<&'static str, Given>);

impl Layers {
    pub(super) fn gather(flags: &Flags, env: &Environment) -> Outcome<Self> {
        let mut layers = Self::default();
        if let Some((path, text)) = config_file(env)? {
            layers.add_file(&path, &text)?;
        }
        layers.add_variables(env)?;
        for pair in &flags.set {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(Failure::usage(format!("--set {pair:?} is not KEY=VALUE."), "Write for example --set session.idle=5m."));
            };
            layers.put(name, Raw::One(value.into()), "flag --set".into())?;
        }
        Ok(layers)
    }

    /// What was set anywhere, for those who come later.
    pub(super) fn declared(&self) -> BTreeMap<String, Value> {
        let written = |raw: &Raw| match raw {
            Raw::One(text) => Value::from(text.clone()),
            Raw::Many(items) => Value::from(items.clone()),
        };
        self.0.iter().map(|(name, given)| ((*name).to_owned(), written(&given.raw))).collect()
    }

    /// The same read back; keys that only another version knows are left out.
    pub(super) fn of_declared(declared: &BTreeMap<String, Value>) -> Self {
        let mut layers = Self::default();
        for (name, value) in declared {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let raw = value.as_array().map_or_else(|| Raw::One(text(value)), |items| Raw::Many(items.iter().map(text).collect()));
            layers.set(name, raw);
        }
        layers
    }

    pub(super) fn set(&mut self, name: &str, raw: Raw) {
        if let Some(key) = keys::known(name) {
            self.0.insert(key.name, Given { raw, source: String::new() });
        }
    }

    /// What this very command was given, and where.
    pub(super) fn of_this_command(&self) -> impl Iterator<Item = (&'static str, &Raw, &str)> {
        let own = |source: &str| source.starts_with("flag") || source.starts_with("variable");
        self.0.iter().filter(move |(_, given)| own(&given.source)).map(|(name, given)| (*name, &given.raw, given.source.as_str()))
    }

    /// Reads one value, or `default` where nobody set it.
    pub(super) fn read<T>(&self, name: &'static str, default: T, choices: &str, parse: impl Fn(&Raw) -> Option<T>) -> Outcome<T> {
        debug_assert!(keys::known(name).is_some(), "{name} is not in the table");
        let Some(given) = self.0.get(name) else { return Ok(default) };
        parse(&given.raw).ok_or_else(|| {
            let message = format!("{name} = {} ({}) is not valid.", given.raw, given.source);
            Failure::configuration(message, format!("It takes {choices}."))
        })
    }

    fn put(&mut self, name: &str, raw: Raw, source: String) -> Outcome {
        let Some(key) = keys::known(name) else {
            let message = format!("{name} = {raw} ({source}) is not a setting.");
            let all: Vec<_> = KEYS.iter().map(|key| key.name).filter(|name| !name.starts_with("test.")).collect();
            let hint = format!("Did you mean {}? Settings are: {}.", keys::nearest_key(name), all.join(", "));
            return Err(Failure::configuration(message, hint));
        };
        self.0.insert(key.name, Given { raw, source });
        Ok(())
    }

    fn add_variables(&mut self, env: &Environment) -> Outcome {
        for (name, value) in &env.variables {
            if let Some(key) = KEYS.iter().find(|key| key.variable == Some(name.as_str())) {
                self.put(key.name, Raw::One(value.clone()), format!("variable {name}"))?;
            } else if let Some(stranger) = keys::stranger(name) {
                let hint = match stranger {
                    Stranger::Meant(meant) => format!("Did you mean {meant}? Rename or unset it."),
                    Stranger::Unknown => format!("Unset it. Variables are: {}.", keys::variables().collect::<Vec<_>>().join(", ")),
                };
                return Err(Failure::configuration(format!("{name} = {value:?} (a variable) is not a setting."), hint));
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path, text: &str) -> Outcome {
        let line_at = |offset: usize| text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1;
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_at(span.start));
            let message = format!("{}:{line} is not TOML: {}.", path.display(), error.message());
            Failure::configuration(message, "Correct that line; strings stand in double quotes.")
        })?;
        self.add_table("", table.get_ref(), &|offset| format!("{}:{}", path.display(), line_at(offset)))
    }

    fn add_table(&mut self, prefix: &str, table: &DeTable<'_>, source_at: &dyn Fn(usize) -> String) -> Outcome {
        for (key, value) in table {
            let name = format!("{prefix}{}", key.get_ref());
            let source = source_at(key.span().start);
            match value.get_ref() {
                DeValue::Table(inner) => self.add_table(&format!("{name}."), inner, source_at)?,
                DeValue::Array(items) => {
                    let texts = items.iter().map(|item| scalar(item.get_ref())).collect();
                    self.put(&name, Raw::Many(texts), source)?;
                }
                other => self.put(&name, Raw::One(scalar(other)), source)?,
            }
        }
        Ok(())
    }
}

impl Raw {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::One(text) => Some(text.trim()),
            Self::Many(_) => None,
        }
    }

    /// The items of a list; a single text is one as in the file, or split at `separators`.
    pub(super) fn items(&self, separators: &[char]) -> Vec<String> {
        match self {
            Self::One(text) => {
                listed(text).unwrap_or_else(|| text.split(separators).filter(|item| !item.is_empty()).map(Into::into).collect())
            }
            Self::Many(items) => items.clone(),
        }
    }
}

/// `["a", "b"]`, texts as the file has them. An IPv6 address in brackets is none.
fn listed(text: &str) -> Option<Vec<String>> {
    match DeValue::parse(text.trim()).ok()?.into_inner() {
        DeValue::Array(items) => items.iter().map(|item| item.get_ref().as_str().map(Into::into)).collect(),
        _ => None,
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(text) => write!(f, "{text:?}"),
            Self::Many(items) => write!(f, "{items:?}"),
        }
    }
}

/// A value as the text a variable would have held.
fn scalar(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(when) => when.to_string(),
        DeValue::Array(_) | DeValue::Table(_) => "(nested)".into(),
    }
}

/// The file's path and text. Absent is fine unless `TABMUX_CONFIG` names it.
fn config_file(env: &Environment) -> Outcome<Option<(std::path::PathBuf, String)>> {
    let named = env.path("TABMUX_CONFIG");
    let default =
        || env.path("XDG_CONFIG_HOME").or_else(|| Some(env.path("HOME")?.join(".config"))).map(|dir| dir.join("tabmux/config.toml"));
    let Some(path) = named.clone().or_else(default) else { return Ok(None) };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let message = format!("The configuration file {} cannot be read: {error}.", path.display());
            Err(Failure::configuration(message, "Correct TABMUX_CONFIG, or unset it."))
        }
    }
}
