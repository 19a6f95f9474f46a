//! Incremental decoder for the chunked transfer coding (RFC 9112, section 7.1).

/// State of the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the digits of a size; whether there was one, and the size so far.
    Size(bool, u64),
    /// After the size, up to the end of the line.
    Extension(u64),
    /// In a chunk, with the remaining bytes.
    Data(u64),
    /// In the line end after a chunk.
    DataEnd,
    /// In the trailers; whether the line is non-empty.
    Trailer(bool),
    /// After the end.
    Done,
}

/// A decoder.
#[derive(Debug)]
pub struct Chunked {
    at: At,
}

impl Chunked {
    /// Starts at the beginning of a body.
    pub fn new() -> Chunked {
        Chunked { at: At::Size(false, 0) }
    }

    /// True if the body is complete.
    pub fn is_done(&self) -> bool {
        self.at == At::Done
    }

    /// Decodes bytes: passes data to `sink` and returns the number of bytes consumed, which is less than all
    /// only at the end of the body.
    ///
    /// # Errors
    /// Malformed coding.
    pub fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(&[u8])) -> Result<usize, ()> {
        let mut used = 0;
        while let Some(&byte) = bytes.get(used) {
            let mut step = 1;
            self.at = match (self.at, byte) {
                (At::Size(_, size), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                    let digit = char::from(byte).to_digit(16).ok_or(())?;
                    let size = size.checked_mul(16).ok_or(())?;
                    At::Size(true, size + u64::from(digit))
                }
                (At::Size(true, size), b';' | b' ' | b'\t' | b'\r') => At::Extension(size),
                (At::Size(true, 0) | At::Extension(0), b'\n') => At::Trailer(false),
                (At::Size(true, size) | At::Extension(size), b'\n') => At::Data(size),
                (At::Extension(size), _) => At::Extension(size),
                (At::Data(left), _) => {
                    let rest = bytes.get(used..).unwrap_or_default();
                    step = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    sink(&rest[..step]);
                    match left - step as u64 {
                        0 => At::DataEnd,
                        left => At::Data(left),
                    }
                }
                (At::DataEnd, b'\r') => At::DataEnd,
                (At::DataEnd, b'\n') => At::Size(false, 0),
                (At::Trailer(false), b'\n') => At::Done,
                (At::Trailer(true), b'\n') => At::Trailer(false),
                (At::Trailer(false), b'\r') => At::Trailer(false),
                (At::Trailer(_), _) => At::Trailer(true),
                (At::Done, _) => break,
                (At::Size(..) | At::DataEnd, _) => return Err(()),
            };
            used += step;
        }
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decoded bytes, and number of bytes of `text` consumed, fed in pieces of `piece` bytes.
    fn decoded(text: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), ()> {
        let (mut decoder, mut out, mut used) = (Chunked::new(), Vec::new(), 0);
        for part in text.chunks(piece) {
            used += decoder.feed(part, |data| out.extend_from_slice(data))?;
        }
        Ok((out, used, decoder.is_done()))
    }

    #[test]
    fn bodies() {
        for (text, data, rest) in [
            ("0\r\n\r\n", "", ""),
            ("5\r\nhello\r\n0\r\n\r\nGET /", "hello", "GET /"),
            ("5;a=b\r\nhello\r\n1 \r\n!\r\n0;x\r\nA: b\r\nC: d\r\n\r\n", "hello!", ""),
            ("a\n0123456789\n0\n\n", "0123456789", ""),
        ] {
            for piece in 1..text.len() {
                let (out, used, done) = decoded(text.as_bytes(), piece).unwrap();
                let end = text.len() - rest.len();
                assert_eq!((out.as_slice(), used, done), (data.as_bytes(), end, true), "{text}");
            }
        }
        for text in ["x", "\r\n", "5\r\nhelloX", "fffffffffffffffff\r\n", ";\r\n"] {
            assert!(decoded(text.as_bytes(), 3).is_err(), "{text}");
        }
        assert_eq!(decoded(b"5\r\nhel", 9), Ok((b"hel".to_vec(), 6, false)));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>, piece in 1usize..9) {
            let _ = decoded(&bytes, piece);
        }

        #[test]
        fn what_is_encoded_comes_back(
            chunks in proptest::collection::vec(proptest::collection::vec(0u8.., 1..40), 0..5),
            piece in 1usize..30,
        ) {
            let mut text = Vec::new();
            for chunk in &chunks {
                text.extend(format!("{:x}\r\n", chunk.len()).bytes());
                text.extend(chunk);
                text.extend(b"\r\n");
            }
            text.extend(b"0\r\n\r\n");
            let expected = (chunks.concat(), text.len(), true);
            proptest::prop_assert_eq!(decoded(&text, piece), Ok(expected));
        }
    }
}
