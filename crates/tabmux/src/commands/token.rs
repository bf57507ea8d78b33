//! `tabmux token`: identities for HTTP clients. A token is shown once, when it is made.

use serde_json::Value;
use tabmux_wire::control::Ask;

use super::format::show;
use crate::cli::Token;
use crate::control::Control;
use crate::failure::Outcome;
use crate::output::{self, Form};
use crate::settings::Config;

pub(super) fn run(config: &Config, form: Form, token: Token) -> Outcome {
    let mut control = Control::open(config)?;
    match token {
        Token::New { name } => {
            let answer = control.ask(&Ask::TokenNew { name })?;
            if form == Form::Text {
                output::note(
                    "Send it as `Authorization: Bearer TOKEN`. It is not shown again. Whoever sends it is one caller: make one for each agent.",
                );
            }
            output::report(form, &answer, || show(&answer["token"]))
        }
        Token::Ls => {
            let answer = control.ask(&Ask::TokenList)?;
            let tokens = answer["tokens"].as_array().map_or(&[][..], Vec::as_slice);
            let row = |token: &Value| ["name", "created_at"].map(|member| show(&token[member]));
            let rows: Vec<_> = tokens.iter().map(row).collect();
            output::report(form, &answer, || output::table(["NAME", "CREATED"], &rows))
        }
        Token::Revoke { name } => {
            let answer = control.ask(&Ask::TokenRevoke { name })?;
            output::report(form, &answer, String::new)
        }
    }
}
