//! Parsers for the texts of proc(5): pure functions over arbitrary bytes. Missing columns and lines yield
//! zero or `None`; unknown ones are ignored.

use crate::sample::{CpuTimes, Disk, Link, Memory, Sample, Tcp};

/// Lines without line ends.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        Some(line)
    })
}

/// Fields separated by blanks.
pub fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// Parses an unsigned number, saturating.
pub fn number(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    })
}

fn numbers<const COUNT: usize>(line: &[u8]) -> ([u64; COUNT], usize) {
    let mut found = [0; COUNT];
    let mut count = 0;
    for (place, field) in found.iter_mut().zip(fields(line)) {
        *place = number(field).unwrap_or(0);
        count += 1;
    }
    (found, count)
}

/// proc_stat(5): fills in CPUs, tasks, switches and interrupts.
pub fn stat(text: &[u8], ticks_per_s: u64, sample: &mut Sample) {
    for line in lines(text) {
        let key = key_of(line);
        let rest = &line[key.len()..];
        let first = || fields(rest).next().and_then(number).unwrap_or(0);
        match key {
            b"procs_running" => sample.running = small(first()),
            b"procs_blocked" => sample.blocked = small(first()),
            b"ctxt" => sample.switches = first(),
            b"intr" => sample.interrupts = first(),
            _ => sample.cpus.extend(cpu(line, ticks_per_s)),
        }
    }
}

/// Parses a line of one CPU; proc_stat(5). `None` for other lines, also for `cpu`, the sum of all.
pub fn cpu(line: &[u8], ticks_per_s: u64) -> Option<(u32, CpuTimes)> {
    let key = key_of(line);
    let cpu = key.strip_prefix(b"cpu").and_then(number)?;
    let ([user, nice, system, idle, iowait, irq, softirq, steal], _) = numbers(&line[key.len()..]);
    let tick_ns = 1_000_000_000 / ticks_per_s.max(1);
    let ns = |ticks: u64| ticks.saturating_mul(tick_ns);
    let times = CpuTimes {
        user_ns: ns(user.saturating_add(nice)),
        system_ns: ns(system.saturating_add(irq).saturating_add(softirq)),
        iowait_ns: ns(iowait),
        idle_ns: ns(idle),
        steal_ns: ns(steal),
    };
    Some((small(cpu), times))
}

/// Returns the first word of a line.
fn key_of(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b' ').next().unwrap_or_default()
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// proc_meminfo(5).
pub fn memory(text: &[u8]) -> Memory {
    let mut memory = Memory::default();
    let (mut available, mut swap, mut swap_free) = (None, 0u64, 0);
    for line in lines(text) {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let bytes = || {
            let kib = fields(&line[colon + 1..]).next().and_then(number).unwrap_or(0);
            kib.saturating_mul(1024)
        };
        match &line[..colon] {
            b"MemTotal" => memory.total_bytes = bytes(),
            b"MemFree" => memory.free_bytes = bytes(),
            b"MemAvailable" => available = Some(bytes()),
            b"Buffers" => memory.buffers_bytes = bytes(),
            b"Cached" | b"SReclaimable" => {
                memory.cached_bytes = memory.cached_bytes.saturating_add(bytes());
            }
            b"Dirty" => memory.dirty_bytes = bytes(),
            b"Writeback" => memory.writeback_bytes = bytes(),
            b"SwapTotal" => swap = bytes(),
            b"SwapFree" => swap_free = bytes(),
            _ => {}
        }
    }
    // Kernels before 3.14 do not report available memory.
    let about = memory.free_bytes.saturating_add(memory.cached_bytes);
    memory.available_bytes = available.unwrap_or(about);
    memory.swap_used_bytes = swap.saturating_sub(swap_free);
    memory
}

/// proc_vmstat(5): fills in swapping, paging and the threshold of dirty pages.
pub fn paging(text: &[u8], page_bytes: u64, sample: &mut Sample) {
    for line in lines(text) {
        let value =
            |key: &[u8], unit: u64| Some(number(line.strip_prefix(key)?)?.saturating_mul(unit));
        let set = |place: &mut u64, key: &[u8], unit: u64| {
            *place = value(key, unit).unwrap_or(*place);
        };
        // Cheap filter: five of about two hundred lines are needed.
        match line.first() {
            Some(b'n') => {
                let threshold = value(b"nr_dirty_threshold ", page_bytes);
                let known = &mut sample.memory.dirty_threshold_bytes;
                *known = threshold.or(*known);
            }
            Some(b'p') => {
                set(&mut sample.swapped_bytes.0, b"pswpin ", page_bytes);
                set(&mut sample.swapped_bytes.1, b"pswpout ", page_bytes);
                set(&mut sample.paged_bytes.0, b"pgpgin ", 1024);
                set(&mut sample.paged_bytes.1, b"pgpgout ", 1024);
            }
            _ => {}
        }
    }
}

/// proc_diskstats(5): devices with any I/O so far, including partitions. A sector is 512 bytes regardless of
/// the disk's sector size.
pub fn disks(text: &[u8]) -> Vec<Disk> {
    lines(text).filter_map(disk).collect()
}

fn disk(line: &[u8]) -> Option<Disk> {
    let mut parts = fields(line);
    let major = parts.next().and_then(number)?;
    let minor = parts.next().and_then(number)?;
    let name = parts.next()?;
    let mut values = [0; 11];
    for value in &mut values {
        *value = number(parts.next()?)?;
    }
    let [reads, _, read_sectors, read_ms, writes, _, write_sectors, write_ms, rest @ ..] = values;
    let [in_flight, busy_ms, queue_ms] = rest;
    // Discards and flushes count as I/O.
    (values != [0; 11]).then(|| Disk {
        name: String::from_utf8_lossy(name).into_owned(),
        dev: (small(major), small(minor)),
        reads,
        read_bytes: read_sectors.saturating_mul(512),
        read_ms,
        writes,
        write_bytes: write_sectors.saturating_mul(512),
        write_ms,
        in_flight,
        busy_ms,
        queue_ms,
        stacked: false,
    })
}

/// /proc/net/dev (proc_pid_net(5)), without link speeds; its two header lines contain no colon.
pub fn links(text: &[u8]) -> impl Iterator<Item = Link> {
    lines(text).filter_map(|line| {
        // The numbers may follow the colon without a blank.
        let colon = memchr::memrchr(b':', line)?;
        let name = std::str::from_utf8(&line[..colon]).ok()?.trim();
        let (values, count) = numbers::<16>(&line[colon + 1..]);
        let whole = count >= 12 && !name.is_empty();
        whole.then(|| Link {
            name: name.to_owned(),
            rx_bytes: values[0],
            tx_bytes: values[8],
            drops: values[3].saturating_add(values[11]),
            bits_per_s: None,
        })
    })
}

/// TCP section of /proc/net/snmp (RFC 1213): a line of names, then a line of values.
pub fn tcp(text: &[u8]) -> Option<Tcp> {
    let mut of_tcp = lines(text).filter_map(|line| line.strip_prefix(b"Tcp:"));
    let (names, values) = (of_tcp.next()?, of_tcp.next()?);
    let value = |wanted: &[u8]| {
        let mut pairs = fields(names).zip(fields(values));
        pairs.find_map(|(name, value)| (name == wanted).then(|| number(value))?)
    };
    Some(Tcp { segments_out: value(b"OutSegs")?, retransmits: value(b"RetransSegs")? })
}

/// A file of /proc/pressure: microseconds of `some` and of `full`.
pub fn pressure(text: &[u8]) -> (Option<u64>, Option<u64>) {
    let total = |kind: &[u8]| {
        let line = lines(text).find(|line| line.starts_with(kind))?;
        fields(line).find_map(|field| number(field.strip_prefix(b"total=")?))
    };
    (total(b"some "), total(b"full "))
}

/// Used fields of proc_pid_stat(5); times in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// `Z` for a process that has ended and was not waited for.
    pub state: u8,
    /// Parent process.
    pub parent: u32,
    /// Minor page faults; those of waited-for children.
    pub minor_faults: (u64, u64),
    /// Major page faults; those of waited-for children.
    pub major_faults: (u64, u64),
    /// CPU time in user space; that of waited-for children.
    pub user: (u64, u64),
    /// CPU time in the kernel; that of waited-for children.
    pub system: (u64, u64),
    /// Number of threads.
    pub threads: u32,
    /// Resident pages.
    pub rss_pages: u64,
}

/// proc_pid_stat(5). `None` for a truncated text.
pub fn process_stat(text: &[u8]) -> Option<ProcessStat> {
    // The name, in parentheses, may contain any character, including parentheses.
    let end = memchr::memrchr(b')', text)?;
    let mut parts = fields(&text[end + 1..]);
    let state = *parts.next()?.first()?;
    let parent = small(number(parts.next()?)?);
    // From field 5 on; the used fields are never negative.
    let mut values = [0; 20];
    for value in &mut values {
        *value = number(parts.next()?).unwrap_or(0);
    }
    Some(ProcessStat {
        state,
        parent,
        minor_faults: (values[5], values[6]),
        major_faults: (values[7], values[8]),
        user: (values[9], values[11]),
        system: (values[10], values[12]),
        threads: small(values[15]),
        rss_pages: values[19],
    })
}

/// proc_pid_io(5): bytes read from and written to devices, including waited-for children.
pub fn process_io(text: &[u8]) -> Option<(u64, u64)> {
    let value = |key: &[u8]| {
        let rest = lines(text).find_map(|line| line.strip_prefix(key))?;
        fields(rest).next().and_then(number)
    };
    Some((value(b"read_bytes:")?, value(b"write_bytes:")?))
}

/// Context switches of a thread in proc_pid_status(5): voluntary and involuntary.
pub fn switches(text: &[u8]) -> Option<(u64, u64)> {
    // They are the last two lines.
    let at = memchr::memmem::rfind(text, b"\nvoluntary_ctxt_switches:")?;
    let mut values = lines(&text[at + 1..]).filter_map(|line| fields(line).nth(1).and_then(number));
    Some((values.next()?, values.next()?))
}

/// State in proc_pid_status(5): `R`, `S`, `D`, ….
pub fn state(text: &[u8]) -> Option<u8> {
    let value = lines(text).find_map(|line| line.strip_prefix(b"State:"))?;
    value.trim_ascii().first().copied()
}

/// /proc/PID/schedstat: nanoseconds on a CPU, and waiting for one.
pub fn schedstat(text: &[u8]) -> Option<(u64, u64)> {
    let mut values = fields(text).map(number);
    Some((values.next()??, values.next()??))
}

/// Resident pages of proc_pid_statm(5).
pub fn resident_pages(text: &[u8]) -> Option<u64> {
    fields(text).nth(1).and_then(number)
}
