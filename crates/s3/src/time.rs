//! Time formats of S3: ISO 8601 in XML, HTTP dates in headers, compact stamps in signatures.

use hakobu_core::unit::Time;
use jiff::Timestamp;
use jiff::fmt::{rfc2822, strtime, temporal};
use jiff::tz::TimeZone;

/// Formats seconds since 1970 as `20130524T000000Z`.
pub(crate) fn stamp(s: i64) -> String {
    let zoned = clamped(s).to_zoned(TimeZone::UTC);
    strtime::format("%Y%m%dT%H%M%SZ", &zoned).unwrap_or_else(|_| "19700101T000000Z".to_owned())
}

/// Nearest time that the calendar supports.
fn clamped(s: i64) -> Timestamp {
    Timestamp::from_second(s).unwrap_or(if s < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// Parses `2013-05-24T00:00:00.000Z`, the form in listings, on a fast path; other forms of ISO 8601 (offsets)
/// on a slow one. `None` for anything else.
pub(crate) fn parse_iso(text: &[u8]) -> Option<Time> {
    fast_iso(text).or_else(|| {
        let parsed = temporal::DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(of(parsed))
    })
}

/// Parses an HTTP date. `None` for anything else.
pub(crate) fn parse_http(text: &str) -> Option<Time> {
    let parser = rfc2822::DateTimeParser::new().relaxed_weekday(true);
    Some(of(parser.parse_timestamp(text).ok()?))
}

fn of(timestamp: Timestamp) -> Time {
    let ns = timestamp.as_nanosecond();
    let s = ns.div_euclid(1_000_000_000);
    Time { s: s as i64, ns: ns.rem_euclid(1_000_000_000) as u32 }
}

fn fast_iso(text: &[u8]) -> Option<Time> {
    let (head, fraction) = text.split_at_checked(19)?;
    let marks = [head[4], head[7], head[10], head[13], head[16]];
    if marks != *b"--T::" {
        return None;
    }
    let two = |at: usize| {
        let (tens, ones) = (head[at].wrapping_sub(b'0'), head[at + 1].wrapping_sub(b'0'));
        (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
    };
    let (year, month, day) = (two(0)? * 100 + two(2)?, two(5)?, two(8)?);
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    let sane = (1..=12).contains(&month)
        && (1..=month_days(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    let ns = fraction_ns(fraction)?;
    let s = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    sane.then_some(Time { s, ns })
}

/// Parses `.123Z` or `Z` to nanoseconds; at most nine digits.
fn fraction_ns(text: &[u8]) -> Option<u32> {
    let digits = match text {
        b"Z" | b".000Z" => return Some(0),
        [b'.', digits @ .., b'Z'] if (1..=9).contains(&digits.len()) => digits,
        _ => return None,
    };
    let mut ns = 0;
    for at in 0..9 {
        let digit = digits.get(at).map_or(0, |digit| digit.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        ns = ns * 10 + u32::from(digit);
    }
    Some(ns)
}

fn month_days(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 in the Gregorian calendar. The year starts in March, so that a leap day is its last day;
/// five consecutive months then always have 153 days.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    // 1 March of the year 0 is 719,468 days before 1970.
    year * 365 + leaps + of_year - 719_468
}

/// Seconds since 1970 by this machine's clock.
pub(crate) fn now_s() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    i64::try_from(since).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: i64 = 1_369_353_600; // 24 May 2013

    /// `Fri, 24 May 2013 00:00:00 GMT` (RFC 9110); fractions are truncated.
    fn http_date(time: Time) -> String {
        let text = rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&clamped(time.s));
        text.unwrap_or_else(|_| "Thu, 01 Jan 1970 00:00:00 GMT".to_owned())
    }

    /// `2013-05-24T00:00:00Z`, with a fraction if there is one.
    fn iso(time: Time) -> String {
        let nanosecond = i32::try_from(time.ns).unwrap_or(0);
        let exact = Timestamp::new(time.s, nanosecond).unwrap_or_else(|_| clamped(time.s));
        temporal::DateTimePrinter::new().timestamp_to_string(&exact)
    }

    #[test]
    fn known_times() {
        assert_eq!(stamp(DAY), "20130524T000000Z");
        assert_eq!(http_date(Time { s: DAY, ns: 5 }), "Fri, 24 May 2013 00:00:00 GMT");
        assert_eq!(iso(Time { s: DAY, ns: 0 }), "2013-05-24T00:00:00Z");
        let parsed = parse_http("Fri, 24 May 2013 00:00:00 GMT");
        assert_eq!(parsed, Some(Time { s: DAY, ns: 0 }));
        let parsed = parse_iso(b"2013-05-24T02:00:00.5+02:00");
        assert_eq!(parsed, Some(Time { s: DAY, ns: 500_000_000 }));
        for text in [
            "",
            "2013-05-24",
            "2013-02-29T00:00:00Z",
            "2013-05-24T24:00:00.000Z",
            "2013-05-24T00:00:00",
            "2013-05-24T00:00:00.Z",
            "2013-05-24T00:00:00.0000000000Z",
        ] {
            assert_eq!(fast_iso(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_http("yesterday"), None);
        assert_eq!(stamp(i64::MAX).len(), 16);
        assert_eq!(http_date(Time { s: i64::MIN, ns: 0 }), "Thu, 01 Jan 1970 00:00:00 GMT");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(s in -62_135_596_800_i64..253_402_300_800, ns in 0..1_000_000_000_u32) {
            let time = Time { s, ns };
            let text = iso(time);
            prop_assert_eq!(fast_iso(text.as_bytes()), Some(time), "{}", text);
            let whole = Time { s, ns: 0 };
            prop_assert_eq!(parse_iso(iso(whole).as_bytes()), Some(whole));
            let text = http_date(whole);
            // RFC 2822 supports years from 1900 on.
            if s > -2_208_988_800 {
                prop_assert_eq!(parse_http(&text), Some(whole), "{}", text);
            }
        }

        #[test]
        fn no_text_upsets_the_parsers(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            parse_iso(&bytes);
            parse_http(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn no_text_of_digits_upsets_them(text in "[0-9TZ:.+-]{19,32}") {
            if let Some(time) = fast_iso(text.as_bytes()) {
                prop_assert_eq!(parse_iso(text.as_bytes()), Some(time));
            }
        }
    }
}
