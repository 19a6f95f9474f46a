//! A job while its options are read: fio's defaults, and the values that depend on each other and are
//! resolved at the end.

use super::super::job::{Aim, ExitWhat, Job, Rw, Sizes, Sync, VerifyKind};
use super::priority;
use super::units::{self, Bare, Base};
use crate::steady::{Criterion, Measure};
use std::cmp::Ordering;
use std::time::Duration;

defaulted! {
    /// A job with defaults, and its unresolved values.
    #[derive(Clone, Debug)]
    pub struct Draft {
        /// The values that stand by themselves.
        pub job: Job,
        /// Bytes of `k`.
        pub base: Base,
        /// `bsrange`, and `bssplit`, which goes before it and before `bs`.
        pub range: [Option<Sizes>; 2],
        pub split: [Option<Sizes>; 2],
        /// The part after the colon of `rw`.
        pub step: Option<String>,
        /// `steadystate`, its duration, its ramp time, and the time between two looks.
        pub steady: (Option<Criterion>, u32, u32, u32) = (None, 0, 0, 1),
        /// `io_size` as percent of `size`.
        pub io_percent: Option<u8>,
        /// `iodepth_batch_submit`; 0 is as many as `iodepth`.
        pub batch_submit: u32 = 1,
        /// `iodepth_batch_complete_max`, if given.
        pub batch_complete_max: Option<u32>,
        /// `iodepth_low`, if given.
        pub depth_low: Option<u32>,
        /// `exitall`, and `exit_what`.
        pub exit: (bool, ExitWhat) = (false, ExitWhat::Group),
        /// `flow`, and its id and its sleep.
        pub flow: (Option<u32>, u32, Duration),
        /// `latency_target`, and what belongs to it.
        pub aim: (Option<Duration>, Aim) = (None, AIM),
        /// `zonemode=strided`, and `zonesize`, `zonerange`, `zoneskip`.
        pub strided: bool,
        pub zone_bytes: [u64; 3],
        /// `dedupe_percentage`, and what belongs to it: mode and set.
        pub dedupe: (u8, bool, Option<u8>, bool),
        /// `openfiles`.
        pub open_files: Option<u32>,
        /// I/O priorities.
        pub priorities: priority::Wanted,
        /// Notes about options without effect, each with the reason.
        pub notes: Vec<String>,
        /// First names of the options that were given, for the notes.
        pub given: Vec<&'static str>,
    }
}

/// Checksums that fio has and we do not.
const CHECKSUMS: &[&str] =
    &["crc16", "crc7", "sha1", "sha3-224", "sha3-256", "sha3-384", "sha3-512", "null"];

/// Defaults of the options that belong to `latency_target`.
const AIM: Aim =
    Aim { latency: Duration::ZERO, window: Duration::ZERO, percentile: 100.0, goes_on: false };

/// `rw`: how, whether its writes are trims, and what stands after its colon.
pub fn rw(text: &str) -> Result<(Rw, bool, Option<String>), String> {
    let (name, step) = text.split_once(':').map_or((text, None), |(name, by)| (name, Some(by)));
    if let Some((_, rw, trims)) = Rw::NAMES.iter().find(|(known, ..)| *known == name) {
        return Ok((*rw, *trims, step.map(str::to_owned)));
    }
    Err(match name {
        "trimwrite" | "randtrimwrite" => {
            "trims together with writes are fio's and not supported here (trim and randtrim are)"
        }
        _ => "is none of read, write, randread, randwrite, rw, randrw, trim, randtrim",
    }
    .to_owned())
}

/// The step after each block of a sequence: a size with perhaps a minus before it.
pub fn skip(text: &str, base: Base) -> Result<i64, String> {
    let (turn, size) = match text.strip_prefix('-') {
        Some(size) => (-1, size),
        None => (1, text),
    };
    let bytes = units::size(size, base).ok().and_then(|bytes| i64::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| format!("the step '{text}' is not a size"))?;
    Ok(turn * bytes)
}

/// A block that can be.
pub fn block(text: &str, base: Base) -> Result<u64, String> {
    match units::size(text, base)? {
        0 => Err("must be at least 1".to_owned()),
        bytes if bytes > 1 << 31 => Err("is too large".to_owned()),
        bytes => Ok(bytes),
    }
}

/// `bsrange`: `4k-16k`, for reads and writes apart with a comma.
pub fn ranges(text: &str, base: Base) -> Result<[Option<Sizes>; 2], String> {
    both(text, |one| {
        let (least, largest) = one.split_once(['-', ':']).ok_or("is not a range such as 4k-16k")?;
        let (least, largest) = (block(least.trim(), base)?, block(largest.trim(), base)?);
        let (least, largest) = (least.min(largest), least.max(largest));
        match largest % least {
            0 => Ok(Sizes::Range { least, largest }),
            _ => Err(format!("{largest} is not a multiple of {least}")),
        }
    })
}

/// `bssplit`: `4k/10:64k/50:32k/`, for reads and writes apart with a comma. What has no percentage
/// shares what the others leave.
pub fn splits(text: &str, base: Base) -> Result<[Option<Sizes>; 2], String> {
    both(text, |one| {
        let mut shares: Vec<(u64, Option<u8>)> = Vec::new();
        for part in one.split(':') {
            let (bytes, percent) = part.split_once('/').unwrap_or((part, ""));
            let percent = match percent.trim() {
                "" => None,
                percent => Some(units::percent(percent)?),
            };
            shares.push((block(bytes.trim(), base)?, percent));
        }
        let said: u32 = shares.iter().filter_map(|(_, percent)| *percent).map(u32::from).sum();
        let open = shares.iter().filter(|(_, percent)| percent.is_none()).count() as u32;
        let left = 100u32.checked_sub(said).ok_or("the percentages are more than 100 together")?;
        if open == 0 && left > 0 {
            return Err(format!("the percentages are {said} together, not 100"));
        }
        let mut last = open;
        let mut share = |percent: Option<u8>| {
            percent.unwrap_or_else(|| {
                last -= 1;
                // The remainder goes to the last one.
                let even = left / open.max(1);
                (if last == 0 { left - even * (open - 1) } else { even }) as u8
            })
        };
        Ok(Sizes::Split(shares.into_iter().map(|(bytes, of)| (bytes, share(of))).collect()))
    })
}

/// For reads and for writes, which a comma separates; one is for both.
fn both(
    text: &str,
    each: impl Fn(&str) -> Result<Sizes, String>,
) -> Result<[Option<Sizes>; 2], String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let side = |at: usize| match parts.get(at) {
        None | Some(&"") => Ok(None),
        Some(part) => each(part).map(Some),
    };
    match parts.len() {
        1 => {
            let one = Some(each(text)?);
            Ok([one.clone(), one])
        }
        2 | 3 => Ok([side(0)?, side(1)?]),
        _ => Err("has more than three values (reads, writes, trims)".to_owned()),
    }
}

/// `sync`.
pub fn sync(text: &str) -> Result<Sync, String> {
    match text {
        "0" | "none" => Ok(Sync::None),
        "1" | "sync" => Ok(Sync::All),
        "dsync" => Ok(Sync::Data),
        _ => Err("is none of none (0), sync (1), dsync".to_owned()),
    }
}

/// `fallocate`: whether blocks of files are reserved.
pub fn reserve(text: &str) -> Result<bool, String> {
    match text {
        "native" | "posix" | "keep" | "1" => Ok(true),
        "none" | "truncate" | "0" => Ok(false),
        _ => Err("is none of none (0), native, posix (1), keep, truncate".to_owned()),
    }
}

/// `steadystate`: `iops:2%`, `bw_slope:0.1%`.
pub fn steady(text: &str, base: Base) -> Result<Criterion, String> {
    let (what, limit) = text.split_once(':').ok_or("is not a criterion such as iops:2%")?;
    let (name, slope) = what.strip_suffix("_slope").map_or((what, false), |name| (name, true));
    let of = match name {
        "iops" => Measure::Blocks,
        "bw" => Measure::Bytes,
        "lat" => Measure::Latency,
        _ => return Err("is none of iops, bw, lat, iops_slope, bw_slope, lat_slope".to_owned()),
    };
    let bytes = of == Measure::Bytes;
    let (number, percent) = match limit.strip_suffix('%') {
        Some(number) => (number.trim().parse::<f64>().ok(), true),
        None if bytes => (units::size(limit, base).ok().map(|bytes| bytes as f64), false),
        None => (limit.trim().parse::<f64>().ok(), false),
    };
    let limit = number.filter(|limit| limit.is_finite() && *limit > 0.0);
    let limit = limit.ok_or("needs a limit above 0")?;
    Ok(Criterion { of, slope, limit, percent })
}

/// Whole seconds.
pub fn seconds(text: &str) -> Result<u32, String> {
    let seconds = time(text, Bare::Seconds)?.as_secs_f64().ceil();
    Ok(seconds.min(f64::from(u32::MAX)) as u32)
}

/// A value, or a range of values, `A-B` or `A:B`: the least, and the most if that is another.
pub fn range<T: Ord>(
    text: &str,
    each: impl Fn(&str) -> Result<T, String>,
) -> Result<(T, Option<T>), String> {
    let Some((least, most)) = text.split_once(['-', ':']) else { return Ok((each(text)?, None)) };
    let (least, most) = (each(least)?, each(most)?);
    match least.cmp(&most) {
        Ordering::Less => Ok((least, Some(most))),
        Ordering::Equal => Ok((least, None)),
        Ordering::Greater => Err("the range ends before it begins".to_owned()),
    }
}

/// `verify`.
pub fn verify(text: &str) -> Result<Option<VerifyKind>, String> {
    Ok(match text {
        "0" => None,
        "crc32" => Some(VerifyKind::Crc32),
        "crc32c" | "crc32c-intel" => Some(VerifyKind::Crc32c),
        "crc64" => Some(VerifyKind::Crc64),
        "md5" => Some(VerifyKind::Md5),
        "sha256" => Some(VerifyKind::Sha256),
        "sha512" => Some(VerifyKind::Sha512),
        "xxhash" => Some(VerifyKind::Xxhash),
        "meta" => Some(VerifyKind::Meta),
        "pattern" => Some(VerifyKind::Pattern),
        _ => {
            let ours = "crc32, crc32c, crc64, md5, sha256, sha512, xxhash, meta, pattern are";
            return Err(if CHECKSUMS.contains(&text) {
                format!("a checksum of fio's that is not supported here ({ours})")
            } else {
                format!("no such checksum ({ours} supported)")
            });
        }
    })
}

/// A time, as the duration it is.
pub fn time(text: &str, bare: Bare) -> Result<Duration, String> {
    units::time_us(text, bare).map(Duration::from_micros)
}
