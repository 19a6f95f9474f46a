//! Times of objects: a million of them cost little more than copying.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Formats `2030-01-31 12:00:00` in the local zone; caches the date and the zone's offset.
pub struct Clock {
    zone: TimeZone,
    /// The quarter-hour since 1970 that `offset_s` is valid for: zones change at these boundaries.
    quarter: i64,
    offset_s: i64,
    day: i64,
    date: [u8; 10],
}

/// Characters of a time.
pub const DATE_WIDTH: usize = 19;
const QUARTER_S: i64 = 900;
const DAY_S: i64 = 86_400;

impl Clock {
    /// Makes a clock of a zone.
    pub fn new(zone: TimeZone) -> Clock {
        Clock { zone, quarter: i64::MIN, offset_s: 0, day: i64::MIN, date: *b"0000-00-00" }
    }

    /// Appends a time in seconds since 1970.
    pub fn push(&mut self, time_s: i64, out: &mut Vec<u8>) {
        let quarter = time_s.div_euclid(QUARTER_S);
        if quarter != self.quarter {
            let offset = Timestamp::from_second(time_s).map(|time| self.zone.to_offset(time));
            self.offset_s = offset.map_or(0, |offset| i64::from(offset.seconds()));
            self.quarter = quarter;
        }
        let local_s = time_s.saturating_add(self.offset_s);
        let (day, rest) = (local_s.div_euclid(DAY_S), local_s.rem_euclid(DAY_S));
        if day != self.day {
            let date = Timestamp::from_second(day.saturating_mul(DAY_S))
                .map(|time| TimeZone::UTC.to_datetime(time).date().to_string());
            let text = date.unwrap_or_default();
            self.date = *text.as_bytes().first_chunk().unwrap_or(b"0000-00-00");
            self.day = day;
        }
        out.extend_from_slice(&self.date);
        let two = |n: i64| [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        for (sign, n) in [(b' ', rest / 3600), (b':', rest / 60 % 60), (b':', rest % 60)] {
            out.push(sign);
            out.extend_from_slice(&two(n));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_zone() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let mut clock = Clock::new(zone);
        // In any order, and around the change to summer time (2026-03-29 01:00 UTC).
        for (s, text) in [
            (1_774_745_999, "2026-03-29 01:59:59"),
            (1_774_746_000, "2026-03-29 03:00:00"),
            (0, "1970-01-01 01:00:00"),
            (-3601, "1969-12-31 23:59:59"),
            (1_774_745_999, "2026-03-29 01:59:59"),
        ] {
            let mut out = Vec::new();
            clock.push(s, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }
}
