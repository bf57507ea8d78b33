//! Gives fields their values and chooses from lists. The page script knows the kinds of fields and says what to press; here it
//! is pressed, and the page script looks whether the value stayed.

use std::time::Duration;

use serde_json::{Value, json};
use tabmux_driver::{Acted, Button, Chord, DriverError, Modifiers, Result, Selector};

use super::aim::{Aimed, Answer, Order, Plan, milliseconds};
use super::{CdpPage, NONE, SOON, keyboard, report};

impl CdpPage {
    pub(super) async fn set_value(&self, selector: &Selector, value: &str, patience: Duration) -> Result<Acted> {
        let token = report::token();
        let wanted = json!({ "value": value, "token": token });
        let aimed = self.aim(Order { verb: "fill", selector: Some(selector), wanted, patience }).await?;
        if aimed.answer.plan == Some(Plan::Choose) {
            return self.choose(selector, &[value.to_owned()], patience).await;
        }
        self.carry_out(&aimed).await?;
        self.verify(aimed, "filled", token).await
    }

    pub(super) async fn choose(&self, selector: &Selector, options: &[String], patience: Duration) -> Result<Acted> {
        let token = report::token();
        let wanted = json!({ "options": options, "token": token });
        let aimed = self.aim(Order { verb: "choose", selector: Some(selector), wanted, patience }).await?;
        match aimed.answer.plan {
            Some(Plan::Open) => {
                self.click_at(aimed.answer.point, Button::Left, 1, NONE).await?;
                self.landed(&aimed.frame, token, Duration::ZERO).await?;
                self.pick(aimed, options).await
            }
            Some(Plan::Pick) => self.pick(aimed, options).await,
            _ => {
                self.carry_out(&aimed).await?;
                self.verify(aimed, "filled", token).await
            }
        }
    }

    async fn carry_out(&self, aimed: &Aimed) -> Result<()> {
        match aimed.answer.plan {
            Some(Plan::Insert) => self.insert(&aimed.answer.text).await,
            Some(Plan::Keys) => {
                let chords = aimed.answer.keys.iter().map(|key| Chord::parse(key)).collect::<Result<Vec<_>>>()?;
                let events: Vec<_> = chords.iter().flat_map(keyboard::chord).collect();
                self.press_keys(&events).await
            }
            Some(Plan::Click) => self.click_at(aimed.answer.point, Button::Left, 1, NONE).await,
            Some(Plan::Options) => self.click_options(aimed).await,
            _ => Ok(()),
        }
    }

    /// The first alone, the others with it.
    async fn click_options(&self, aimed: &Aimed) -> Result<()> {
        for (number, index) in aimed.answer.indexes.iter().enumerate() {
            let token = report::token();
            let order = json!({ "index": index, "token": token });
            let option = self.placed(&aimed.frame, "option", &order).await?;
            let held = Modifiers { control: number > 0, ..NONE };
            self.click_at(option.point, Button::Left, 1, held).await?;
            self.landed(&aimed.frame, token, Duration::ZERO).await?;
        }
        Ok(())
    }

    async fn pick(&self, aimed: Aimed, options: &[String]) -> Result<Acted> {
        let mut now = None;
        for option in options {
            let token = report::token();
            let order = json!({ "option": option, "token": token, "patience": milliseconds(SOON) });
            let found = self.placed(&aimed.frame, "pick", &order).await?;
            self.click_at(found.point, Button::Left, 1, NONE).await?;
            self.landed(&aimed.frame, token, Duration::ZERO).await?;
            now = match self.confirm(&aimed.frame, "picked", &json!({})).await {
                Err(DriverError::Unconfirmed(_)) if self.has_left(&aimed).await => None,
                answer => answer?.now,
            };
        }
        Ok(aimed.answer.acted(now))
    }

    /// Whether the document that the field was in is gone: what was done to it sent the page elsewhere.
    async fn has_left(&self, aimed: &Aimed) -> bool {
        self.script_in::<Value>(&aimed.frame, "holds", &json!({})).await.is_ok_and(|holds| holds == Value::Bool(false))
    }

    async fn placed(&self, frame: &str, verb: &str, order: &Value) -> Result<Answer> {
        let answer = self.confirm(frame, verb, order).await?;
        self.on_page(answer, SOON).await
    }

    async fn verify(&self, aimed: Aimed, verb: &str, token: u64) -> Result<Acted> {
        let now = match self.confirm(&aimed.frame, verb, &json!({})).await {
            // The page heard of the value, and went elsewhere for it.
            Err(DriverError::Unconfirmed(_)) if self.state.reports().heard(token) && self.has_left(&aimed).await => None,
            answer => answer?.now,
        };
        Ok(aimed.answer.acted(now))
    }
}
