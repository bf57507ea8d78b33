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

    pub(crate) fn instant(self, at: Millis) -> Instant {
        self.began + Duration::from_millis(at.0)
    }

    pub(crate) fn uptime(self) -> Duration {
        self.began.elapsed()
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
