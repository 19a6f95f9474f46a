//! Rates by time of day, in the form of rclone's `--bwlimit`: `08:00,512K 18:00,10M 23:00,off`, `Mon-08:00,512K`.
//! The week is a circle of minutes of the wall clock; each slot lasts until the next one begins.

use crate::number;
use std::ffi::OsStr;

/// Minutes of a day.
const DAY: u16 = 24 * 60;
/// Minutes of a week.
pub const WEEK: u16 = 7 * DAY;
/// A rate without limit.
pub const UNLIMITED: u64 = u64::MAX;

/// Days as rclone names them, in English and in any case; the week begins with the first.
const DAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// A beginning and the rate from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    /// Minutes after Sunday, 00:00.
    minute: u16,
    /// Bytes a second; [`UNLIMITED`] for `off`.
    per_s: u64,
}

/// Rates of a week.
#[derive(Clone, Debug)]
pub struct Timetable {
    /// At least one, in the order of the week, each minute once.
    slots: Vec<Slot>,
    /// Returns the minute of the week of the local wall clock.
    clock: fn() -> u16,
}

impl PartialEq for Timetable {
    fn eq(&self, other: &Timetable) -> bool {
        self.slots == other.slots
    }
}

impl Eq for Timetable {}

impl Timetable {
    /// Returns whether the value of `--bwlimit` is a timetable and not one rate.
    pub fn is_one(text: &str) -> bool {
        text.contains([',', ' ', ';'])
    }

    /// Parses a timetable; `clock` returns the minutes since Sunday, 00:00, of the wall clock. Of two slots for one
    /// minute the later one in the text counts.
    ///
    /// # Errors
    /// The reason, to stand after the option and the text.
    pub fn parse(text: &str, clock: fn() -> u16) -> Result<Timetable, String> {
        let mut slots: Vec<Slot> = Vec::new();
        let words = text.split([' ', ';']).filter(|word| !word.is_empty());
        for word in words {
            let (begin, rate) = word.split_once(',').ok_or_else(|| {
                format!(
                    "'{word}' is not [DAY-]HH:MM,RATE (example: 08:00,512K 18:00,10M 23:00,off)"
                )
            })?;
            let per_s = rate_of(rate)?;
            let (day, time) = match begin.rsplit_once('-') {
                Some((day, time)) => (Some(day_of(day)?), time),
                None => (None, begin),
            };
            let minute = minute_of(time)?;
            let days = match day {
                Some(day) => day..day + 1,
                None => 0..7,
            };
            for day in days {
                let minute = day * DAY + minute;
                slots.retain(|slot| slot.minute != minute);
                slots.push(Slot { minute, per_s });
            }
        }
        if slots.is_empty() {
            return Err("no time of day in it".to_owned());
        }
        slots.sort_by_key(|slot| slot.minute);
        Ok(Timetable { slots, clock })
    }

    /// Returns the rate at a minute of the week, in bytes a second; [`UNLIMITED`] for none. Before the first slot the
    /// last one of the week before applies.
    pub fn per_s_at(&self, minute: u16) -> u64 {
        let begun = self.slots.partition_point(|slot| slot.minute <= minute % WEEK);
        let slot = begun.checked_sub(1).and_then(|last| self.slots.get(last));
        slot.or(self.slots.last()).map_or(UNLIMITED, |slot| slot.per_s)
    }
}

/// A timetable, and the workers that share its rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    table: &'static Timetable,
    /// Workers with equal parts of each rate, at least 1.
    workers: u64,
}

impl Schedule {
    /// Makes the schedule of one worker. A timetable is kept to the end of the process: it is part of [`Limits`],
    /// which are copied, and a command line has one.
    ///
    /// [`Limits`]: crate::limit::Limits
    pub fn new(table: Timetable) -> Schedule {
        Schedule { table: Box::leak(Box::new(table)), workers: 1 }
    }

    /// Returns the schedule of one of `workers`.
    #[must_use]
    pub fn divided(self, workers: u64) -> Schedule {
        Schedule { workers: self.workers.saturating_mul(workers.max(1)), ..self }
    }

    /// Returns the rate at a minute of the week, in bytes a second, at least 1.
    pub fn per_s_at(&self, minute: u16) -> u64 {
        match self.table.per_s_at(minute) {
            UNLIMITED => UNLIMITED,
            per_s => (per_s / self.workers).max(1),
        }
    }

    /// Returns the rate at this moment.
    pub fn per_s_now(&self) -> u64 {
        self.per_s_at((self.table.clock)())
    }
}

fn rate_of(text: &str) -> Result<u64, String> {
    if text.contains(':') {
        return Err(format!(
            "'{text}': one rate applies to both directions, UPLOAD:DOWNLOAD is not supported"
        ));
    }
    if text == "off" {
        return Ok(UNLIMITED);
    }
    let rate = number::parse_rate(OsStr::new(text)).map_err(|why| format!("'{text}': {why}"))?;
    Ok(rate.unwrap_or(UNLIMITED))
}

fn day_of(text: &str) -> Result<u16, String> {
    let name = text.to_ascii_lowercase();
    let is_it = |day: &&str| **day == name || (name.len() == 3 && day.starts_with(&*name));
    let at = DAYS.iter().position(is_it);
    let at = at.and_then(|at| u16::try_from(at).ok());
    at.ok_or_else(|| format!("'{text}' is no day (Sun, Mon, Tue, Wed, Thu, Fri, Sat)"))
}

fn minute_of(text: &str) -> Result<u16, String> {
    let wrong = || format!("'{text}' is no time of day from 00:00 to 23:59");
    let (hours, minutes) = text.split_once(':').ok_or_else(wrong)?;
    let number = |digits: &str, most: u16| {
        let is_plain = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse::<u16>().ok().filter(|number| is_plain && *number <= most)
    };
    let (hours, minutes) = (number(hours, 23), number(minutes, 59));
    Ok(hours.ok_or_else(wrong)? * 60 + minutes.ok_or_else(wrong)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Timetable, String> {
        Timetable::parse(text, || 0)
    }

    /// Minutes since Sunday, 00:00.
    fn at(day: u16, hours: u16, minutes: u16) -> u16 {
        day * DAY + hours * 60 + minutes
    }

    const K: u64 = 1024;
    const M: u64 = 1024 * K;

    #[test]
    fn every_day() {
        let table = parse("08:00,512K 18:00,10M;23:00,off").unwrap();
        for day in 0..7 {
            for (hours, minutes, per_s) in [
                (0, 0, UNLIMITED),
                (7, 59, UNLIMITED),
                (8, 0, 512 * K),
                (17, 59, 512 * K),
                (18, 0, 10 * M),
                (22, 59, 10 * M),
                (23, 0, UNLIMITED),
                (23, 59, UNLIMITED),
            ] {
                assert_eq!(
                    table.per_s_at(at(day, hours, minutes)),
                    per_s,
                    "{day} {hours}:{minutes}"
                );
            }
        }
    }

    #[test]
    fn days_of_the_week() {
        let table = parse("Mon-00:00,512 fri-23:59,10M Saturday-10:00,1M Sun-20:00,off").unwrap();
        for (minute, per_s) in [
            (at(0, 0, 0), M),
            (at(0, 19, 59), M),
            (at(0, 20, 0), UNLIMITED),
            (at(1, 0, 0), 512 * K),
            (at(5, 23, 58), 512 * K),
            (at(5, 23, 59), 10 * M),
            (at(6, 10, 0), M),
            (at(6, 23, 59), M),
        ] {
            assert_eq!(table.per_s_at(minute), per_s, "{minute}");
        }
    }

    #[test]
    fn the_last_of_two_counts() {
        let table = parse("08:00,1M Tue-08:00,2M").unwrap();
        assert_eq!(table.per_s_at(at(1, 8, 0)), M);
        assert_eq!(table.per_s_at(at(2, 8, 0)), 2 * M);
        assert_eq!(table.per_s_at(at(3, 8, 0)), M);
    }

    #[test]
    fn refused() {
        for (text, why) in [
            ("", "no time"),
            (" ; ", "no time"),
            ("08:00", "[DAY-]HH:MM,RATE"),
            ("8:00,1M", "no time of day"),
            ("24:00,1M", "no time of day"),
            ("08:60,1M", "no time of day"),
            ("+8:00,1M", "no time of day"),
            ("0800,1M", "no time of day"),
            ("Mo-08:00,1M", "no day"),
            ("Mon-Tue-08:00,1M", "no day"),
            ("08:00,", "''"),
            ("08:00,x", "'x'"),
            ("08:00,1b", "too small"),
            ("08:00,10M:1M", "UPLOAD:DOWNLOAD"),
            ("08:00,1M,2M", "'1M,2M'"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }

    #[test]
    fn workers_share() {
        let schedule = Schedule::new(parse("08:00,1M 18:00,off").unwrap()).divided(4);
        assert_eq!(schedule.per_s_at(at(3, 9, 0)), 256 * K);
        assert_eq!(schedule.per_s_at(at(3, 19, 0)), UNLIMITED);
        assert_eq!(schedule.divided(u64::MAX).per_s_at(at(3, 9, 0)), 1);
    }

    proptest! {
        /// The rate is that of the last slot that began, also around midnight and the end of the week.
        #[test]
        fn the_latest_slot_applies(
            slots in proptest::collection::vec((0..7u16, 0..24u16, 0..60u16, 1..1000u64), 1..20),
            minute in 0..WEEK,
        ) {
            let text: Vec<String> = slots
                .iter()
                .map(|(day, h, m, k)| format!("{}-{h:02}:{m:02},{k}", &DAYS[usize::from(*day)][..3]))
                .collect();
            let table = parse(&(text.join(" ") + " ")).unwrap();
            let age = |slot: &(u16, u16, u16, u64)| {
                (WEEK + minute - at(slot.0, slot.1, slot.2)) % WEEK
            };
            let latest = slots.iter().rev().min_by_key(|slot| age(slot)).unwrap();
            prop_assert_eq!(table.per_s_at(minute), latest.3 * K);
        }

        #[test]
        fn no_text_panics(text: String, minute: u16) {
            if let Ok(table) = parse(&text) {
                prop_assert!(table.per_s_at(minute) > 0);
            }
        }
    }
}
