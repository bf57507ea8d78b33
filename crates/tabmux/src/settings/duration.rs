//! Durations as people write them: `500ms`, `30s`, `5m`, `2h`; a bare number is seconds, `0` is off.

use std::time::Duration;

pub(super) const CHOICES: &str = "a duration such as 500ms, 30s, 5m or 2h; a bare number is seconds; 0 turns it off";

/// `None` = off; `Err` = not a duration.
pub(super) fn parse(text: &str) -> Result<Option<Duration>, ()> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| ())?;
    let unit_ms: u64 = match &text[digits..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(()),
    };
    let ms = number.checked_mul(unit_ms).ok_or(())?;
    Ok((ms > 0).then(|| Duration::from_millis(ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_reads_and_zero_is_off() {
        let ms = |ms| Ok(Some(Duration::from_millis(ms)));
        for (text, expected) in [("500ms", ms(500)), ("30s", ms(30_000)), ("5m", ms(300_000)), ("2h", ms(7_200_000)), ("7", ms(7000))] {
            assert_eq!(parse(text), expected, "{text}");
        }
        for off in ["0", "0s", "0ms"] {
            assert_eq!(parse(off), Ok(None), "{off}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "s", "-1s", "1.5s", "5 m", "5min", "1d", "99999999999999999999", "18446744073709551615h"] {
            assert_eq!(parse(text), Err(()), "{text}");
        }
    }
}
