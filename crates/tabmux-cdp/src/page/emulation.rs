//! What a page is made to see, as protocol messages: only what differs from before is sent, all of it at once. Its frames in other processes
//! are told by themselves, but for what the page has for all of them: the screen and the place on earth.

use std::time::Duration;

use futures::future::BoxFuture;
use tabmux_driver::{DriverError, Emulation, Result};

use super::CdpPage;
use super::requests::{self, Waiting};
use crate::CdpError;
use crate::connection::Connection;
use crate::protocol::{Command, emulation, network};
use crate::world::World;

/// The screen of a viewport that is not mobile, at least: it holds the window as well, which stays as it is.
const DESK: (u32, u32) = (1920, 1080);

/// How long a frame may take to say that it sees something else. One that is busy does so when it is not any more.
const FRAME_PATIENCE: Duration = Duration::from_secs(1);

/// The answers to come, and what each of them is about.
pub(super) type Asked = Vec<BoxFuture<'static, Result<()>>>;

/// Who is made to see something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Page,
    /// One that lives in another process than what is around it.
    Frame,
    /// Which only can be kept from the network.
    Worker,
}

/// Those of a page, or of a frame in another process.
pub(super) struct Eyes<'a> {
    pub(super) connection: &'a Connection,
    pub(super) session: &'a str,
    pub(super) whose: Whose,
}

impl CdpPage {
    /// Sends what makes the page, its frames and its workers see `wanted`, which saw `before`; the future waits for the answers.
    pub(crate) fn show(&self, wanted: &Emulation, before: &Emulation) -> impl Future<Output = Result<()>> + Send + use<> {
        let told = |session: &str, whose| Eyes { connection: &self.connection, session, whose }.see(&self.world, wanted, before);
        let page = told(&self.session, Whose::Page);
        let frames = self.state.frames().sessions().into_iter().map(|session| (session, Whose::Frame));
        let workers = self.state.workers().into_iter().map(|session| (session, Whose::Worker));
        let parts: Asked = frames.chain(workers).flat_map(|(session, whose)| told(&session, whose)).collect();
        async move {
            // What a frame refuses the page has refused too, or the frame is gone.
            let parts = tokio::time::timeout(FRAME_PATIENCE, futures::future::join_all(parts));
            let (page, _) = futures::join!(futures::future::try_join_all(page), parts);
            page.map(drop)
        }
    }
}

impl Eyes<'_> {
    /// Sends what differs; the answers are to come.
    pub(super) fn see(&self, world: &World, wanted: &Emulation, before: &Emulation) -> Asked {
        let mut asked = Asked::new();
        if self.whose == Whose::Worker {
            let offline = |of: &Emulation| of.offline.unwrap_or_default();
            if offline(wanted) != offline(before) {
                requests::let_wait(self, if offline(wanted) { Waiting::Offline } else { Waiting::None }, &mut asked);
            }
            return asked;
        }
        if self.whose == Whose::Page {
            self.show_screen(wanted, before, &mut asked);
            self.show_place(wanted, before, &mut asked);
        }
        self.show_shared(wanted, before, &mut asked);
        let waiting = Waiting::of(world, wanted);
        if waiting != Waiting::of(world, before) {
            requests::let_wait(self, waiting, &mut asked);
        }
        asked
    }

    /// What a page has in common with its frames in the same process, and loses with one of them.
    pub(super) fn show_shared(&self, wanted: &Emulation, before: &Emulation, asked: &mut Asked) {
        self.show_looks(wanted, before, asked);
        self.show_agent(wanted, before, asked);
        self.show_region(wanted, before, asked);
        self.show_line(wanted, before, asked);
        if wanted.cpu != before.cpu {
            self.ask("cpu", &emulation::SetCPUThrottlingRate { rate: wanted.cpu.unwrap_or(1.0) }, asked);
        }
    }

    fn show_screen(&self, wanted: &Emulation, before: &Emulation, asked: &mut Asked) {
        let screen = |of: &Emulation| (of.viewport, of.device_scale_factor, of.mobile);
        if screen(wanted) != screen(before) {
            if screen(wanted) == (None, None, None) {
                self.ask("viewport", &emulation::ClearDeviceMetricsOverride::default(), asked);
            } else {
                let (width, height) = wanted.viewport.unwrap_or_default();
                // What is mobile has a screen of its viewport's size by itself.
                let on_desk = wanted.viewport.filter(|_| !wanted.mobile.unwrap_or_default());
                let screen = on_desk.map(|(width, height)| (width.max(DESK.0), height.max(DESK.1)));
                let metrics = emulation::SetDeviceMetricsOverride {
                    width: i64::from(width),
                    height: i64::from(height),
                    // None of its own is asked for by 0.
                    device_scale_factor: wanted.device_scale_factor.unwrap_or(if wanted.viewport.is_some() { 1.0 } else { 0.0 }),
                    mobile: wanted.mobile.unwrap_or_default(),
                    screen_width: screen.map(|(width, _)| i64::from(width)),
                    screen_height: screen.map(|(_, height)| i64::from(height)),
                    ..emulation::SetDeviceMetricsOverride::default()
                };
                self.ask("viewport, deviceScaleFactor and mobile", &metrics, asked);
            }
        }
    }

    fn show_looks(&self, wanted: &Emulation, before: &Emulation, asked: &mut Asked) {
        let touch = |of: &Emulation| of.touch.or(of.mobile).unwrap_or_default();
        if touch(wanted) != touch(before) {
            let enabled = touch(wanted);
            let command = emulation::SetTouchEmulationEnabled { enabled, max_touch_points: enabled.then_some(5) };
            self.ask("touch", &command, asked);
        }
        let media = |of: &Emulation| (of.media.clone(), of.color_scheme.clone(), of.reduced_motion.clone());
        if media(wanted) != media(before) {
            let feature = |name: &str, value: &Option<String>| emulation::MediaFeature {
                name: name.into(),
                value: value.clone().unwrap_or_default(),
            };
            let features =
                vec![feature("prefers-color-scheme", &wanted.color_scheme), feature("prefers-reduced-motion", &wanted.reduced_motion)];
            let command = emulation::SetEmulatedMedia { media: Some(wanted.media.clone().unwrap_or_default()), features: Some(features) };
            self.ask("media", &command, asked);
        }
    }

    fn show_agent(&self, wanted: &Emulation, before: &Emulation, asked: &mut Asked) {
        let agent = |of: &Emulation| (of.user_agent.clone(), of.locale.clone());
        if agent(wanted) != agent(before) {
            let (user_agent, accept_language) = (wanted.user_agent.clone().unwrap_or_default(), wanted.locale.clone());
            let command = emulation::SetUserAgentOverride { user_agent, accept_language, ..emulation::SetUserAgentOverride::default() };
            self.ask("userAgent and locale", &command, asked);
        }
    }

    /// Language and time.
    pub(super) fn show_region(&self, wanted: &Emulation, before: &Emulation, asked: &mut Asked) {
        if wanted.locale != before.locale {
            let name = format!("the locale {:?}", wanted.locale.as_deref().unwrap_or_default());
            self.ask(&name, &emulation::SetLocaleOverride { locale: wanted.locale.clone() }, asked);
        }
        if wanted.timezone != before.timezone {
            let timezone_id = wanted.timezone.clone().unwrap_or_default();
            // Only a first one is checked.
            if before.timezone.is_some() && wanted.timezone.is_some() {
                self.ask("timezone", &emulation::SetTimezoneOverride::default(), asked);
            }
            self.ask(&format!("the timezone {timezone_id:?}"), &emulation::SetTimezoneOverride { timezone_id }, asked);
        }
    }

    fn show_place(&self, wanted: &Emulation, before: &Emulation, asked: &mut Asked) {
        if wanted.geolocation != before.geolocation {
            match wanted.geolocation {
                Some(place) => {
                    let command = emulation::SetGeolocationOverride {
                        latitude: Some(place.latitude),
                        longitude: Some(place.longitude),
                        accuracy: Some(place.accuracy),
                        ..emulation::SetGeolocationOverride::default()
                    };
                    self.ask("geolocation", &command, asked);
                }
                None => self.ask("geolocation", &emulation::ClearGeolocationOverride::default(), asked),
            }
        }
    }

    fn show_line(&self, wanted: &Emulation, before: &Emulation, asked: &mut Asked) {
        let line = |of: &Emulation| (of.offline.unwrap_or_default(), of.network);
        if line(wanted) != line(before) {
            // Kilobits are asked for, bytes are taken; less than none is no limit.
            let rate = |kilobits: Option<f64>| kilobits.map_or(-1.0, |kilobits| kilobits * 125.0);
            let throttle = wanted.network;
            let command = network::EmulateNetworkConditions {
                offline: wanted.offline.unwrap_or_default(),
                latency: throttle.map_or(0.0, |throttle| throttle.latency_ms),
                download_throughput: rate(throttle.and_then(|throttle| throttle.download_kbps)),
                upload_throughput: rate(throttle.and_then(|throttle| throttle.upload_kbps)),
                ..network::EmulateNetworkConditions::default()
            };
            self.ask("offline and network", &command, asked);
        }
    }

    pub(super) fn ask<C: Command + 'static>(&self, what: &str, command: &C, asked: &mut Asked) {
        let what = what.to_owned();
        let reply = self.connection.send(Some(self.session), command);
        asked.push(Box::pin(async move {
            match reply.await {
                // Of a page in the same process, which is the same for all of this context's pages.
                Err(CdpError::Refused { message, .. }) if message.contains("already in effect") => Ok(()),
                Err(CdpError::Refused { .. }) => Err(DriverError::EmulationRefused(what)),
                Err(other) => Err(other.into()),
                Ok(_) => Ok(()),
            }
        }));
    }
}
