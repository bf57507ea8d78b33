//! The official description of the protocol, as far as it is used here. Its prose is deliberately absent.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

#[derive(Deserialize, Debug)]
pub(super) struct Protocol {
    pub(super) domains: Vec<Domain>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Domain {
    pub(super) domain: String,
    #[serde(default)]
    types: Vec<Type>,
    #[serde(default)]
    commands: Vec<Command>,
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Type {
    id: String,
    #[serde(flatten)]
    pub(super) shape: Shape,
    #[serde(default)]
    pub(super) properties: Vec<Field>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Command {
    name: String,
    #[serde(default)]
    pub(super) parameters: Vec<Field>,
    #[serde(default)]
    pub(super) returns: Vec<Field>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Event {
    name: String,
    #[serde(default)]
    pub(super) parameters: Vec<Field>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) shape: Shape,
    #[serde(default)]
    pub(super) optional: bool,
    #[serde(default)]
    pub(super) experimental: bool,
    #[serde(default)]
    pub(super) deprecated: bool,
}

/// What a value looks like: a plain kind, or the name of a type.
#[derive(Deserialize, Debug)]
pub(super) struct Shape {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(rename = "$ref")]
    pub(super) reference: Option<String>,
    pub(super) items: Option<Box<Shape>>,
    #[serde(rename = "enum", default)]
    pub(super) values: Vec<String>,
}

impl Protocol {
    pub(super) fn read(files: &[impl AsRef<Path>]) -> Result<Self> {
        let mut domains = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.as_ref().display()))?;
            domains.extend(serde_json::from_str::<Protocol>(&text)?.domains);
        }
        Ok(Self { domains })
    }

    pub(super) fn domain(&self, name: &str) -> Result<&Domain> {
        self.domains.iter().find(|domain| domain.domain == name).with_context(|| format!("the protocol has no domain {name}"))
    }

    /// The type behind `Domain.Name`.
    pub(super) fn type_of(&self, domain: &str, name: &str) -> Result<&Type> {
        let found = self.domain(domain)?.types.iter().find(|each| each.id == name);
        found.with_context(|| format!("the protocol has no type {domain}.{name}"))
    }
}

impl Domain {
    pub(super) fn command(&self, name: &str) -> Result<&Command> {
        self.commands.iter().find(|each| each.name == name).with_context(|| format!("the protocol has no command {}.{name}", self.domain))
    }

    pub(super) fn event(&self, name: &str) -> Result<&Event> {
        self.events.iter().find(|each| each.name == name).with_context(|| format!("the protocol has no event {}.{name}", self.domain))
    }
}
