//! `tabmux mcp`: turns flags into what the shim says in its hello.

use serde_json::{Map, Value};

use super::source::{self, Given};
use crate::cli::Mcp;
use crate::failure::{Failure, Outcome};
use crate::settings::{Config, Environment};
use crate::shim::{self, Endpoint};

pub(super) fn run(config: &Config, args: Mcp) -> Outcome {
    let defaults = defaults(config, &args)?;
    let session = session(args.session, &config.env);
    shim::serve(config, Endpoint { session, tools: args.tools, defaults })
}

/// A variable that is empty is none; who gives the flag means a name.
fn session(flag: Option<String>, env: &Environment) -> Option<String> {
    flag.or_else(|| env.get("TABMUX_SESSION").map(Into::into))
}

/// What `start_browser` takes when the call does not say, under the names of its arguments. Whether it can be had, the daemon says.
fn defaults(config: &Config, args: &Mcp) -> Outcome<Map<String, Value>> {
    let mut defaults = Map::new();
    let mut put = |name: &str, value: Option<Value>| value.into_iter().for_each(|value| drop(defaults.insert(name.into(), value)));
    if let Some(size) = &args.viewport_size
        && !is_size(size)
    {
        return Err(Failure::usage(
            format!("--viewport-size {size:?} is not WIDTHxHEIGHT."),
            "Write for example --viewport-size 1280x720.",
        ));
    }
    let from = source::given(config, args.make.from.clone())?.map(Value::from);
    let state = args.storage_state.as_ref().map(|path| source::storage_state("--storage-state", &config.env.cwd.join(path))).transpose()?;
    let (storage_state, from) = match state {
        Some(Given::Whole(state)) => (Some(state), from),
        Some(Given::Path(path)) => (None, Some(path.into())),
        None => (None, from),
    };
    put("headless", args.headed.then_some(Value::Bool(false)));
    put("isolation", args.make.isolation.clone().map(Into::into));
    put("from", from);
    put("viewportSize", args.viewport_size.clone().map(Into::into));
    put("storageState", storage_state);
    put("cdpEndpoint", args.cdp_endpoint.clone().map(Into::into));
    put("ignoreHttpsErrors", args.ignore_https_errors.then_some(Value::Bool(true)));
    Ok(defaults)
}

fn is_size(text: &str) -> bool {
    let side = |side: &str| side.parse::<u32>().is_ok_and(|pixels| (1..=16_384).contains(&pixels));
    text.split_once('x').is_some_and(|(width, height)| side(width) && side(height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_names_the_session_before_the_variable_and_an_empty_variable_names_none() {
        let named = |flag: Option<&str>, variable: &str| {
            let variables = [("TABMUX_SESSION".to_owned(), variable.to_owned())].into();
            session(flag.map(Into::into), &Environment { variables, cwd: "/".into(), temp_dir: "/tmp".into(), uid: 1 })
        };
        assert_eq!(named(Some("mine"), "theirs").as_deref(), Some("mine"));
        assert_eq!(named(Some(""), "theirs").as_deref(), Some(""), "which is then refused");
        assert_eq!((named(None, "theirs").as_deref(), named(None, "")), (Some("theirs"), None));
    }

    #[test]
    fn a_viewport_is_two_sides() {
        assert!(is_size("1280x720"));
        for text in ["1280", "1280x", "x720", "0x1", "-1x5", "1280X720", "1x2x3"] {
            assert!(!is_size(text), "{text}");
        }
    }
}
