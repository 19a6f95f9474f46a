//! Granularity of the times that a file system keeps, and equality of times.

use hakobu_core::unit::Time;

const S: u64 = 1_000_000_000;

/// Granularities of file systems, in nanoseconds: most; NTFS and CIFS; UDF; several network file systems; exFAT; ext3
/// and 128-byte inodes of ext4; FAT.
const UNITS_NS: [u64; 7] = [1, 100, 1_000, 1_000_000, 10_000_000, S, 2 * S];

/// Granularity of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grain {
    unit_ns: u64,
    /// Times are not truncated to units, but returned with an error of up to one unit.
    inexact: bool,
}

impl Grain {
    /// Every nanosecond is kept.
    pub const NS: Grain = Grain { unit_ns: 1, inexact: false };
    /// Whole seconds.
    pub const S: Grain = Grain { unit_ns: S, inexact: false };
    /// Even seconds (FAT).
    pub const TWO_S: Grain = Grain { unit_ns: 2 * S, inexact: false };

    /// Times that distinguish granularities when they are set and read back: an odd and an even second, and all
    /// digits of a fraction.
    pub const PROBES: [Time; 3] = [
        Time { s: 1_000_000_001, ns: 999_999_999 },
        Time { s: 1_234_567_891, ns: 123_456_789 },
        Time { s: 1_600_000_000, ns: 500_000_001 },
    ];

    /// Returns the granularity shown by times that were set and read back; `None` if they are not kept at all.
    pub fn read_back(pairs: &[(Time, Time)]) -> Option<Grain> {
        let cut = |unit_ns| {
            let exact = Grain { unit_ns, inexact: false };
            pairs
                .iter()
                .all(|(set, got)| exact.cut(*set) == exact.cut(*got) && exact.is_whole(*got))
        };
        if let Some(unit_ns) = UNITS_NS.into_iter().find(|unit_ns| cut(*unit_ns)) {
            return Some(Grain { unit_ns, inexact: false });
        }
        let off_ns = pairs.iter().map(|(set, got)| apart_ns(*set, *got)).max()?;
        // Only a few times were tried, and others may differ by more. Floating-point numbers are an example.
        let enough = |unit_ns: &u64| *unit_ns >= 1_000 && *unit_ns > off_ns.saturating_mul(2);
        let coarsest = UNITS_NS.into_iter().next_back().filter(|unit_ns| *unit_ns > off_ns);
        let unit_ns = UNITS_NS.into_iter().find(enough).or(coarsest)?;
        Some(Grain { unit_ns, inexact: true })
    }

    /// Returns the granularity shown by the times of one file: only the file system sets the ctime, so its digits are
    /// those that are kept. Even seconds cannot be told from whole ones.
    pub fn shown_by(mtime: Time, ctime: Time) -> Grain {
        let whole = |unit_ns: &u64| {
            let grain = Grain { unit_ns: *unit_ns, inexact: false };
            *unit_ns <= S && grain.is_whole(mtime) && grain.is_whole(ctime)
        };
        let unit_ns = UNITS_NS.into_iter().rev().find(whole).unwrap_or(1);
        Grain { unit_ns, inexact: false }
    }

    /// Returns whether two times differ by so little that the granularity matters.
    pub fn matters(a: Time, b: Time) -> bool {
        a != b && apart_ns(a, b) < 2 * S
    }

    fn cut(self, time: Time) -> i128 {
        total_ns(time).div_euclid(self.unit_ns.into())
    }

    fn is_whole(self, time: Time) -> bool {
        total_ns(time).rem_euclid(self.unit_ns.into()) == 0
    }

    /// Returns whether two times agree at this granularity.
    pub fn agree(self, a: Time, b: Time) -> bool {
        match self.inexact {
            _ if a == b => true,
            true => apart_ns(a, b) <= self.unit_ns,
            false => self.cut(a) == self.cut(b),
        }
    }
}

fn total_ns(time: Time) -> i128 {
    i128::from(time.s) * i128::from(S) + i128::from(time.ns)
}

/// Saturates far above any granularity.
fn apart_ns(a: Time, b: Time) -> u64 {
    u64::try_from((total_ns(a) - total_ns(b)).unsigned_abs()).unwrap_or(u64::MAX)
}

/// Returns whether two times are the same: within `window_s` whole seconds, or to the nanosecond if the window is
/// negative (rsync(1), `--modify-window`); without a window at the coarser granularity of their two ends.
pub fn same_time(a: Time, b: Time, window_s: Option<i64>, grain: Grain) -> bool {
    match window_s {
        None => grain.agree(a, b),
        Some(window_s) if window_s < 0 => a == b,
        Some(window_s) => a.s.abs_diff(b.s) <= window_s as u64,
    }
}

/// Returns whether a target is newer than its source (`--update`); `None` if they have the same time.
///
/// With a window a target that is older by less than the window counts as newer, too, as in rsync.
pub fn is_newer(target: Time, source: Time, window_s: Option<i64>, grain: Grain) -> Option<bool> {
    match window_s {
        Some(window_s) if window_s > 0 => Some(source.s.saturating_sub(target.s) < window_s),
        _ if same_time(source, target, window_s, grain) => None,
        _ => Some(target > source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64, ns: u32) -> Time {
        Time { s, ns }
    }

    fn read_back(keep: impl Fn(Time) -> Time) -> Option<Grain> {
        Grain::read_back(&Grain::PROBES.map(|set| (set, keep(set))))
    }

    #[test]
    fn granularities_are_learnt_from_what_comes_back() {
        for unit_ns in UNITS_NS {
            let grain = Grain { unit_ns, inexact: false };
            let keep = |time: Time| {
                let ns = grain.cut(time) * i128::from(unit_ns);
                at((ns / i128::from(S)) as i64, (ns % i128::from(S)) as u32)
            };
            assert_eq!(read_back(keep), Some(grain));
        }
        // As a floating-point number of seconds.
        let float = |time: Time| {
            let s = time.s as f64 + f64::from(time.ns) / 1e9;
            at(s.trunc() as i64, (s.fract() * 1e9) as u32)
        };
        let grain = read_back(float).unwrap();
        assert!(grain.inexact && grain.unit_ns <= 1_000, "{grain:?}");
        let time = at(1_700_000_000, 987_654_321);
        assert!(
            grain.agree(time, float(time)) && !grain.agree(time, at(1_700_000_000, 987_900_000))
        );
        // Rounded up to even seconds.
        let up = |time: Time| at((time.s + i64::from(time.ns > 0) + 1) & !1, 0);
        assert!(read_back(up).is_some_and(|grain| grain.agree(time, up(time))));
        // Not kept.
        assert_eq!(read_back(|_| at(1_790_000_000, 5)), None);
    }

    #[test]
    fn one_file_shows_the_granularity_of_its_file_system() {
        for (mtime, ctime, unit_ns) in [
            (at(10, 0), at(11, 123_456_789), 1),
            (at(10, 5), at(11, 0), 1),
            (at(10, 300), at(11, 123_456_700), 100),
            (at(10, 0), at(11, 0), S),
            (at(10, 500_000_000), at(12, 120_000_000), 10_000_000),
        ] {
            assert_eq!(Grain::shown_by(mtime, ctime).unit_ns, unit_ns, "{mtime:?} {ctime:?}");
        }
    }

    #[test]
    fn times_agree_at_a_granularity() {
        for (grain, a, b, same) in [
            (Grain::NS, at(10, 1), at(10, 2), false),
            (Grain::S, at(10, 1), at(10, 999_999_999), true),
            (Grain::S, at(10, 999_999_999), at(11, 0), false),
            (Grain::TWO_S, at(10, 0), at(11, 999_999_999), true),
            (Grain::TWO_S, at(11, 0), at(12, 0), false),
            (Grain::S, at(-1, 500_000_000), at(-1, 0), true),
            (Grain::S, at(i64::MAX, 0), at(i64::MIN, 0), false),
        ] {
            assert_eq!(same_time(a, b, None, grain), same, "{grain:?} {a:?} {b:?}");
            assert_eq!(same_time(b, a, None, grain), same, "{grain:?} {a:?} {b:?}");
            if same {
                assert!(Grain::matters(a, b));
            }
        }
        assert!(!Grain::matters(at(10, 0), at(12, 0)) && !Grain::matters(at(10, 0), at(10, 0)));
    }

    /// Targets newer by this many seconds, and whether rsync 3.2.7 keeps them with -u.
    #[test]
    fn newer_targets_with_a_window() {
        for (window_s, kept) in [(0, 1..=3), (1, 0..=3), (2, -1..=3)] {
            for newer_s in -3..=3 {
                let newer = is_newer(at(100 + newer_s, 0), at(100, 0), Some(window_s), Grain::NS);
                assert_eq!(newer == Some(true), kept.contains(&newer_s), "{window_s} {newer_s}");
            }
        }
        assert_eq!(is_newer(at(100, 6), at(100, 5), Some(-1), Grain::S), Some(true));
        assert_eq!(is_newer(at(100, 6), at(100, 5), None, Grain::S), None);
        assert_eq!(is_newer(at(100, 6), at(100, 5), None, Grain::NS), Some(true));
    }
}
