//! Whether an upload is sent in parts, and their size; pure.

use crate::object::core::Engine;
use crate::object::cut::Cut;

/// Minimum bytes of every part except the last (Amazon S3 User Guide, "Amazon S3 multipart upload limits").
pub(in crate::object) const PART_BYTES_MIN: u64 = 5 << 20;

const MIB: u64 = 1 << 20;
/// Default bytes of a part.
const PART_BYTES: u64 = 8 * MIB;
/// Minimum size, in bytes, of an object with larger parts, which save requests.
const LARGE_BYTES_MIN: u64 = 1024 * MIB;
const LARGE_PART_BYTES: u64 = 16 * MIB;
/// Maximum size, in bytes, of an object that is sent in one request: this saves three requests, and several cores
/// have other objects to send meanwhile.
const WHOLE_BYTES_MAX: u64 = 32 * MIB;

/// Limits that determine the parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes in flight of all objects.
    pub budget_bytes: u64,
    /// `--part-size`.
    pub part_bytes: Option<u64>,
    /// `--bwlimit` is set: bodies are slow, and a broken one is sent again, so shorter parts are better.
    pub limited: bool,
}

impl Limits {
    /// Returns the limits of this run.
    pub fn of(engine: &Engine<'_>) -> Limits {
        Limits {
            budget_bytes: engine.budget.bytes_max(),
            part_bytes: engine.setup.options.part_bytes,
            limited: engine.setup.controls.bytes.is_some(),
        }
    }

    /// Divides an object of `size` bytes; returns `None` if it is sent in one request.
    pub fn cut(&self, size: u64) -> Option<Cut> {
        let share = (self.budget_bytes / 8).max(PART_BYTES_MIN);
        let (whole_max, usual) = match (self.limited, size >= LARGE_BYTES_MIN) {
            (true, _) => (PART_BYTES, PART_BYTES_MIN),
            (false, false) => (WHOLE_BYTES_MAX, PART_BYTES),
            (false, true) => (WHOLE_BYTES_MAX, LARGE_PART_BYTES),
        };
        if size <= self.part_bytes.unwrap_or(whole_max.min(share.max(PART_BYTES))) {
            return None;
        }
        Some(Cut::new(size, self.part_bytes.unwrap_or(usual.min(share))))
    }

    /// Returns how many parts fit into memory at once: half of it, so that other objects have room.
    pub fn fit(&self, cut: &Cut) -> u64 {
        self.budget_bytes / 2 / cut.part_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::cut::PARTS_MAX;
    use proptest::prelude::*;

    const GIB: u64 = 1024 * MIB;

    fn limits(budget_bytes: u64) -> Limits {
        Limits { budget_bytes, part_bytes: None, limited: false }
    }

    #[test]
    fn sizes_that_matter() {
        let usual = limits(256 * MIB);
        for size in [0, 4096, 500_000, 10_000_000, 32 * MIB] {
            assert_eq!(usual.cut(size), None, "{size}");
        }
        let cut = |size, limits: &Limits| {
            let cut = limits.cut(size).unwrap();
            (cut.part_bytes, cut.count, limits.fit(&cut))
        };
        assert_eq!(cut(32 * MIB + 1, &usual), (8 * MIB, 5, 16));
        assert_eq!(cut(2 * GIB, &usual), (16 * MIB, 128, 8));
        assert_eq!(cut(5 * 1024 * GIB, &usual).0, 525 * MIB);
        // Little memory: parts as small as S3 allows, and objects that fit one are sent whole.
        assert_eq!(limits(16 * MIB).cut(8 * MIB), None);
        assert_eq!(cut(9 * MIB, &limits(16 * MIB)), (5 * MIB, 2, 1));
        let asked = Limits { part_bytes: Some(6 * MIB), ..usual };
        assert_eq!(asked.cut(6 * MIB), None);
        assert_eq!(cut(GIB, &asked), (6 * MIB, 171, 21));
        let slow = Limits { limited: true, ..usual };
        assert_eq!((slow.cut(8 * MIB), cut(9 * MIB, &slow).0), (None, 5 * MIB));
    }

    proptest! {
        #[test]
        fn parts_cover_the_object_and_keep_the_limits(
            size in 1_u64..50_000 * GIB, budget_bytes in MIB..16 * GIB,
            part_bytes in proptest::option::of(PART_BYTES_MIN..GIB), limited: bool,
        ) {
            if let Some(cut) = (Limits { budget_bytes, part_bytes, limited }).cut(size) {
                prop_assert!(u64::from(cut.count) <= PARTS_MAX);
                prop_assert!(cut.part_bytes >= PART_BYTES_MIN);
                let mut end = 0;
                for number in 1..=cut.count {
                    let range = cut.range(number);
                    prop_assert_eq!(range.start, end);
                    let bytes = range.end - range.start;
                    prop_assert!(bytes == cut.part_bytes || number == cut.count);
                    prop_assert!(bytes > 0);
                    end = range.end;
                }
                prop_assert_eq!(end, size);
            }
        }
    }
}
