//! Receives the body of a request, discarding it inside the kernel if it is not needed.

use super::chunked::Chunked;
use super::head::{CHECKSUM, Head, Length};
use std::io::{self, ErrorKind};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::TcpStream;

/// Bytes kept from the end of a body, to find its trailers.
const TAIL_BYTES: usize = 512;
/// Longest body that is kept whole: S3's limit for DeleteObjects is 2 MB.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// A received body.
#[derive(Debug, Default)]
pub struct Taken {
    /// Bytes of the body in the connection's buffer after the head.
    pub used: usize,
    /// Bytes read beyond the body: the start of the next request.
    pub beyond: Vec<u8>,
    /// The body, or its end, if requested.
    pub kept: Vec<u8>,
    /// Length on the wire, without chunk framing.
    pub bytes: u64,
}

/// Receives the body of a request; `came` is the data after its head in the buffer, `whole` requests the body
/// itself.
///
/// # Errors
/// The connection fails or ends, or the body is too long to be kept or malformed.
pub async fn take(
    stream: &mut TcpStream,
    head: &Head,
    came: &[u8],
    whole: bool,
) -> io::Result<Taken> {
    match head.length {
        Length::Known(bytes) => {
            let used = came.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
            let mut taken = Taken { used, bytes, ..Taken::default() };
            let mut left = bytes - used as u64;
            if whole || head.has_trailer {
                let room = if whole { KEPT_BYTES_MAX } else { TAIL_BYTES };
                if whole && bytes > room as u64 {
                    return Err(ErrorKind::FileTooLarge.into());
                }
                taken.kept.extend_from_slice(&came[used.saturating_sub(room)..used]);
                let end = left.min(room as u64);
                discard(stream, left - end).await?;
                let start = taken.kept.len();
                taken.kept.resize(start + end as usize, 0);
                stream.read_exact(&mut taken.kept[start..]).await?;
                left = 0;
            }
            discard(stream, left).await?;
            Ok(taken)
        }
        Length::Chunked => chunked(stream, came, whole, head.has_trailer).await,
    }
}

async fn chunked(
    stream: &mut TcpStream,
    came: &[u8],
    whole: bool,
    has_trailer: bool,
) -> io::Result<Taken> {
    let mut taken = Taken::default();
    let mut decoder = Chunked::new();
    let (mut kept, mut bytes) = (Vec::new(), 0);
    let mut sink = |data: &[u8]| {
        bytes += data.len() as u64;
        if whole {
            let room = (KEPT_BYTES_MAX + 1).saturating_sub(kept.len());
            kept.extend_from_slice(&data[..data.len().min(room)]);
        } else if has_trailer {
            kept.extend_from_slice(&data[data.len().saturating_sub(TAIL_BYTES)..]);
            if kept.len() > 16 * TAIL_BYTES {
                kept.drain(..kept.len() - TAIL_BYTES);
            }
        }
    };
    let wrong = |()| io::Error::from(ErrorKind::InvalidData);
    taken.used = decoder.feed(came, &mut sink).map_err(wrong)?;
    let mut buffer = Vec::new();
    while !decoder.is_done() {
        buffer.resize(64 << 10, 0);
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let used = decoder.feed(&buffer[..count], &mut sink).map_err(wrong)?;
        taken.beyond.extend_from_slice(&buffer[used..count]);
    }
    if kept.len() > KEPT_BYTES_MAX {
        return Err(ErrorKind::FileTooLarge.into());
    }
    (taken.kept, taken.bytes) = (kept, bytes);
    Ok(taken)
}

/// Discards `left` bytes of the connection.
async fn discard(stream: &TcpStream, mut left: u64) -> io::Result<()> {
    while left > 0 {
        let mut ended = false;
        let result = stream.try_io(Interest::READABLE, || {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(1 << 30);
            let count = hakobu_sys::socket::discard(stream, wanted)?;
            ended = count == 0;
            left -= count as u64;
            if count > 0 && left > 0 {
                // Less than requested: no more is available, and another call would be wasted.
                return Err(ErrorKind::WouldBlock.into());
            }
            Ok(())
        });
        match result {
            Ok(()) if ended => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => stream.readable().await?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Name and value of the checksum trailer at the end of a body.
pub fn trailer(kept: &[u8]) -> Option<(&str, &str)> {
    let at = kept.windows(CHECKSUM.len()).rposition(|window| window == CHECKSUM.as_bytes())?;
    let line = kept[at..].split(|byte| b"\r\n".contains(byte)).next()?;
    let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
    Some((name, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::trailer;

    #[test]
    fn trailers() {
        for (text, expected) in [
            ("data\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", Some(("crc32", "AAAAAA=="))),
            ("0\r\nx-amz-checksum-crc64nvme: A=\r\nx-amz-t: z\r\n", Some(("crc64nvme", "A="))),
            ("data", None),
            ("x-amz-checksum-", None),
        ] {
            let found = trailer(text.as_bytes());
            let found = found.map(|(name, value)| (&name["x-amz-checksum-".len()..], value));
            assert_eq!(found, expected, "{text}");
        }
    }
}
