//! When a failed model call is repeated, and after which pause (R60).

use crate::clock::Ms;
use crate::error::Error;
use crate::replay::Callback;

/// How often a model call is tried, and the pauses between.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// The highest number of attempts, including the first.
    pub attempts: u32,
    /// The pause before the second attempt, in milliseconds. It doubles with each attempt.
    pub backoff_ms: Ms,
    /// The application's function that may approve sending a request again that the service may have processed (R27).
    pub approve_unsafe_replay: Option<Callback>,
}

/// A question to the application: may a request be sent again that the service may have processed?
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayQuestion {
    /// The function to call.
    pub callback: Callback,
    /// The status of the service's error response, if there was one.
    pub status: Option<u16>,
    /// The error of the failed call.
    pub error: Error,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 3, backoff_ms: 500, approve_unsafe_replay: None }
    }
}

/// The longest pause in milliseconds, unless the provider's `Retry-After` asks for a longer one.
const LONGEST_BACKOFF: Ms = 60_000;

/// The longest pause that a provider may ask for, in milliseconds: a day, after which the longest of known limits begin
/// anew. Instead of a longer one the run fails, so that its session is not busy for ever.
const LONGEST_REQUESTED: Ms = 86_400_000;

impl RetryPolicy {
    /// Returns the pause after attempt number `attempt` (from 1), or `None` after the last one. `requested` is the
    /// provider's wish.
    #[must_use]
    pub fn wait_after(&self, attempt: u32, requested: Option<Ms>) -> Option<Ms> {
        if attempt >= self.attempts || requested.is_some_and(|wait| wait > LONGEST_REQUESTED) {
            return None;
        }
        let doubled = self.backoff_ms.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        Some(requested.unwrap_or(doubled.min(LONGEST_BACKOFF)))
    }

    /// Returns the policy for a conversation that another request holds: three pauses of 1, 2 and 4 seconds, unless
    /// nothing is repeated.
    #[must_use]
    pub fn for_locked_conversation(&self) -> Self {
        let attempts = if self.attempts > 1 { self.attempts.max(LOCKED_ATTEMPTS) } else { self.attempts };
        Self { attempts, backoff_ms: LOCKED_BACKOFF, approve_unsafe_replay: None }
    }
}

/// Attempts and first pause of a request to a conversation that another request holds.
const LOCKED_ATTEMPTS: u32 = 4;
const LOCKED_BACKOFF: Ms = 1_000;

/// Returns true if the same request may succeed later. 529 means "overloaded".
#[must_use]
pub fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=524 | 529)
}

/// Returns the pause that the provider requests, in milliseconds: `retry-after-ms`, or `retry-after` in seconds or as
/// an HTTP date.
#[must_use]
pub fn requested_wait(headers: &[(String, String)], now: Ms) -> Option<Ms> {
    let header =
        |name: &str| headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
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
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month_name = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month_name)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut clock = words.next()?.split(':').map(str::parse::<u64>);
    let mut below = |limit: u64| clock.next()?.ok().filter(|number| *number < limit);
    let (hour, minute, second) = (below(24)?, below(60)?, below(61)?);
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
    fn r60_retry_delays_of_the_provider_are_parsed() {
        let headers = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        assert_eq!(requested_wait(&headers("Retry-After", "2"), 0), Some(2_000));
        assert_eq!(requested_wait(&headers("retry-after", "0.25"), 0), Some(250));
        assert_eq!(requested_wait(&headers("retry-after-ms", "30"), 0), Some(30));
        assert_eq!(
            requested_wait(&headers("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), 784_111_770_000),
            Some(7_000)
        );
        assert_eq!(requested_wait(&headers("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), 800_000_000_000), Some(0));
        assert_eq!(requested_wait(&headers("retry-after", "soon"), 0), None);
        let huge = u64::MAX;
        for date in [
            format!("Sun, {huge} Nov 1994 08:49:37 GMT"),
            format!("Sun, 06 Nov 1994 {huge}:49:37 GMT"),
            format!("Sun, 06 Nov 1994 08:{huge}:37 GMT"),
            format!("Sun, 06 Nov 1994 08:49:{huge} GMT"),
            "Sun, 0 Mar 1970 00:00:00 GMT".to_owned(),
            format!("{huge}"),
        ] {
            assert_eq!(requested_wait(&headers("retry-after", &date), 0), None, "{date}");
        }
    }

    #[test]
    fn r60_backoff_doubles_and_ends() {
        let policy = RetryPolicy { attempts: 4, backoff_ms: 100, approve_unsafe_replay: None };
        assert_eq!(
            [1, 2, 3, 4].map(|attempt| policy.wait_after(attempt, None)),
            [Some(100), Some(200), Some(400), None]
        );
        assert_eq!(policy.wait_after(1, Some(7)), Some(7));
        assert_eq!(policy.wait_after(1, Some(86_400_000)), Some(86_400_000));
        assert_eq!(policy.wait_after(1, Some(86_400_001)), None);
    }
}
