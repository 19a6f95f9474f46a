//! The `Range` header: one range of bytes (RFC 9110, section 14).

/// First and last byte of a range of an object of `bytes` bytes. `None` for the whole object: if the text is
/// invalid, or has several ranges, which S3 does not support either.
///
/// # Errors
/// The range is not satisfiable (416).
pub fn parse(text: &str, bytes: u64) -> Result<Option<(u64, u64)>, ()> {
    let Some((first, last)) = text.trim().strip_prefix("bytes=").and_then(|r| r.split_once('-'))
    else {
        return Ok(None);
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A number above u64::MAX is beyond any object.
    let number = |text: &str| text.parse().unwrap_or(u64::MAX);
    let end = bytes.saturating_sub(1);
    match (digits(first), digits(last)) {
        (true, true) if number(first) > number(last) => Ok(None),
        (true, true) if number(first) < bytes => Ok(Some((number(first), number(last).min(end)))),
        (true, false) if last.is_empty() && number(first) < bytes => Ok(Some((number(first), end))),
        (true, true) => Err(()),
        (true, false) if last.is_empty() => Err(()),
        (false, true) if first.is_empty() && (number(last) == 0 || bytes == 0) => Err(()),
        (false, true) if first.is_empty() => Ok(Some((bytes.saturating_sub(number(last)), end))),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ranges() {
        for (text, bytes, expected) in [
            ("bytes=0-0", 10, Ok(Some((0, 0)))),
            ("bytes=2-5", 10, Ok(Some((2, 5)))),
            ("bytes=2-50", 10, Ok(Some((2, 9)))),
            ("bytes=2-", 10, Ok(Some((2, 9)))),
            ("bytes=-3", 10, Ok(Some((7, 9)))),
            ("bytes=-30", 10, Ok(Some((0, 9)))),
            ("bytes=10-", 10, Err(())),
            ("bytes=10-12", 10, Err(())),
            ("bytes=-0", 10, Err(())),
            ("bytes=0-", 0, Err(())),
            ("bytes=-1", 0, Err(())),
            ("bytes=5-2", 10, Ok(None)),
            ("bytes=0-1,3-4", 10, Ok(None)),
            ("bytes=-", 10, Ok(None)),
            ("lines=1-2", 10, Ok(None)),
            ("bytes=1-99999999999999999999", 10, Ok(Some((1, 9)))),
            ("bytes=99999999999999999999-", 10, Err(())),
        ] {
            assert_eq!(parse(text, bytes), expected, "{text} of {bytes}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text(text in "(bytes=)?.{0,20}", bytes: u64) {
            if let Ok(Some((first, last))) = parse(&text, bytes) {
                proptest::prop_assert!(first <= last && last < bytes);
            }
        }
    }
}
