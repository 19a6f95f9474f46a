//! Values of the options for `s3://`: texts, headers, sizes and numbers of parts.

use crate::options::OptArg;
use hakobu_core::number;
use http::HeaderValue;

const MIB: u64 = 1 << 20;
/// Sizes of parts, in bytes. Ranges of downloads may be small.
const PART_BYTES: std::ops::RangeInclusive<u64> = MIB..=5 * 1024 * MIB;
/// S3's minimum for parts of an upload other than the last one (User Guide, "Amazon S3 multipart upload limits").
pub(super) const PART_BYTES_MIN: u64 = 5 * MIB;
/// Maximum number of concurrent parts of one object.
const CONCURRENCY_MAX: usize = 1000;

/// Reads the value of `--part-size`, in bytes.
///
/// # Errors
/// Not a size, or out of range.
pub fn part_bytes(arg: &OptArg) -> Result<u64, String> {
    let bytes = number::parse_size(&arg.value, MIB).map_err(|why| arg.refuse(why))?;
    match PART_BYTES.contains(&bytes) {
        true => Ok(bytes),
        false => Err(arg.refuse("is not between 1 MiB and 5 GiB")),
    }
}

/// Reads the value of `--concurrency`.
///
/// # Errors
/// It is not a number, or out of range.
pub fn concurrency(arg: &OptArg) -> Result<usize, String> {
    let parts = text(arg)?.parse().ok();
    let parts = parts.filter(|parts| (1..=CONCURRENCY_MAX).contains(parts));
    parts.ok_or_else(|| arg.refuse("is not a number from 1 to 1000"))
}

/// Returns a value that must be text.
///
/// # Errors
/// It is empty or not UTF-8.
pub(super) fn text(arg: &OptArg) -> Result<String, String> {
    let text = arg.value.to_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| arg.refuse("needs a value that is text"))
}

/// Returns a value as a header.
///
/// # Errors
/// It holds bytes that headers may not have.
pub(super) fn header_value(arg: &OptArg, text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text).map_err(|_| arg.refuse("cannot be sent in a header"))
}
