//! Values of single options: engines, distributions, patterns, lists of errors and of nodes. Each function
//! takes the text of a value, and the error goes on after `OPTION=VALUE: `.

use super::super::job::{Distribution, Engine, Nodes, Share};
use super::units;
use hakobu_sys::errno;
use hakobu_sys::memory::MemoryPolicy;

/// Engines of fio that move no blocks of files or block devices, with what measures those.
const NOT_BUILT_IN: &[(&str, &str)] = &[
    ("net", "fio has it"),
    ("netsplice", "fio has it"),
    ("nbd", "nbd-client(8) makes a block device of an export; fio has the engine"),
    ("http", "hakobu bench measures transfers with S3; fio has the engine"),
    ("exec", "hakobu bench measures commands; fio has the engine"),
    ("e4defrag", "e4defrag(8) defragments; fio has the engine"),
];

/// Engines that fio has and we do not.
const ENGINES: &[&str] = &[
    "vsync",
    "pvsync",
    "io_uring_cmd",
    "posixaio",
    "solarisaio",
    "windowsaio",
    "splice",
    "sg",
    "libzbc",
    "rdma",
    "libhipfile",
    "rados",
    "rbd",
    "gfapi",
    "gfapi_async",
    "libhdfs",
    "mtd",
    "pmemblk",
    "dev-dax",
    "external",
    "libpmem",
    "ime_psync",
    "ime_psyncv",
    "ime_aio",
    "libiscsi",
    "libcufile",
    "dfs",
    "nfs",
    "xnvme",
    "libblkio",
    "guasi",
    "librpma_apm_client",
    "librpma_apm_server",
    "librpma_gpspm_client",
    "librpma_gpspm_server",
];

/// `ioengine`.
pub fn engine(text: &str) -> Result<Engine, String> {
    if let Some((_, engine)) = Engine::NAMES.iter().find(|(name, _)| *name == text) {
        return Ok(*engine);
    }
    let name = text.split(':').next().unwrap_or(text);
    if let Some((_, instead)) = NOT_BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Err(format!(
            "is not built in: hakobu io measures files and block devices; {instead}"
        ));
    }
    let ours: Vec<&str> = Engine::NAMES.iter().map(|(name, _)| *name).collect();
    let ours = ours.join(", ");
    Err(if ENGINES.contains(&name) {
        format!("an engine of fio's that is not supported here (supported: {ours})")
    } else {
        format!("no such engine (supported: {ours})")
    })
}

/// Zipf's theta without a value, as in fio.
const THETA: f64 = 1.1;

/// The most entries of a list of zones or of a sequence.
const ENTRIES_MAX: usize = 256;

/// A distribution, with its shares for reads and for writes, or its sequence of blocks.
pub type Distributed = (Distribution, [Vec<Share>; 2], Vec<u64>);

/// `random_distribution`.
pub fn distribution(text: &str) -> Result<Distributed, String> {
    let (name, value) = text.split_once(':').map_or((text, None), |(name, v)| (name, Some(v)));
    let plain = |distribution| Ok((distribution, [Vec::new(), Vec::new()], Vec::new()));
    match (name, value) {
        ("random", None) => plain(Distribution::Uniform),
        ("zipf", None) => plain(Distribution::Zipf(THETA)),
        ("zipf", Some(theta)) => {
            if theta.contains([':', ',']) {
                return Err("a centre, and another theta for each side, are fio's and not \
                            supported here"
                    .to_owned());
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
        ("pareto" | "normal" | "gauss" | "zoned_abs", _) => {
            Err("a distribution of fio's that is not supported here (random, zipf:THETA, \
                 zoned:ACCESS/SIZE:... and sequence:N,N,... are)"
                .to_owned())
        }
        _ => {
            Err("is none of random, zipf:THETA, zoned:ACCESS/SIZE:..., sequence:N,N,...".to_owned())
        }
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
            return Err("formats such as %o are fio's and not supported here".to_owned());
        }
        if rest.starts_with('\'') {
            return Err("a file as pattern is fio's and not supported here".to_owned());
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
        _ => return Err("is none of none, read, write, io, verify, all".to_owned()),
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
pub fn memory_policy(text: &str, nodes: &mut Nodes) -> Result<(), String> {
    let (name, list) = text.split_once(':').map_or((text, None), |(name, of)| (name, Some(of)));
    nodes.policy = match name {
        "default" => MemoryPolicy::Default,
        "local" => MemoryPolicy::Local,
        "bind" => MemoryPolicy::Bind,
        "interleave" => MemoryPolicy::Interleave,
        "prefer" => MemoryPolicy::Prefer,
        _ => return Err("is none of default, local, prefer:N, bind:N, interleave:N".to_owned()),
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
}
