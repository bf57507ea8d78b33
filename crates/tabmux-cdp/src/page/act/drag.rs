//! Dragging: pressed on one element, released over another. Where the page uses the browser's own drag and drop, its data is
//! intercepted and carried by messages, since no window system is there to do it; else the pointer itself moves.

use std::time::Duration;

use serde_json::json;
use tabmux_driver::{Acted, Button, DriverError, Result, Selector};

use super::aim::{Order, Point};
use super::pointer::{mouse, pressing};
use super::{CdpPage, NONE, report};
use crate::protocol::input::{DispatchDragEvent, DispatchMouseEvent, SetInterceptDrags};

/// How far the pointer moves before the browser calls it a drag.
const START: f64 = 8.0;

/// Steps on the way, as a hand makes them.
const STEPS: u32 = 8;

/// How long the browser may take to say what is dragged.
const DATA: Duration = Duration::from_secs(5);

/// A pressed button, which is released whatever happens.
struct Held<'a> {
    page: &'a CdpPage,
    at: Point,
    down: bool,
}

impl CdpPage {
    pub(super) async fn drag(&self, from: &Selector, to: &Selector, patience: Duration) -> Result<Acted> {
        // Nothing is pressed that could not be let go where it was meant to.
        self.aim(goal(to, patience)).await?;
        let token = report::token();
        let grab = self.aim(Order { verb: "grab", selector: Some(from), wanted: json!({ "token": token }), patience }).await?;
        let start = grab.answer.point;
        let near = Point { x: start.x + START, y: start.y + START };
        self.state.reports().forget_drag();
        self.send_all(&[SetInterceptDrags { enabled: true }]).await?;
        let mut held = Held { page: self, at: start, down: true };
        let events = [
            mouse("mouseMoved", start, NONE),
            pressing("mousePressed", start, Button::Left, 1, NONE),
            dragging(halfway(start, near, 1, 2)),
            dragging(near),
        ];
        self.send_all(&events).await?;
        let native = self.confirm(&grab.frame, "grabbed", &json!({})).await?.native;
        let goal = self.aim(goal(to, patience)).await.map_err(|error| match error {
            // It heard the press.
            DriverError::Navigated => DriverError::Unconfirmed("The page went elsewhere while it was dragged".into()),
            other => other,
        })?;
        held.at = goal.answer.point;
        if native {
            self.carry(goal.answer.point).await?;
        } else {
            let path: Vec<_> = (1..=STEPS).map(|step| dragging(halfway(near, goal.answer.point, step, STEPS))).collect();
            self.send_all(&path).await?;
        }
        held.let_go().await?;
        let dropped = self.confirm(&goal.frame, "dropped", &json!({ "native": native })).await?;
        let onto = format!("Onto {}.", goal.answer.label);
        Ok(grab.answer.acted(Some(dropped.now.map_or(onto.clone(), |now| format!("{onto} {now}")))))
    }

    async fn carry(&self, to: Point) -> Result<()> {
        let waited = tokio::time::timeout(DATA, self.state.reports().dragged()).await.ok().flatten();
        let data = waited.ok_or_else(|| DriverError::Unconfirmed("The browser did not say what is dragged".into()))?;
        let step = |kind: &str| DispatchDragEvent { kind: kind.to_owned(), x: to.x, y: to.y, data: data.clone(), modifiers: None };
        self.send_all(&[step("dragEnter"), step("dragOver"), step("dragOver"), step("drop")]).await
    }
}

impl Held<'_> {
    async fn let_go(mut self) -> Result<()> {
        self.down = false;
        self.page.send_all(&[pressing("mouseReleased", self.at, Button::Left, 1, NONE)]).await
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let page = self.page;
        if page.state.living().is_err() {
            return;
        }
        if self.down {
            drop(page.connection.send(Some(&page.session), &pressing("mouseReleased", self.at, Button::Left, 1, NONE)));
        }
        drop(page.connection.send(Some(&page.session), &SetInterceptDrags { enabled: false }));
    }
}

fn goal(to: &Selector, patience: Duration) -> Order<'_> {
    Order { verb: "point", selector: Some(to), wanted: json!({ "need": "look" }), patience }
}

fn dragging(at: Point) -> DispatchMouseEvent {
    DispatchMouseEvent { button: Some("left".into()), buttons: Some(1), ..mouse("mouseMoved", at, NONE) }
}

fn halfway(from: Point, to: Point, step: u32, of: u32) -> Point {
    let part = f64::from(step) / f64::from(of);
    Point { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part }
}
