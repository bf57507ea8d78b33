//! The pointer and the finger, as messages. What belongs together is sent at once and answered together.

use futures::future::try_join_all;
use tabmux_driver::{Button, DriverError, Modifiers, Result};

use super::aim::Point;
use super::{CdpPage, NONE};
use crate::CdpError;
use crate::page::state::Life;
use crate::protocol::Command;
use crate::protocol::input::{DispatchMouseEvent, DispatchTouchEvent, TouchPoint};

impl CdpPage {
    /// Sends all at once and waits for all; a page that crashes meanwhile answers none.
    pub(super) async fn send_all<C: Command>(&self, commands: &[C]) -> Result<()> {
        let mut progress = self.state.watch();
        let replies = try_join_all(commands.iter().map(|command| self.connection.send(Some(&self.session), command)));
        let done = tokio::select! {
            biased;
            replies = replies => replies.map(drop),
            Ok(_) = progress.wait_for(|now| now.life == Life::Crashed) => Err(CdpError::Crashed),
        };
        done.map_err(DriverError::from)
    }

    pub(super) async fn click_at(&self, at: Point, button: Button, count: u8, modifiers: Modifiers) -> Result<()> {
        let mut events = vec![mouse("mouseMoved", at, modifiers)];
        for number in 1..=i64::from(count) {
            for kind in ["mousePressed", "mouseReleased"] {
                events.push(pressing(kind, at, button, number, modifiers));
            }
        }
        self.send_all(&events).await
    }

    pub(super) async fn move_to(&self, at: Point) -> Result<()> {
        self.send_all(&[mouse("mouseMoved", at, NONE)]).await
    }

    pub(super) async fn turn_wheel(&self, at: Point, by: Point) -> Result<()> {
        let wheel = DispatchMouseEvent { delta_x: Some(by.x), delta_y: Some(by.y), ..mouse("mouseWheel", at, NONE) };
        self.send_all(&[wheel]).await
    }

    pub(super) async fn tap_at(&self, at: Point) -> Result<()> {
        let finger = TouchPoint { x: at.x, y: at.y, ..TouchPoint::default() };
        let touch = |kind: &str, touch_points| DispatchTouchEvent { kind: kind.to_owned(), touch_points, ..DispatchTouchEvent::default() };
        self.send_all(&[touch("touchStart", vec![finger]), touch("touchEnd", Vec::new())]).await
    }
}

pub(super) fn mouse(kind: &str, at: Point, modifiers: Modifiers) -> DispatchMouseEvent {
    DispatchMouseEvent { kind: kind.to_owned(), x: at.x, y: at.y, modifiers: Some(bits(modifiers)), ..DispatchMouseEvent::default() }
}

pub(super) fn pressing(kind: &str, at: Point, button: Button, number: i64, modifiers: Modifiers) -> DispatchMouseEvent {
    let (name, bit) = match button {
        Button::Left => ("left", 1),
        Button::Middle => ("middle", 4),
        Button::Right => ("right", 2),
    };
    DispatchMouseEvent {
        button: Some(name.to_owned()),
        buttons: Some(if kind == "mousePressed" { bit } else { 0 }),
        click_count: Some(number),
        ..mouse(kind, at, modifiers)
    }
}

/// As `Input` counts them.
pub(super) fn bits(held: Modifiers) -> i64 {
    i64::from(held.alt) | i64::from(held.control) << 1 | i64::from(held.meta) << 2 | i64::from(held.shift) << 3
}
