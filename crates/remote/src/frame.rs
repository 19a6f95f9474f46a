//! Frames: the length of the body (32 bits, little-endian), the kind of the message (8 bits), the body.

use std::io::{self, Read, Write};

/// Most bytes of a body. A frame that announces more is refused before anything is allocated for it.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// Bytes before the body.
pub const HEAD_BYTES: usize = 5;

/// A frame: the kind of its message, and the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub body: Vec<u8>,
}

/// Reads the next frame; `None` at the end of the stream between two frames.
///
/// # Errors
/// Those of reading; `UnexpectedEof` inside a frame; `InvalidData` for a body of more than [`BODY_BYTES_MAX`].
pub fn read(from: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut head = [0; HEAD_BYTES];
    let mut filled = 0;
    while let Some(space) = head.get_mut(filled..).filter(|space| !space.is_empty()) {
        match from.read(space) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => filled += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let [a, b, c, d, kind] = head;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > BODY_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"));
    }
    let mut body = Vec::with_capacity(length);
    if from.by_ref().take(length as u64).read_to_end(&mut body)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(Frame { kind, body }))
}

/// Writes a frame.
///
/// # Errors
/// Those of writing; `InvalidInput` for a body of more than [`BODY_BYTES_MAX`].
pub fn write(to: &mut impl Write, frame: &Frame) -> io::Result<()> {
    let length = frame.body.len();
    if length > BODY_BYTES_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let [a, b, c, d] = (length as u32).to_le_bytes();
    to.write_all(&[a, b, c, d, frame.kind])?;
    to.write_all(&frame.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_and_end_between_two() {
        let frames = [
            Frame { kind: 7, body: b"abc".to_vec() },
            Frame { kind: 0, body: Vec::new() },
            Frame { kind: 255, body: vec![9; BODY_BYTES_MAX] },
        ];
        let mut stream = Vec::new();
        frames.iter().for_each(|frame| write(&mut stream, frame).unwrap());
        let mut from = &*stream;
        for frame in &frames {
            assert_eq!(read(&mut from).unwrap().as_ref(), Some(frame));
        }
        assert_eq!(read(&mut from).unwrap(), None);
        for cut in [1, 4, 6, 7] {
            let error = read(&mut stream.get(..cut).unwrap()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{cut}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_it_is_read() {
        let head = [(BODY_BYTES_MAX as u32 + 1).to_le_bytes().as_slice(), &[1]].concat();
        let error = read(&mut &*head).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let body = vec![0; BODY_BYTES_MAX + 1];
        let error = write(&mut Vec::new(), &Frame { kind: 1, body }).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
