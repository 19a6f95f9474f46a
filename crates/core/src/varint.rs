//! Numbers of variable length (LEB128, DWARF 5, 7.6): seven bits in a byte, the lowest first; all bytes but the last have
//! the highest bit. Records of shards, manifests and messages between machines hold them.

/// Appends a number.
pub fn push(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number: 0, -1, 1, -2, … as 0, 1, 2, 3, … (zig-zag), so that small ones are short.
pub fn push_signed(number: i64, out: &mut Vec<u8>) {
    push(((number << 1) ^ (number >> 63)) as u64, out);
}

/// Returns the signed number that [`push_signed`] has appended as this one.
pub fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Reads a number, byte by byte.
///
/// # Errors
/// Those of `byte`; `too_large` for more than 64 bits.
pub fn read<E>(mut byte: impl FnMut() -> Result<u8, E>, too_large: E) -> Result<u64, E> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte()?;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            break;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(too_large)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_numbers() {
        for number in [0, -1, 1, -64, 63, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            push_signed(number, &mut out);
            assert_eq!(read_all(&out).map(signed), Ok(number));
            assert_eq!(out.len() == 1, (-64..64).contains(&number), "{number}");
        }
    }

    fn read_all(bytes: &[u8]) -> Result<u64, &'static str> {
        let mut bytes = bytes.iter();
        read(|| bytes.next().copied().ok_or("short"), "large")
    }

    proptest::proptest! {
        #[test]
        fn numbers_survive(number: u64, shift in 0..64_u32) {
            let mut out = Vec::new();
            push(number >> shift, &mut out);
            proptest::prop_assert_eq!(read_all(&out), Ok(number >> shift));
        }
    }

    #[test]
    fn what_is_short_or_large_is_refused() {
        assert_eq!(read_all(&[0x80]), Err("short"));
        assert_eq!(read_all(&[0xff; 10]), Err("large"));
        let mut most = vec![0xff; 9];
        most.push(1);
        assert_eq!(read_all(&most), Ok(u64::MAX));
        most[9] = 2;
        assert_eq!(read_all(&most), Err("large"));
    }
}
