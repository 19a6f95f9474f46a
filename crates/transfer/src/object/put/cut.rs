//! Part size and number of concurrent parts of an upload; pure. The limits are those of the Amazon S3 User Guide,
//! "Amazon S3 multipart upload limits".

use super::super::core::Engine;

/// Maximum number of parts of an upload.
pub const PARTS_MAX: u64 = 10_000;
/// Minimum bytes of every part except the last.
pub const PART_BYTES_MIN: u64 = 5 << 20;

const MIB: u64 = 1 << 20;
/// Default bytes of a part.
const PART_BYTES: u64 = 8 * MIB;
/// Minimum size, in bytes, of an object with larger parts, which save requests.
const LARGE_BYTES_MIN: u64 = 1024 * MIB;
const LARGE_PART_BYTES: u64 = 16 * MIB;
/// Maximum size, in bytes, of an object that is sent in one request: this saves three requests, and several cores
/// have other objects to send meanwhile.
const WHOLE_BYTES_MAX: u64 = 32 * MIB;

/// Limits that determine the cut.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes in flight of all objects.
    pub budget_bytes: u64,
    /// Requests in flight of all objects.
    pub jobs: usize,
    /// `--part-size`.
    pub part_bytes: Option<u64>,
    /// `--concurrency`.
    pub concurrency: Option<usize>,
    /// `--bwlimit` is set: bodies are slow, and a broken one is sent again, so shorter parts are better.
    pub limited: bool,
}

/// Division of an object into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of every part except the last.
    pub part_bytes: u64,
    /// Number of parts, 1 to [`PARTS_MAX`].
    pub count: u32,
}

impl Engine<'_> {
    /// Returns the limits of this run.
    pub(in super::super) fn limits(&self) -> Limits {
        Limits {
            budget_bytes: self.budget.bytes_max(),
            jobs: self.setup.controls.gate.jobs(),
            part_bytes: self.setup.options.part_bytes,
            concurrency: self.setup.options.concurrency,
            limited: self.setup.controls.bytes.is_some(),
        }
    }
}

impl Cut {
    /// Divides an object of `size` bytes; returns `None` if it is sent in one request.
    pub fn of(size: u64, limits: &Limits) -> Option<Cut> {
        let share = (limits.budget_bytes / 8).max(PART_BYTES_MIN);
        let (whole_max, usual) = match (limits.limited, size >= LARGE_BYTES_MIN) {
            (true, _) => (PART_BYTES, PART_BYTES_MIN),
            (false, false) => (WHOLE_BYTES_MAX, PART_BYTES),
            (false, true) => (WHOLE_BYTES_MAX, LARGE_PART_BYTES),
        };
        if size <= limits.part_bytes.unwrap_or(whole_max.min(share.max(PART_BYTES))) {
            return None;
        }
        let wanted = limits.part_bytes.unwrap_or(usual.min(share)).max(1);
        Some(Cut::with(size, wanted))
    }

    /// Divides into parts of `wanted` bytes, or larger if there would be too many.
    pub fn with(size: u64, wanted: u64) -> Cut {
        let least = size.div_ceil(PARTS_MAX);
        // Too small: the next whole MiB, so that parts begin at page and stripe boundaries.
        let part_bytes = if wanted < least { least.next_multiple_of(MIB) } else { wanted };
        let count = size.div_ceil(part_bytes).max(1);
        // At most 10,000, since a part is at least a ten-thousandth.
        Cut { part_bytes, count: u32::try_from(count).unwrap_or(u32::MAX) }
    }

    /// Returns how many parts may be in flight now.
    pub fn streams(&self, limits: &Limits) -> usize {
        let fit = (limits.budget_bytes / 2 / self.part_bytes.max(1)).max(1);
        // The user's number is a hard limit; the budget is waited for.
        let streams = limits.concurrency.map_or(fit, |asked| asked.max(1) as u64);
        let streams = streams.min(u64::from(self.count)).min(limits.jobs.max(1) as u64);
        usize::try_from(streams).unwrap_or(usize::MAX)
    }

    /// Returns first byte and length of a part (from 1) of an object of `size` bytes.
    pub fn range(&self, number: u32, size: u64) -> (u64, u64) {
        let start = u64::from(number.saturating_sub(1)).saturating_mul(self.part_bytes).min(size);
        (start, (size - start).min(self.part_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GIB: u64 = 1024 * MIB;

    fn limits(budget_bytes: u64) -> Limits {
        let (part_bytes, concurrency) = (None, None);
        Limits { budget_bytes, jobs: 32, part_bytes, concurrency, limited: false }
    }

    #[test]
    fn sizes_that_matter() {
        let usual = limits(256 * MIB);
        for size in [0, 4096, 500_000, 10_000_000, 32 * MIB] {
            assert_eq!(Cut::of(size, &usual), None, "{size}");
        }
        let cut = |size, limits: &Limits| {
            let cut = Cut::of(size, limits).unwrap();
            (cut.part_bytes, cut.count, cut.streams(limits))
        };
        assert_eq!(cut(32 * MIB + 1, &usual), (8 * MIB, 5, 5));
        assert_eq!(cut(2 * GIB, &usual), (16 * MIB, 128, 8));
        assert_eq!(cut(5 * 1024 * GIB, &usual).0, 525 * MIB);
        // Little memory: parts as small as S3 allows, and objects that fit one are sent whole.
        assert_eq!(Cut::of(8 * MIB, &limits(16 * MIB)), None);
        assert_eq!(cut(9 * MIB, &limits(16 * MIB)), (5 * MIB, 2, 1));
        let asked = Limits { part_bytes: Some(6 * MIB), concurrency: Some(3), ..usual };
        assert_eq!(Cut::of(6 * MIB, &asked), None);
        assert_eq!(cut(GIB, &asked), (6 * MIB, 171, 3));
        let slow = Limits { limited: true, ..usual };
        assert_eq!((Cut::of(8 * MIB, &slow), cut(9 * MIB, &slow).0), (None, 5 * MIB));
        let more = Limits { concurrency: Some(1000), ..usual };
        assert_eq!(cut(GIB, &more).2, 32, "no more than jobs");
        let many = Limits { jobs: 200, ..usual };
        assert_eq!(cut(2 * GIB, &many).2, 8, "no more than fit");
        assert_eq!(cut(GIB - 1, &Limits { jobs: 7, ..usual }).2, 7);
        assert_eq!(cut(GIB, &Limits { jobs: 2, ..asked }).2, 2);
    }

    proptest! {
        #[test]
        fn parts_cover_the_object_and_keep_the_limits(
            size in 1_u64..50_000 * GIB, budget in MIB..16 * GIB, jobs in 1_usize..2000,
            part in proptest::option::of(PART_BYTES_MIN..GIB),
            concurrency in proptest::option::of(1_usize..100), limited: bool,
        ) {
            let (budget_bytes, part_bytes) = (budget, part);
            let limits = Limits { budget_bytes, jobs, part_bytes, concurrency, limited };
            if let Some(cut) = Cut::of(size, &limits) {
                prop_assert!(u64::from(cut.count) <= PARTS_MAX);
                prop_assert!(cut.part_bytes >= PART_BYTES_MIN);
                let at_once = cut.streams(&limits);
                prop_assert!((1..=jobs).contains(&at_once));
                prop_assert!(at_once <= cut.count as usize);
                let mut end = 0;
                for number in 1..=cut.count {
                    let (start, bytes) = cut.range(number, size);
                    prop_assert_eq!(start, end);
                    prop_assert!(bytes == cut.part_bytes || number == cut.count);
                    prop_assert!(bytes > 0);
                    end += bytes;
                }
                prop_assert_eq!(end, size);
            }
        }
    }
}
