//! Time as the registry wants it: milliseconds on tokio's clock, which never jumps, stands still while the
//! machine sleeps, and can be paused in tests.

use tabmux_core::Millis;
use tokio::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now() }
    }

    pub(crate) fn now(self) -> Millis {
        Millis(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn moment(self) -> Moment {
        Moment { millis: self.now(), unix_ms: unix_ms() }
    }

    pub(crate) fn instant(self, at: Millis) -> Instant {
        self.began + Duration::from_millis(at.0)
    }

    pub(crate) fn uptime(self) -> Duration {
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
pub(crate) fn unix_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// ISO 8601 (S3.28).
pub(crate) fn iso(unix_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(unix_ms).map(|time| time.to_string()).unwrap_or_default()
}
