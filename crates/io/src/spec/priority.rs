//! I/O priorities (`prio`, `prioclass`, `cmdprio_…`).

use super::units::{self, Base};
use crate::job::{Ioprio, Job, PriorityShare};

/// Priorities while options are read: those of blocks for reads and writes.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// `prioclass` and `prio` of the thread.
    pub own: (Option<u8>, Option<u8>),
    /// `cmdprio_percentage`.
    pub percent: [Option<u8>; 2],
    /// `cmdprio_class` and `cmdprio`.
    pub class: [Option<u8>; 2],
    pub level: [Option<u8>; 2],
    /// `cmdprio_bssplit`.
    pub split: [Vec<Part>; 2],
}

/// Part of `cmdprio_bssplit`: a size, a share, and class, level and hint where they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    bytes: u64,
    percent: u8,
    own: Option<Ioprio>,
}

/// Realtime: the class of blocks without `cmdprio_class`, as in fio.
const CLASS: u8 = 1;
/// Best-effort: the class of a thread that has only a level.
const CLASS_OF_THREAD: u8 = 2;
/// The most parts of a list.
const PARTS_MAX: usize = 256;
/// The largest hint that the kernel has room for.
const HINT_MAX: u16 = 1023;

/// A class.
pub fn class(text: &str) -> Result<u8, String> {
    digit(text, 3).ok_or_else(|| {
        "is not a class: 0 (none), 1 (realtime), 2 (best-effort), 3 (idle)".to_owned()
    })
}

/// A level.
pub fn level(text: &str) -> Result<u8, String> {
    digit(text, 7).ok_or_else(|| "is not a level from 0, the highest, to 7".to_owned())
}

fn digit(text: &str, most: u8) -> Option<u8> {
    text.trim().parse::<u8>().ok().filter(|digit| *digit <= most)
}

/// `cmdprio_bssplit`: `64k/25/1/1:64k/75`, for reads and writes apart with a comma.
pub fn split(text: &str, base: Base) -> Result<[Vec<Part>; 2], String> {
    let sides: Vec<&str> = text.split(',').collect();
    if sides.len() > 3 {
        return Err("has more than three lists (reads, writes, trims)".to_owned());
    }
    let of = |at: usize| parts(sides.get(at).or(sides.first()).copied().unwrap_or(""), base);
    Ok([of(0)?, of(1)?])
}

fn parts(text: &str, base: Base) -> Result<Vec<Part>, String> {
    let mut found: Vec<Part> = Vec::new();
    for one in text.split(':').map(str::trim).filter(|one| !one.is_empty()) {
        let fields: Vec<&str> = one.split('/').map(str::trim).collect();
        let own = match fields.get(2..) {
            None | Some([]) => None,
            Some([class_of, level_of]) => {
                Some(Ioprio { class: class(class_of)?, level: level(level_of)?, hint: 0 })
            }
            Some([class_of, level_of, hint]) => {
                let hint = hint.parse::<u16>().ok().filter(|hint| *hint <= HINT_MAX);
                let hint =
                    hint.ok_or_else(|| format!("'{one}' has no hint from 0 to {HINT_MAX}"))?;
                Some(Ioprio { class: class(class_of)?, level: level(level_of)?, hint })
            }
            Some(_) => {
                return Err(format!(
                    "'{one}' is not SIZE/PERCENT, SIZE/PERCENT/CLASS/LEVEL or .../HINT"
                ));
            }
        };
        let size = units::size(fields.first().copied().unwrap_or(""), base)?;
        let percent = units::percent(fields.get(1).copied().unwrap_or("100"))?;
        found.push(Part { bytes: size, percent, own });
    }
    let sum = |bytes: u64| -> u32 {
        found.iter().filter(|part| part.bytes == bytes).map(|part| u32::from(part.percent)).sum()
    };
    match found.iter().find(|part| sum(part.bytes) > 100) {
        Some(part) => {
            Err(format!("has more than 100 percent of the blocks of {} bytes", part.bytes))
        }
        None if found.len() > PARTS_MAX => Err(format!("has more than {PARTS_MAX} parts")),
        None => Ok(found),
    }
}

/// Puts the priorities into a job.
///
/// # Errors
/// Options that exclude each other.
pub fn finish(wanted: &Wanted, job: &mut Job) -> Result<(), String> {
    let own = match wanted.own {
        (None, None) => None,
        (class, level) => {
            let class = class.unwrap_or(CLASS_OF_THREAD);
            Some(Ioprio { class, level: level.unwrap_or(0), hint: 0 })
        }
    };
    // The kernel knows no levels of these.
    if own.is_some_and(|own| own.class == 0 && own.level > 0) {
        return Err("prio is a level of prioclass=1 (realtime) or 2 (best-effort)".to_owned());
    }
    job.priorities.own = own;
    let shares = |percent: &Option<u8>| percent.is_some_and(|percent| percent > 0);
    let splits = wanted.split.iter().any(|parts| !parts.is_empty());
    if wanted.percent.iter().any(shares) && splits {
        return Err("cmdprio_percentage and cmdprio_bssplit exclude each other".to_owned());
    }
    for side in 0..2 {
        let class = wanted.class[side].unwrap_or(CLASS);
        let usual = Ioprio { class, level: wanted.level[side].unwrap_or(0), hint: 0 };
        let of_split = wanted.split[side].iter().map(|part| PriorityShare {
            block_bytes: Some(part.bytes),
            percent: part.percent,
            priority: part.own.unwrap_or(usual),
        });
        let of_all = wanted.percent[side].map(|percent| PriorityShare {
            block_bytes: None,
            percent,
            priority: usual,
        });
        let all = of_split.chain(of_all).filter(|share| share.percent > 0);
        job.priorities.blocks[side] = all.collect();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_have_sizes_shares_and_priorities() {
        let [reads, writes] =
            split("64k/25/1/1:64k/75/3/2:1m/10/2/0/3,8k/0", Base::Binary).unwrap();
        let part = |bytes, percent, class, level, hint| Part {
            bytes,
            percent,
            own: Some(Ioprio { class, level, hint }),
        };
        let expected =
            [part(65536, 25, 1, 1, 0), part(65536, 75, 3, 2, 0), part(1 << 20, 10, 2, 0, 3)];
        assert_eq!(reads, expected);
        assert_eq!(writes, [Part { bytes: 8192, percent: 0, own: None }]);
        for wrong in
            ["4k/60:4k/50", "4k/10/4/0", "4k/10/1", "4k/10/1/8", "4k/10/1/1/2000", "x", "4k/101"]
        {
            assert!(split(wrong, Base::Binary).is_err(), "{wrong}");
        }
    }
}
