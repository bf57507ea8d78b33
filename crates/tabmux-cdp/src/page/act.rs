//! Does to the page what a person would: finds the element and waits until it can be acted upon (the page script), sends real
//! input (the browser), and makes sure that it arrived (the page script again). Three round trips for most.

mod aim;
mod drag;
mod field;
mod keyboard;
mod pointer;
mod report;
mod seek;

use std::time::{Duration, Instant};

use serde_json::json;
use tabmux_driver::{Acted, Action, Bring, Button, Chord, Click, DriverError, Modifiers, Result, Selector, Verb};

use super::CdpPage;
use aim::{Aimed, Answer, Order, Point};
use report::Landing;
pub(super) use report::{Reports, listen};
pub(super) use seek::Sought;

/// How long a list that was opened has to show its options, and a finger to become a click.
const SOON: Duration = Duration::from_secs(2);

/// How long the wheel may take; in a tab that nobody draws it is never answered.
const WHEEL: Duration = Duration::from_secs(1);

/// Ends what lies in wait in the page when nobody waits for it any more: it would keep a person's clicks from their elements.
pub(super) struct LyingInWait<'a>(Option<&'a CdpPage>);

impl<'a> LyingInWait<'a> {
    pub(super) fn unless_done(page: &'a CdpPage) -> Self {
        Self(Some(page))
    }

    pub(super) fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for LyingInWait<'_> {
    fn drop(&mut self) {
        let Some(page) = self.0.filter(|page| page.state.living().is_ok()) else { return };
        let worlds = page.state.frames().ready();
        for world in &worlds {
            page.tell_world(world, "function () { tabmux.giveUp(); }", &[]);
        }
    }
}

impl CdpPage {
    pub(super) async fn perform(&self, action: &Action) -> Result<Acted> {
        let patience = action.patience;
        match &action.verb {
            Verb::Click(click) => self.click(click, patience).await,
            Verb::Tap { selector, bring } => self.tap(selector, *bring, patience).await,
            Verb::SetValue { selector, value } => self.set_value(selector, value, patience).await,
            Verb::Select { selector, options } => self.choose(selector, options, patience).await,
            Verb::Type { selector, text } => self.type_text(selector.as_ref(), text, patience).await,
            Verb::Press { selector, chord } => self.press(selector.as_ref(), chord, patience).await,
            Verb::Hover { selector } => self.hover(selector, patience).await,
            Verb::Drag { from, to } => self.drag(from, to, patience).await,
            Verb::Scroll { selector, by } => self.scroll(selector.as_ref(), *by, patience).await,
        }
    }

    async fn click(&self, click: &Click, patience: Duration) -> Result<Acted> {
        let name = match click.button {
            Button::Left => "left",
            Button::Middle => "middle",
            Button::Right => "right",
        };
        let until = Instant::now() + patience;
        loop {
            let token = report::token();
            let wanted = json!({ "token": token, "button": name, "count": click.count, "bring": click.bring == Bring::IntoView });
            let patience = until.saturating_duration_since(Instant::now());
            let aimed = self.aim(Order { verb: "aim", selector: Some(&click.selector), wanted, patience }).await?;
            self.reach(&aimed).await?;
            self.click_at(aimed.answer.point, click.button, click.count, click.modifiers).await?;
            match self.landing(&aimed.frame, token, Duration::ZERO).await? {
                Landing::There(now) => return Ok(aimed.answer.acted(now)),
                Landing::Missed(why) if Instant::now() >= until => return Err(why),
                // It moved in the meantime; nobody but us knows of it.
                Landing::Missed(_) => {}
            }
        }
    }

    /// The browser finds a frame in another process by the picture that was drawn last, which may be old. Whether it does is tried with a move:
    /// a press that goes astray cannot be taken back.
    async fn reach(&self, aimed: &Aimed) -> Result<()> {
        let until = Instant::now() + SOON;
        while aimed.frame != self.handle.0 && Instant::now() < until {
            self.move_to(aimed.answer.point).await?;
            if self.asked(&aimed.frame, "under", &json!({})).await?.or_fault(None).is_ok() {
                break;
            }
        }
        Ok(())
    }

    async fn tap(&self, selector: &Selector, bring: Bring, patience: Duration) -> Result<Acted> {
        let token = report::token();
        let wanted = json!({ "token": token, "bring": bring == Bring::IntoView });
        let aimed = self.aim(Order { verb: "aim", selector: Some(selector), wanted, patience }).await?;
        self.tap_at(aimed.answer.point).await?;
        // A page that can be zoomed waits whether a second tap follows.
        let now = self.landed(&aimed.frame, token, SOON).await?;
        Ok(aimed.answer.acted(now))
    }

    async fn hover(&self, selector: &Selector, patience: Duration) -> Result<Acted> {
        let aimed = self.aim(Order { verb: "point", selector: Some(selector), wanted: json!({}), patience }).await?;
        self.move_to(aimed.answer.point).await?;
        self.confirm(&aimed.frame, "hovered", &json!({})).await?;
        Ok(aimed.answer.acted(None))
    }

    async fn press(&self, selector: Option<&Selector>, chord: &Chord, patience: Duration) -> Result<Acted> {
        let events = keyboard::chord(chord);
        let (token, times) = (report::token(), keyboard::downs(&events));
        let order = |anyway: bool| {
            let wanted = json!({ "token": token, "times": times, "anyway": anyway });
            Order { verb: "focus", selector, wanted, patience }
        };
        let aimed = match self.aim(order(false)).await {
            // Tab has left the last field, and what is pressed then is the page's.
            Err(DriverError::NothingFocused) if selector.is_none() => self.aim(order(true)).await?,
            aimed => aimed?,
        };
        self.press_keys(&events).await?;
        self.landed(&aimed.frame, token, Duration::ZERO).await?;
        Ok(aimed.answer.acted(None))
    }

    async fn type_text(&self, selector: Option<&Selector>, text: &str, patience: Duration) -> Result<Acted> {
        let strokes = keyboard::strokes(text);
        let (token, times) = (report::token(), strokes.iter().map(keyboard::Stroke::downs).sum::<usize>());
        let wanted = json!({ "token": token, "times": times, "text": text });
        let aimed = self.aim(Order { verb: "focus", selector, wanted, patience }).await?;
        self.type_keys(&strokes).await?;
        let answer = match self.confirm(&aimed.frame, "typed", &json!({ "token": token, "any": times == 0 })).await {
            // The last key may have sent the page elsewhere.
            Err(DriverError::Unconfirmed(_)) if self.state.reports().heard(token) => Answer::default(),
            answer => answer?,
        };
        Ok(aimed.answer.acted(answer.now))
    }

    async fn scroll(&self, selector: Option<&Selector>, by: Option<(f64, f64)>, patience: Duration) -> Result<Acted> {
        if let (Some(selector), None) = (selector, by) {
            let aimed = self.aim(Order { verb: "point", selector: Some(selector), wanted: json!({ "need": "look" }), patience }).await?;
            return Ok(aimed.answer.acted(Some("It is in view.".into())));
        }
        let wanted = json!({ "x": by.map(|by| by.0), "y": by.map(|by| by.1) });
        let aimed = self.aim(Order { verb: "scrolling", selector, wanted, patience }).await?;
        let by = aimed.answer.by;
        let turned = tokio::time::timeout(WHEEL, self.turn_wheel(aimed.answer.point, by)).await;
        let told = json!({ "x": by.x, "y": by.y, "turned": matches!(turned, Ok(Ok(()))) });
        let answer = self.confirm(&aimed.frame, "scrolled", &told).await?;
        Ok(aimed.answer.acted(Some(moved(&answer))))
    }
}

fn moved(answer: &Answer) -> String {
    let Point { x, y } = answer.moved;
    let way = |amount: f64, back: &str, on: &str| format!("{} {:.0} px", if amount < 0.0 { back } else { on }, amount.abs());
    let ways: Vec<_> =
        [(y != 0.0).then(|| way(y, "up", "down")), (x != 0.0).then(|| way(x, "left", "right"))].into_iter().flatten().collect();
    if ways.is_empty() {
        return "Nothing moved: it is at its end, or all of it is shown.".into();
    }
    let left = if answer.left.y > 0.0 { format!("{:.0} px are below", answer.left.y) } else { "this is the bottom".into() };
    format!("Scrolled {}; {left}.", ways.join(" and "))
}

/// No keys are held.
const NONE: Modifiers = Modifiers { alt: false, control: false, meta: false, shift: false };
