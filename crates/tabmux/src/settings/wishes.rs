//! What a command line sets that the daemon it finds was not started with. A daemon has one configuration, that of who started it; nobody
//! else's flag or variable is taken for heeded.

use std::collections::BTreeMap;

use serde_json::Value;

use super::layers::Layers;
use super::{Config, Environment, Flags};
use crate::failure::{Failure, Outcome};

/// What was set for a daemon, as `key: text` or `key: [text, …]`.
pub(crate) type Declared = BTreeMap<String, Value>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    given: Option<(Flags, Environment)>,
}

impl Wishes {
    pub(crate) fn of(config: &Config) -> Self {
        Self { given: Some((config.flags.clone(), config.env.clone())) }
    }

    /// A flag that the running daemon does not heed is an error; a variable, which may be meant for another one, is said.
    pub(crate) fn check(&self, running: &Declared, say: impl Fn(&str)) -> Outcome {
        let Some((flags, env)) = &self.given else { return Ok(()) };
        // Broken settings are told by whoever needs them.
        let Ok(own) = Layers::gather(flags, env) else { return Ok(()) };
        let meant = |layers: &Layers| {
            Config::of(layers, flags, env.clone()).map(|mut config| {
                // How it is written makes no difference.
                config.settings.declared.clear();
                (config.settings, config.log)
            })
        };
        let Ok(theirs) = meant(&Layers::of_declared(running)) else { return Ok(()) };
        for (name, raw, source) in own.of_this_command() {
            let mut with = Layers::of_declared(running);
            with.set(name, raw.clone());
            if meant(&with).is_ok_and(|ours| ours == theirs) {
                continue;
            }
            let has = running.get(name).map_or("the default".to_owned(), Value::to_string);
            let message = format!("{name} = {raw} ({source}) is not in force: a daemon runs already, with {has}.");
            let hint = "End it with `tabmux stop` first, or leave the setting out.";
            if source.starts_with("flag") {
                return Err(Failure::configuration(message, hint));
            }
            say(&format!("{message} {hint}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;
    use serde_json::json;
    use std::sync::Mutex;

    fn checked(set: &[&str], variables: &[(&str, &str)], running: &Value) -> (Option<Failure>, Vec<String>) {
        let flags = Flags { set: set.iter().map(ToString::to_string).collect(), ..Flags::default() };
        let variables = variables.iter().chain(&[("HOME", "/h")]).map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let env = Environment { variables, cwd: "/work".into(), temp_dir: "/tmp".into(), uid: rustix::process::getuid().as_raw() };
        let running = running.as_object().unwrap().clone().into_iter().collect();
        let said = Mutex::new(Vec::new());
        let failure = Wishes { given: Some((flags, env)) }.check(&running, |text| said.lock().unwrap().push(text.to_owned())).err();
        (failure, said.into_inner().unwrap())
    }

    #[test]
    fn a_flag_that_a_running_daemon_does_not_heed_is_refused_and_a_variable_is_said() {
        let (failure, _) = checked(&["policy.deny_domains=a.test"], &[], &json!({}));
        let failure = failure.expect("it is not in force");
        assert_eq!(failure.exit, Exit::BadConfiguration);
        assert!(failure.fault.message.contains("policy.deny_domains") && failure.fault.hint.contains("tabmux stop"), "{failure:?}");
        let (failure, said) = checked(&[], &[("TABMUX_CALL_DEADLINE", "1s")], &json!({"call.deadline": "2s"}));
        assert!(failure.is_none() && said.len() == 1 && said[0].contains("TABMUX_CALL_DEADLINE") && said[0].contains("\"2s\""), "{said:?}");
    }

    #[test]
    fn other_values_of_the_same_secrets_are_not_in_force() {
        let home = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = home.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (theirs, same, other) = (file("a", "PASS=sesame-1"), file("b", "PASS=sesame-1"), file("c", "PASS=sesame-2"));
        let refused = |ours: &str| checked(&[&format!("secrets={ours}")], &[], &json!({"secrets": theirs})).0;
        assert!(refused(&same).is_none());
        let failure = refused(&other).expect("the daemon would not hide it");
        assert!(!format!("{failure:?}").contains("sesame"), "{failure:?}");
    }

    #[test]
    fn what_means_the_same_is_in_force_however_it_is_written() {
        for (set, running) in [
            ("call.deadline=60s", json!({"call.deadline": "1m"})),
            ("policy.deny_domains=a.test,b.test", json!({"policy.deny_domains": ["a.test", "b.test"]})),
            ("headless=true", json!({})),
            ("session.idle=5m", json!({"session.idle": "5m", "headless": "false"})),
        ] {
            let (failure, said) = checked(&[set], &[], &running);
            assert!(failure.is_none() && said.is_empty(), "{set}: {failure:?} {said:?}");
        }
    }
}
