//! One line about a run that is under way, as fio writes it on a terminal.

use super::normal::{binary_text, count_text};
use crate::job::Job;
use crate::run::Progress;
use std::time::Duration;

/// Known amount of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TotalWork {
    /// The time that it takes, where that is set: groups after each other.
    pub time: Option<Duration>,
    /// The bytes that will go at most.
    pub bytes: Option<u64>,
}

impl TotalWork {
    /// Returns the whole of these jobs. `clone_bytes`: bytes of a clone of each.
    pub fn of(jobs: &[Job], clone_bytes: impl Fn(usize) -> u64) -> TotalWork {
        let (mut time, mut group) = (Duration::ZERO, Some(Duration::ZERO));
        let (mut bytes, mut is_bounded) = (0u64, true);
        for (number, job) in jobs.iter().enumerate() {
            if job.stonewall && number > 0 {
                time += group.unwrap_or_default();
                group = Some(Duration::ZERO);
            }
            let takes = job
                .runtime
                .map(|runtime| runtime + job.ramp + job.start_delay_max.unwrap_or(job.start_delay));
            group = match (group, takes.filter(|_| job.time_based)) {
                (Some(longest), Some(takes)) => Some(longest.max(takes)),
                _ => None,
            };
            is_bounded &= !job.time_based && !job.fills;
            let once = job.io_bytes.unwrap_or_else(|| clone_bytes(number));
            bytes = bytes.saturating_add(
                once.saturating_mul(u64::from(job.clones)).saturating_mul(job.loops.max(1)),
            );
        }
        let time = group.map(|group| time + group).filter(|time| !time.is_zero());
        TotalWork { time, bytes: Some(bytes).filter(|bytes| is_bounded && *bytes > 0) }
    }

    /// Share that is done, 0 to 1, and the time that is left.
    fn done(&self, progress: &Progress) -> Option<(f64, Duration)> {
        let at = progress.elapsed;
        if let Some(time) = self.time {
            let share = at.as_secs_f64() / time.as_secs_f64();
            return Some((share.min(1.0), time.saturating_sub(at)));
        }
        let gone: u64 = progress.sides.iter().map(|side| side.1).sum();
        let share = (gone as f64 / self.bytes? as f64).min(1.0);
        let left_s =
            if share > 0.0 { at.as_secs_f64() * (1.0 / share - 1.0) } else { return None };
        Some((share, Duration::try_from_secs_f64(left_s).ok()?))
    }
}

/// The letter that fio has for what a job does: small where order is random.
fn letter(job: &Job) -> char {
    let letter = match (job.rw.reads, job.rw.writes) {
        _ if job.trims => 'D',
        (true, true) => 'M',
        (false, true) => 'W',
        _ => 'R',
    };
    if job.rw.random { letter.to_ascii_lowercase() } else { letter }
}

/// The line, with rates since the progress that was seen the last time.
pub fn line(jobs: &[Job], whole: &TotalWork, progress: &Progress, seen: &mut Progress) -> String {
    let span_s = progress.elapsed.saturating_sub(seen.elapsed).as_secs_f64();
    let per_s = |now: u64, before: u64| match span_s > 0.0 {
        true => now.saturating_sub(before) as f64 / span_s,
        false => 0.0,
    };
    let (mut bytes, mut ios) = (Vec::new(), Vec::new());
    for (at, name) in ["r", "w"].into_iter().enumerate() {
        let does = jobs.iter().any(|job| if at == 0 { job.rw.reads } else { job.rw.writes });
        if !does {
            continue;
        }
        let (now, before) = (progress.sides[at], seen.sides[at]);
        bytes.push(format!("{name}={}/s", binary_text(per_s(now.1, before.1))));
        ios.push(format!("{name}={}", count_text(per_s(now.0, before.0))));
    }
    *seen = *progress;
    let letters: Vec<String> =
        jobs.iter().map(|job| format!("{}({})", letter(job), job.clones)).collect();
    let done = whole.done(progress);
    let share = done.map_or("-.-%".to_owned(), |(share, _)| format!("{:.1}%", share * 100.0));
    let eta = done.map_or("eta --".to_owned(), |(_, left)| format!("eta {}", time(left)));
    format!(
        "Jobs: {}: [{}][{share}][{}][{} IOPS][{eta}]",
        progress.running,
        letters.join(","),
        bytes.join(","),
        ios.join(",")
    )
}

/// `00m:05s`, or with hours.
fn time(left: Duration) -> String {
    let s = left.as_secs();
    let (hours, minutes, seconds) = (s / 3600, s / 60 % 60, s % 60);
    match hours {
        0 => format!("{minutes:02}m:{seconds:02}s"),
        _ => format!("{hours:02}h:{minutes:02}m:{seconds:02}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::tests::job;

    fn progress(s: u64, ios: u64) -> Progress {
        Progress {
            elapsed: Duration::from_secs(s),
            sides: [(ios, ios * 4096), (0, 0)],
            running: 2,
            done: 0,
        }
    }

    #[test]
    fn the_line() {
        let mut seen = Progress::default();
        let timed = Job {
            runtime: Some(Duration::from_secs(10)),
            time_based: true,
            clones: 2,
            ..job("a", "randread")
        };
        let whole = TotalWork::of(std::slice::from_ref(&timed), |_| 1 << 20);
        assert_eq!(whole, TotalWork { time: Some(Duration::from_secs(10)), bytes: None });
        let jobs = [timed];
        let first = line(&jobs, &whole, &progress(4, 40_000), &mut seen);
        let wanted = "Jobs: 2: [r(2)][40.0%][r=39.1MiB/s][r=10.0k IOPS][eta 00m:06s]";
        assert_eq!(first, wanted);
        // Since the last time only.
        let next = line(&jobs, &whole, &progress(5, 41_000), &mut seen);
        assert!(next.contains("[50.0%][r=4000KiB/s][r=1000 IOPS]"), "{next}");
    }

    #[test]
    fn what_is_left_follows_from_bytes() {
        let jobs = [Job { clones: 2, loops: 2, ..job("a", "read") }];
        let whole = TotalWork::of(&jobs, |_| 4096 * 1000);
        assert_eq!(whole, TotalWork { time: None, bytes: Some(4096 * 4000) });
        let (share, left) = whole.done(&progress(10, 1000)).unwrap();
        assert_eq!((share, left), (0.25, Duration::from_secs(30)));
        assert_eq!(whole.done(&progress(1, 0)), None);
        assert_eq!(time(Duration::from_secs(3725)), "01h:02m:05s");
    }
}
