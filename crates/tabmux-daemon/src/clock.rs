//! Time as the registry wants it: milliseconds on tokio's clock, which never jumps, stands still while the
//! machine sleeps, and can be paused in tests.

use std::sync::atomic::{AtomicI64, Ordering};

use tabmux_core::Millis;
use tokio::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    /// What the wall's clock showed when this one began. Measured again only when the two have parted (the machine slept, or
    /// somebody set the wall's): else a moment long past would be told a millisecond differently each time.
    began_unix_ms: AtomicI64,
}

/// How far the clocks may part unnoticed.
const APART_MS: u64 = 1000;

impl Clock {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), began_unix_ms: AtomicI64::new(unix_ms()) }
    }

    pub(crate) fn now(&self) -> Millis {
        Millis(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn moment(&self) -> Moment {
        let millis = self.now();
        let passed = i64::try_from(millis.0).unwrap_or(i64::MAX);
        let (kept, measured) = (self.began_unix_ms.load(Ordering::Relaxed), unix_ms().saturating_sub(passed));
        let began = if kept.abs_diff(measured) > APART_MS { measured } else { kept };
        self.began_unix_ms.store(began, Ordering::Relaxed);
        Moment { millis, unix_ms: began.saturating_add(passed) }
    }

    pub(crate) fn instant(&self, at: Millis) -> Instant {
        self.began + Duration::from_millis(at.0)
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Now, on the registry's clock and on the wall's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) millis: Millis,
    pub(crate) unix_ms: i64,
}

impl Moment {
    /// What the wall's clock showed so long ago, in ISO 8601.
    pub(crate) fn iso_at(self, at: Millis) -> String {
        let ago = i64::try_from(self.millis.0.saturating_sub(at.0)).unwrap_or(i64::MAX);
        iso(self.unix_ms.saturating_sub(ago))
    }
}

/// Wall-clock time, for people only.
#[cfg(not(test))]
pub(crate) fn unix_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// The same, in a test whose machine may have slept.
#[cfg(test)]
pub(crate) fn unix_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond() + SLEPT_MS.get()
}

#[cfg(test)]
thread_local! {
    /// Each test has a thread of its own, and with it a machine.
    static SLEPT_MS: std::cell::Cell<i64> = const { std::cell::Cell::new(0) };
}

/// The lid was closed for so long: the wall's clock went on, the monotonic one did not.
#[cfg(test)]
pub(crate) fn machine_slept(time: Duration) {
    SLEPT_MS.set(SLEPT_MS.get() + i64::try_from(time.as_millis()).expect("shorter than history"));
}

/// ISO 8601 (S3.28).
pub(crate) fn iso(unix_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(unix_ms).map(|time| time.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_past_moment_is_told_alike_until_the_clocks_part() {
        let clock = Clock::start();
        let told = || clock.moment().iso_at(Millis(7));
        let first = told();
        assert!((0..200).all(|_| told() == first));
        machine_slept(Duration::from_secs(3600));
        assert_ne!(&told()[..16], &first[..16], "measured again");
    }
}
