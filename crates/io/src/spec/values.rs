//! Values of single options: directions, sizes, distributions, patterns, priorities, lists of errors and of nodes. Each
//! function takes the text of a value, and the error goes on after `OPTION=VALUE: `.

use super::options::find;
use super::refused::{self, CHECKSUMS, FIOS_ALONE};
use super::units::{self, BareTime, UnitBase};
use super::{Axis, Format, lists};
use crate::job::{
    BlockSizes, Distribution, EngineKind, Ioprio, NumaNodes, Rw, Share, Sync, VerifyKind,
};
use crate::steady::{SteadyCriterion, SteadyMetric};
use hakobu_sys::errno;
use hakobu_sys::memory::MemoryPolicy;
use std::cmp::Ordering;
use std::time::Duration;

/// `rw`: how, whether its writes are trims, and what stands after its colon.
pub fn rw(text: &str) -> Result<(Rw, bool, Option<String>), String> {
    let (name, step) = text.split_once(':').map_or((text, None), |(name, by)| (name, Some(by)));
    if let Some((_, rw, trims)) = Rw::NAMES.iter().find(|(known, ..)| *known == name) {
        return Ok((*rw, *trims, step.map(str::to_owned)));
    }
    Err(match name {
        "trimwrite" | "randtrimwrite" => {
            format!("{FIOS_ALONE} (trim and randtrim are)")
        }
        _ => "none of read, write, randread, randwrite, rw, randrw, trim, randtrim".to_owned(),
    })
}

/// The step after each block of a sequence: a size with perhaps a minus before it.
pub fn skip(text: &str, base: UnitBase) -> Result<i64, String> {
    let (turn, size) = match text.strip_prefix('-') {
        Some(size) => (-1, size),
        None => (1, text),
    };
    let bytes = units::size(size, base).ok().and_then(|bytes| i64::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| format!("the step '{text}' is not a size"))?;
    Ok(turn * bytes)
}

pub fn block(text: &str, base: UnitBase) -> Result<u64, String> {
    match units::size(text, base)? {
        0 => Err("must be at least 1".to_owned()),
        bytes if bytes > 1 << 31 => Err("is too large".to_owned()),
        bytes => Ok(bytes),
    }
}

/// `bsrange`: `4k-16k`, for reads and writes apart with a comma.
pub fn ranges(text: &str, base: UnitBase) -> Result<[Option<BlockSizes>; 2], String> {
    both(text, |one| {
        let (least, largest) = one.split_once(['-', ':']).ok_or("not a range such as 4k-16k")?;
        let (least, largest) = (block(least.trim(), base)?, block(largest.trim(), base)?);
        let (least, largest) = (least.min(largest), least.max(largest));
        match largest % least {
            0 => Ok(BlockSizes::Range { least, largest }),
            _ => Err(format!("{largest} is not a multiple of {least}")),
        }
    })
}

/// `bssplit`: `4k/10:64k/50:32k/`, for reads and writes apart with a comma. What has no percentage
/// shares what the others leave.
pub fn splits(text: &str, base: UnitBase) -> Result<[Option<BlockSizes>; 2], String> {
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
        Ok(BlockSizes::Split(shares.into_iter().map(|(bytes, of)| (bytes, share(of))).collect()))
    })
}

/// For reads and for writes, which a comma separates; one is for both.
fn both(
    text: &str,
    each: impl Fn(&str) -> Result<BlockSizes, String>,
) -> Result<[Option<BlockSizes>; 2], String> {
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

/// `filename_format`: the usual one is none.
pub fn name_format(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() || text.contains("$clientuid") {
        return Err("knows $jobname, $jobnum and $filenum".to_owned());
    }
    Ok((text != "$jobname.$jobnum.$filenum").then(|| text.to_owned()))
}

/// `sync`.
pub fn sync(text: &str) -> Result<Sync, String> {
    match text {
        "0" | "none" => Ok(Sync::None),
        "1" | "sync" => Ok(Sync::All),
        "dsync" => Ok(Sync::Data),
        _ => Err("none of none (0), sync (1), dsync".to_owned()),
    }
}

/// `fallocate`: whether blocks of files are reserved.
pub fn reserve(text: &str) -> Result<bool, String> {
    match text {
        "native" | "posix" | "keep" | "1" => Ok(true),
        "none" | "truncate" | "0" => Ok(false),
        _ => Err("none of none (0), native, posix (1), keep, truncate".to_owned()),
    }
}

/// `steadystate`: `iops:2%`, `bw_slope:0.1%`.
pub fn steady(text: &str, base: UnitBase) -> Result<SteadyCriterion, String> {
    let (what, limit) = text.split_once(':').ok_or("not a criterion such as iops:2%")?;
    let (name, slope) = what.strip_suffix("_slope").map_or((what, false), |name| (name, true));
    let of = match name {
        "iops" => SteadyMetric::Blocks,
        "bw" => SteadyMetric::Bytes,
        "lat" => SteadyMetric::Latency,
        _ => return Err("none of iops, bw, lat, iops_slope, bw_slope, lat_slope".to_owned()),
    };
    let bytes = of == SteadyMetric::Bytes;
    let (number, percent) = match limit.strip_suffix('%') {
        Some(number) => (number.trim().parse::<f64>().ok(), true),
        None if bytes => (units::size(limit, base).ok().map(|bytes| bytes as f64), false),
        None => (limit.trim().parse::<f64>().ok(), false),
    };
    let limit = number.filter(|limit| limit.is_finite() && *limit > 0.0);
    let limit = limit.ok_or("needs a limit above 0")?;
    Ok(SteadyCriterion { of, slope, limit, percent })
}

/// Whole seconds.
pub fn seconds(text: &str) -> Result<u32, String> {
    let seconds = time(text, BareTime::Seconds)?.as_secs_f64().ceil();
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
                format!("{FIOS_ALONE} ({ours})")
            } else {
                format!("no such checksum ({ours} supported)")
            });
        }
    })
}

pub fn time(text: &str, bare: BareTime) -> Result<Duration, String> {
    units::time_us(text, bare).map(Duration::from_micros)
}

/// `ioengine`.
pub fn engine(text: &str) -> Result<EngineKind, String> {
    let known = EngineKind::NAMES.iter().find(|(name, _)| *name == text);
    known.map(|(_, engine)| *engine).ok_or_else(|| refused::engine(text))
}

/// Zipf's theta without a value, as in fio.
const THETA: f64 = 1.1;

/// The most entries of a list of zones or of a sequence.
const ENTRIES_MAX: usize = 256;

/// A distribution, with its shares for reads and for writes, or its sequence of blocks.
pub type ParsedDistribution = (Distribution, [Vec<Share>; 2], Vec<u64>);

/// `random_distribution`.
pub fn distribution(text: &str) -> Result<ParsedDistribution, String> {
    let (name, value) = text.split_once(':').map_or((text, None), |(name, v)| (name, Some(v)));
    let plain = |distribution| Ok((distribution, [Vec::new(), Vec::new()], Vec::new()));
    match (name, value) {
        ("random", None) => plain(Distribution::Uniform),
        ("zipf", None) => plain(Distribution::Zipf(THETA)),
        ("zipf", Some(theta)) => {
            if theta.contains([':', ',']) {
                return Err(format!("a centre, and another theta for each side, are {FIOS_ALONE}"));
            }
            let theta = theta.parse::<f64>().ok().filter(|theta| theta.is_finite());
            let theta = theta.filter(|theta| *theta > 0.0 && *theta != 1.0);
            let wrong = "theta must be a number above 0 other than 1";
            theta.map_or(Err(wrong.to_owned()), |theta| plain(Distribution::Zipf(theta)))
        }
        ("zoned", Some(list)) => {
            let sides: Vec<&str> = list.split(',').collect();
            let of = |at: usize| shares(sides.get(at).or(sides.first()).copied().unwrap_or(""));
            if sides.len() > 3 {
                return Err("has more than three lists (reads, writes, trims)".to_owned());
            }
            Ok((Distribution::Zoned, [of(0)?, of(1)?], Vec::new()))
        }
        ("sequence", Some(list)) => {
            let blocks = list.split(',').map(|one| one.trim().parse::<u64>());
            let blocks: Vec<u64> = blocks
                .collect::<Result<_, _>>()
                .map_err(|_| "a sequence is numbers of blocks, such as 2,0,1".to_owned())?;
            if blocks.is_empty() || blocks.len() > ENTRIES_MAX {
                return Err(format!("has no block, or more than {ENTRIES_MAX}"));
            }
            Ok((Distribution::Sequence, [Vec::new(), Vec::new()], blocks))
        }
        ("pareto" | "normal" | "gauss" | "zoned_abs", _) => Err(format!(
            "{FIOS_ALONE} (random, zipf:THETA, zoned:ACCESS/SIZE:... and sequence:N,N,... are)"
        )),
        _ => Err("none of random, zipf:THETA, zoned:ACCESS/SIZE:..., sequence:N,N,...".to_owned()),
    }
}

/// `50/5:30/15:20/80`: percent of the operations, and of the file; a missing size has the rest, and a
/// missing end of the list what is left of both.
fn shares(text: &str) -> Result<Vec<Share>, String> {
    let number = |text: &str| {
        let number = text.trim().parse::<f64>().ok();
        number.filter(|percent| (0.0..=100.0).contains(percent))
    };
    let mut found: Vec<(f64, Option<f64>)> = Vec::new();
    for part in text.split(':') {
        let (access, size) = part.split_once('/').unwrap_or((part, ""));
        let wrong = || format!("'{part}' is not a share such as 60/10");
        let access = number(access).ok_or_else(wrong)?;
        let size = match size.trim() {
            "" => None,
            size => Some(number(size).ok_or_else(wrong)?),
        };
        found.push((access, size));
    }
    let sum = |of: fn(&(f64, Option<f64>)) -> f64| found.iter().map(of).sum::<f64>();
    let (access, size) = (sum(|share| share.0), sum(|share| share.1.unwrap_or(0.0)));
    let open = found.iter().filter(|share| share.1.is_none()).count();
    if access > 100.0 || size > 100.0 {
        return Err("the shares are more than 100 percent together".to_owned());
    }
    if open == 0 && access < 100.0 && size < 100.0 {
        found.push((100.0 - access, Some(100.0 - size)));
    }
    let rest = (100.0 - size) / open.max(1) as f64;
    let mut shares: Vec<Share> = Vec::new();
    for (access_percent, size) in found {
        let size_percent = size.unwrap_or(rest);
        if access_percent > 0.0 && size_percent <= 0.0 {
            return Err("a share of the operations goes to no part of the file".to_owned());
        }
        shares.push(Share { access_percent, size_percent });
    }
    let access: f64 = shares.iter().map(|share| share.access_percent).sum();
    if shares.len() > ENTRIES_MAX || (access - 100.0).abs() > 0.01 {
        return Err(format!("the shares of the operations are {access} percent together, not 100"));
    }
    Ok(shares)
}

/// The longest pattern, bytes.
const PATTERN_MAX: usize = 512;

/// `buffer_pattern`, `verify_pattern`: `0xHEX`, a decimal number, `"text"`, and several of them behind each other.
pub fn pattern(text: &str) -> Result<Vec<u8>, String> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        if rest.starts_with('%') {
            return Err(format!("formats such as %o are {FIOS_ALONE}"));
        }
        if rest.starts_with('\'') {
            return Err(format!("a file as the pattern is {FIOS_ALONE}"));
        }
        if let Some(words) = rest.strip_prefix('"') {
            let (words, after) = words.split_once('"').ok_or("a text that does not end with \"")?;
            bytes.extend_from_slice(words.as_bytes());
            rest = after;
            continue;
        }
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find(['"', '\'', '%', '-']).map_or(rest.len(), |at| at + first);
        let (number, after) = rest.split_at(end);
        bytes.extend(pattern_number(number)?);
        rest = after;
    }
    if bytes.is_empty() || bytes.len() > PATTERN_MAX {
        return Err(format!("a pattern has from 1 to {PATTERN_MAX} bytes"));
    }
    Ok(bytes)
}

/// Bytes of a number of a pattern: hexadecimal digits two by two as they stand, a decimal number as the kernel
/// has it in memory.
fn pattern_number(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("'{text}' is not a pattern (0xHEX, a number, \"text\")");
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let odd = digits.len() % 2;
        let padded = format!("{}{digits}", "0".repeat(odd));
        if digits.is_empty() || !padded.is_ascii() {
            return Err(wrong());
        }
        let pairs = (0..padded.len()).step_by(2).map(|at| padded.get(at..at + 2));
        let byte = |pair: Option<&str>| u8::from_str_radix(pair.unwrap_or("x"), 16).ok();
        return pairs.map(byte).collect::<Option<Vec<u8>>>().ok_or_else(wrong);
    }
    let number = text.parse::<i32>().map_err(|_| wrong())?;
    let all = number.to_le_bytes();
    // As many bytes as the number needs, as fio has them.
    let used = all.iter().rposition(|byte| *byte != 0).map_or(1, |at| at + 1);
    Ok(all.into_iter().take(used).collect())
}

/// `continue_on_error`: for reads, writes and checks.
pub fn goes_on(text: &str) -> Result<[bool; 3], String> {
    Ok(match text {
        "none" | "0" => [false; 3],
        "read" => [true, false, false],
        "write" => [false, true, false],
        "io" => [true, true, false],
        "verify" => [false, false, true],
        "all" | "1" => [true; 3],
        _ => return Err("none of none, read, write, io, verify, all".to_owned()),
    })
}

/// Names of errors that `ignore_error` may have.
const ERRORS: &[(&str, i32)] = &[
    ("EACCES", errno::EACCES),
    ("EAGAIN", errno::EAGAIN),
    ("EBADF", errno::EBADF),
    ("EBUSY", errno::EBUSY),
    ("EDQUOT", errno::EDQUOT),
    ("EEXIST", errno::EEXIST),
    ("EFBIG", errno::EFBIG),
    ("EILSEQ", errno::EILSEQ),
    ("EINVAL", errno::EINVAL),
    ("EIO", errno::EIO),
    ("ENOENT", errno::ENOENT),
    ("ENOMEM", errno::ENOMEM),
    ("ENOSPC", errno::ENOSPC),
    ("EOPNOTSUPP", errno::EOPNOTSUPP),
    ("EPERM", errno::EPERM),
    ("EROFS", errno::EROFS),
    ("ESTALE", errno::ESTALE),
];

/// `ignore_error`: lists of errors for reads, writes and checks, apart by commas.
pub fn ignored(text: &str) -> Result<[Vec<i32>; 3], String> {
    let lists: Vec<&str> = text.split(',').collect();
    if lists.len() > 3 {
        return Err("has more than three lists (reads, writes, checks)".to_owned());
    }
    let error = |name: &str| {
        let known = ERRORS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
        let number = || name.parse::<i32>().ok().filter(|number| *number > 0);
        known
            .or_else(number)
            .ok_or_else(|| format!("'{name}' is not an error such as ENOSPC or 28"))
    };
    let list = |at: usize| {
        let names = lists.get(at).copied().unwrap_or("").split(':').map(str::trim);
        names.filter(|name| !name.is_empty()).map(error).collect::<Result<Vec<i32>, String>>()
    };
    Ok([list(0)?, list(1)?, list(2)?])
}

/// `numa_mem_policy`: `bind:0`, `interleave:0-1`, `prefer:0`, `local`, `default`.
pub fn memory_policy(text: &str, nodes: &mut NumaNodes) -> Result<(), String> {
    let (name, list) = text.split_once(':').map_or((text, None), |(name, of)| (name, Some(of)));
    nodes.policy = match name {
        "default" => MemoryPolicy::Default,
        "local" => MemoryPolicy::Local,
        "bind" => MemoryPolicy::Bind,
        "interleave" => MemoryPolicy::Interleave,
        "prefer" => MemoryPolicy::Prefer,
        _ => return Err("none of default, local, prefer:N, bind:N, interleave:N".to_owned()),
    };
    let needs = !matches!(nodes.policy, MemoryPolicy::Default | MemoryPolicy::Local);
    nodes.memory = match list {
        Some(list) if needs => units::cpus(list)?,
        None if !needs => Vec::new(),
        Some(_) => return Err("takes no nodes".to_owned()),
        None => return Err("needs nodes, such as bind:0-1".to_owned()),
    };
    Ok(())
}

/// Part of `cmdprio_bssplit`: a size, a share, and class, level and hint where they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrioritySplit {
    pub bytes: u64,
    pub percent: u8,
    pub own: Option<Ioprio>,
}

/// The most parts of a list.
const PARTS_MAX: usize = 256;

/// The largest hint that the kernel has room for.
const HINT_MAX: u16 = 1023;

/// `prioclass`, `cmdprio_class`.
pub fn priority_class(text: &str) -> Result<u8, String> {
    digit(text, 3)
        .ok_or_else(|| "not a class: 0 (none), 1 (realtime), 2 (best-effort), 3 (idle)".to_owned())
}

/// `prio`, `cmdprio`.
pub fn priority_level(text: &str) -> Result<u8, String> {
    digit(text, 7).ok_or_else(|| "not a level from 0, the highest, to 7".to_owned())
}

fn digit(text: &str, most: u8) -> Option<u8> {
    text.trim().parse::<u8>().ok().filter(|digit| *digit <= most)
}

/// `cmdprio_bssplit`: `64k/25/1/1:64k/75`, for reads and writes apart with a comma.
pub fn priority_split(text: &str, base: UnitBase) -> Result<[Vec<PrioritySplit>; 2], String> {
    let sides: Vec<&str> = text.split(',').collect();
    if sides.len() > 3 {
        return Err("has more than three lists (reads, writes, trims)".to_owned());
    }
    let of =
        |at: usize| priority_parts(sides.get(at).or(sides.first()).copied().unwrap_or(""), base);
    Ok([of(0)?, of(1)?])
}

fn priority_parts(text: &str, base: UnitBase) -> Result<Vec<PrioritySplit>, String> {
    let mut found: Vec<PrioritySplit> = Vec::new();
    for one in text.split(':').map(str::trim).filter(|one| !one.is_empty()) {
        let fields: Vec<&str> = one.split('/').map(str::trim).collect();
        let own = match fields.get(2..) {
            None | Some([]) => None,
            Some([class_of, level_of]) => Some(Ioprio {
                class: priority_class(class_of)?,
                level: priority_level(level_of)?,
                hint: 0,
            }),
            Some([class_of, level_of, hint]) => {
                let hint = hint.parse::<u16>().ok().filter(|hint| *hint <= HINT_MAX);
                let hint =
                    hint.ok_or_else(|| format!("'{one}' has no hint from 0 to {HINT_MAX}"))?;
                Some(Ioprio {
                    class: priority_class(class_of)?,
                    level: priority_level(level_of)?,
                    hint,
                })
            }
            Some(_) => {
                return Err(format!(
                    "'{one}' is not SIZE/PERCENT, SIZE/PERCENT/CLASS/LEVEL or .../HINT"
                ));
            }
        };
        let size = units::size(fields.first().copied().unwrap_or(""), base)?;
        let percent = units::percent(fields.get(1).copied().unwrap_or("100"))?;
        found.push(PrioritySplit { bytes: size, percent, own });
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

/// Runs of each cell, at most.
const REPEAT_MAX: u32 = 10_000;

/// `repeat`.
pub fn repeat(text: &str) -> Result<u32, String> {
    match units::count(text, UnitBase::Binary, 1)? {
        times if times > REPEAT_MAX => Err(format!("is more than {REPEAT_MAX}")),
        times => Ok(times),
    }
}

/// `normal`, `json`, `json+`.
pub fn format(text: &str) -> Result<Format, String> {
    match text {
        "normal" => Ok(Format::Normal),
        "json" => Ok(Format::Json),
        "json+" => Ok(Format::JsonPlus),
        "terse" => Err(format!("{FIOS_ALONE} (normal, json and json+ are)")),
        _ if text.contains(',') => Err(format!("several formats at once are {FIOS_ALONE}")),
        _ => Err("none of normal, json, json+".to_owned()),
    }
}

/// `OPTION=VALUE,VALUE`.
pub fn axis(text: &str) -> Result<Axis, String> {
    let (option, values) = text.split_once('=').ok_or("not OPTION=VALUE,VALUE,...")?;
    let found = find(option.trim()).ok().filter(|found| !found.is_of_run());
    let known = found.ok_or_else(|| format!("{option} is not an option of jobs"))?;
    Ok(Axis { option: known.name.to_owned(), values: lists::values(values)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_bytes_as_they_stand() {
        for (text, expected) in [
            ("0xdeadface", &[0xde, 0xad, 0xfa, 0xce][..]),
            ("0x01", &[1]),
            ("0xfff", &[0x0f, 0xff]),
            ("\"abcd\"", b"abcd"),
            ("\"ab\"0xff\"c\"", b"ab\xffc"),
            ("-12", &[0xf4, 0xff, 0xff, 0xff]),
            ("1000", &[0xe8, 0x03]),
            ("0", &[0]),
            ("", &[]),
            ("\"abcd", &[]),
            ("0x", &[]),
            ("0xgg", &[]),
            ("%o", &[]),
            ("'file'", &[]),
            ("word", &[]),
        ] {
            assert_eq!(pattern(text).unwrap_or_default(), expected, "{text}");
        }
    }

    #[test]
    fn shares_are_whole() {
        let found = |text: &str| {
            let shares = shares(text).ok()?;
            Some(shares.iter().map(|of| (of.access_percent, of.size_percent)).collect::<Vec<_>>())
        };
        assert_eq!(found("60/10:40/90"), Some(vec![(60.0, 10.0), (40.0, 90.0)]));
        let rest = Some(vec![(50.0, 5.0), (30.0, 15.0), (20.0, 80.0)]);
        assert_eq!(found("50/5:30/15:20/"), rest);
        assert_eq!(found("50/5:30/15"), rest);
        for wrong in ["60/10:50/90", "60/60:40/60", "x/1", "50/", "60/10:30/90", "-1/100", ""] {
            assert_eq!(found(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn errors_have_names_and_numbers() {
        let expected = [vec![errno::EAGAIN], vec![errno::ENOSPC, 122], vec![]];
        assert_eq!(ignored("EAGAIN,ENOSPC:122"), Ok(expected));
        assert_eq!(ignored(",ENOSPC"), Ok([vec![], vec![errno::ENOSPC], vec![]]));
        assert!(ignored("ENOSUCH").is_err() && ignored("1,2,3,4").is_err());
    }

    #[test]
    fn splits_have_sizes_shares_and_priorities() {
        let [reads, writes] =
            priority_split("64k/25/1/1:64k/75/3/2:1m/10/2/0/3,8k/0", UnitBase::Binary).unwrap();
        let part = |bytes, percent, class, level, hint| PrioritySplit {
            bytes,
            percent,
            own: Some(Ioprio { class, level, hint }),
        };
        let expected =
            [part(65536, 25, 1, 1, 0), part(65536, 75, 3, 2, 0), part(1 << 20, 10, 2, 0, 3)];
        assert_eq!(reads, expected);
        assert_eq!(writes, [PrioritySplit { bytes: 8192, percent: 0, own: None }]);
        for wrong in
            ["4k/60:4k/50", "4k/10/4/0", "4k/10/1", "4k/10/1/8", "4k/10/1/1/2000", "x", "4k/101"]
        {
            assert!(priority_split(wrong, UnitBase::Binary).is_err(), "{wrong}");
        }
    }
}
