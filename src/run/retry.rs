//! When a model call is tried again, and how long to wait before it (R60).

use crate::clock::Ms;

/// How often and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries in all, the first one included.
    pub attempts: u32,
    /// Before the second try, in milliseconds; doubled each time.
    pub backoff_ms: Ms,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 3, backoff_ms: 500 }
    }
}

/// No backoff of our own is longer, in milliseconds; a provider's Retry-After is taken as it is.
const LONGEST: Ms = 60_000;

impl RetryPolicy {
    /// How long to wait after the `attempt`th try (from 1) has failed; none when it was the last.
    #[must_use]
    pub fn wait_after(&self, attempt: u32, asked: Option<Ms>) -> Option<Ms> {
        if attempt >= self.attempts {
            return None;
        }
        let doubled = self.backoff_ms.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        Some(asked.unwrap_or(doubled.min(LONGEST)))
    }
}

/// Whether a status says that the same request may succeed later. 529 is Anthropic's "overloaded".
#[must_use]
pub fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=524 | 529)
}

/// How long the provider asks to wait, in milliseconds: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date.
#[must_use]
pub fn asked_wait(headers: &[(String, String)], now: Ms) -> Option<Ms> {
    let header =
        |name: &str| headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
    if let Some(wait) = header("retry-after-ms").and_then(thousandths).map(|wait| wait / 1000) {
        return Some(wait);
    }
    let text = header("retry-after")?;
    thousandths(text).or_else(|| http_date(text).map(|at| at.saturating_sub(now)))
}

/// Reads a decimal number, in thousandths.
fn thousandths(text: &str) -> Option<Ms> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction = format!("{fraction}000");
    whole.parse::<Ms>().ok()?.checked_mul(1000)?.checked_add(fraction.get(..3)?.parse().ok()?)
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, the one form that senders may use).
fn http_date(text: &str) -> Option<Ms> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = crate::text::cut(text, ", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month_name = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month_name)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut clock = words.next()?.split(':').map(str::parse::<u64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    // Days since the epoch of a civil date, counted from March so that the leap day is the last.
    let (y, m) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some((days * 86_400 + hour * 3_600 + minute * 60 + second) * 1000)
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn r60_reads_what_the_provider_asks_for() {
        let headers = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        assert_eq!(asked_wait(&headers("Retry-After", "2"), 0), Some(2_000));
        assert_eq!(asked_wait(&headers("retry-after", "0.25"), 0), Some(250));
        assert_eq!(asked_wait(&headers("retry-after-ms", "30"), 0), Some(30));
        assert_eq!(asked_wait(&headers("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), 784_111_770_000), Some(7_000));
        assert_eq!(asked_wait(&headers("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), 800_000_000_000), Some(0));
        assert_eq!(asked_wait(&headers("retry-after", "soon"), 0), None);
    }

    #[test]
    fn r60_backs_off_and_ends() {
        let policy = RetryPolicy { attempts: 4, backoff_ms: 100 };
        assert_eq!(
            [1, 2, 3, 4].map(|attempt| policy.wait_after(attempt, None)),
            [Some(100), Some(200), Some(400), None]
        );
        assert_eq!(policy.wait_after(1, Some(7)), Some(7));
    }
}
