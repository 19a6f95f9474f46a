//! Division of an object into parts; pure. The limits are those of the Amazon S3 User Guide, "Amazon S3 multipart upload
//! limits"; a download keeps them, too, as each part costs a request and a line of a record.

use hakobu_s3::ops::Range;

/// Maximum number of parts.
pub(super) const PARTS_MAX: u64 = 10_000;
const MIB: u64 = 1 << 20;

/// An object divided into parts of equal length, except the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Size of the object in bytes.
    pub size: u64,
    /// Bytes of every part except the last.
    pub part_bytes: u64,
    /// Number of parts, at most [`PARTS_MAX`] if [`Cut::new`] made it.
    pub count: u32,
}

impl Cut {
    /// Divides into parts of `wanted` bytes, or larger if there would be too many.
    pub fn new(size: u64, wanted: u64) -> Cut {
        let least = size.div_ceil(PARTS_MAX);
        // Too small: the next whole MiB, so that parts begin at page and stripe boundaries.
        let part_bytes = if wanted < least { least.next_multiple_of(MIB) } else { wanted };
        Cut::with(size, part_bytes)
    }

    /// Divides into parts of exactly that length, as an earlier run did.
    pub fn with(size: u64, part_bytes: u64) -> Cut {
        let part_bytes = part_bytes.max(1);
        let count = size.div_ceil(part_bytes);
        Cut { size, part_bytes, count: u32::try_from(count).unwrap_or(u32::MAX) }
    }

    /// Returns the bytes of a part; numbers start at 1.
    pub fn range(&self, number: u32) -> Range {
        let start = u64::from(number.saturating_sub(1)).saturating_mul(self.part_bytes);
        let start = start.min(self.size);
        Range { start, end: self.size.min(start + self.part_bytes) }
    }

    /// Returns the length of a part in bytes.
    pub fn bytes(&self, number: u32) -> u64 {
        let Range { start, end } = self.range(number);
        end - start
    }

    /// Returns the numbers of all parts, the first one last.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        (1..=self.count).rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_cover_the_object_once(size in 1_u64..1 << 45, part in 1_u64..1 << 30) {
            let cut = Cut::new(size, part);
            prop_assert!(u64::from(cut.count) <= PARTS_MAX && cut.part_bytes >= part);
            prop_assert_eq!(cut.range(1).start, 0);
            prop_assert_eq!(cut.range(cut.count).end, size);
            for number in [1, cut.count / 2, cut.count] {
                let here = cut.range(number.max(1));
                prop_assert!(here.start < here.end && here.end <= size);
                if number >= 1 && number < cut.count {
                    prop_assert_eq!(cut.range(number + 1).start, here.end);
                }
            }
        }
    }
}
