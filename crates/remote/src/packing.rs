//! Compression of frames (`-z`): the body of a packed one is a frame of zstd that declares its size (RFC 8878, 3.1.1.1.4).

use crate::frame::{BODY_BYTES_MAX, Frame};
use crate::message::ProtocolError;
use std::ops::RangeInclusive;

/// Kinds of packed frames have this bit.
const PACKED: u8 = 0x80;
/// Smaller bodies are not worth it.
const BODY_BYTES_MIN: usize = 128;
/// zstd's own default, and rsync's.
pub const LEVEL: i32 = 3;

/// Suffixes of files that are compressed already: rsync's default of `--skip-compress`.
const SKIPPED: &str = "3g2/3gp/7z/aac/ace/apk/avi/bz2/deb/dmg/ear/f4v/flac/flv/gpg/gz/iso/jar/jpeg/jpg/lrz/lz/lz4/\
    lzma/lzo/m1[av]/m2[atv]/m2ts/m4[abprv]/mka/mkv/mov/mp[1234]/mpa/mpeg/mpg/mpv/mts/od[bfgimpst]/og[agmvx]/opus/\
    ot[ghpst]/oxt/png/qt/rar/rpm/rz/rzip/spx/squashfs/sx[cdgmw]/sz/tbz/tbz2/tgz/tlz/ts/txz/tzo/vob/war/webm/webp/xz/\
    z/zip/zst";

/// How frames are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// A level of zstd.
    pub level: i32,
    /// Patterns of suffixes, each of sets of lowercase letters.
    skipped: Vec<Vec<Vec<u8>>>,
}

/// Returns the levels that there are.
pub fn levels() -> RangeInclusive<i32> {
    zstd::compression_level_range()
}

impl Packing {
    /// `skipped`: suffixes of files whose content is not compressed, with slashes between them; `[..]` is any letter of a set.
    ///
    /// # Errors
    /// A set that is empty or has no end.
    pub fn new(level: i32, skipped: Option<&[u8]>) -> Result<Packing, &'static str> {
        let list = skipped.unwrap_or(SKIPPED.as_bytes());
        let suffixes = list.split(|byte| *byte == b'/').filter(|suffix| !suffix.is_empty());
        let skipped = suffixes.map(sets).collect::<Result<_, _>>()?;
        Ok(Packing { level, skipped })
    }

    /// Returns whether the content of a file is sent as it is.
    pub fn skips(&self, name: &[u8]) -> bool {
        let Some(dot) = name.iter().rposition(|byte| *byte == b'.') else { return false };
        let suffix = name.get(dot + 1..).unwrap_or_default();
        let fits = |sets: &Vec<Vec<u8>>| {
            sets.len() == suffix.len()
                && sets
                    .iter()
                    .zip(suffix)
                    .all(|(set, byte)| set.contains(&byte.to_ascii_lowercase()))
        };
        self.skipped.iter().any(fits)
    }
}

fn sets(suffix: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut sets = Vec::new();
    let mut bytes = suffix.iter().map(u8::to_ascii_lowercase);
    while let Some(byte) = bytes.next() {
        sets.push(match byte {
            b'[' => {
                let mut is_closed = false;
                let ends = |byte: &u8| {
                    is_closed = *byte == b']';
                    !is_closed
                };
                let set: Vec<u8> = bytes.by_ref().take_while(ends).collect();
                if set.is_empty() || !is_closed {
                    return Err("a set of letters is empty or has no end");
                }
                set
            }
            byte => vec![byte],
        });
    }
    Ok(sets)
}

/// Compresses a frame, if that makes it shorter.
pub fn pack(frame: Frame, level: i32) -> Frame {
    if frame.body.len() < BODY_BYTES_MIN {
        return frame;
    }
    match zstd::bulk::compress(&frame.body, level) {
        Ok(body) if body.len() < frame.body.len() => Frame { kind: frame.kind | PACKED, body },
        _ => frame,
    }
}

/// Returns a frame as it was before it was compressed, if it was.
///
/// # Errors
/// It is damaged, or declares no size or one that no frame has.
pub fn unpack(frame: Frame) -> Result<Frame, ProtocolError> {
    if frame.kind & PACKED == 0 {
        return Ok(frame);
    }
    let damaged = ProtocolError("a compressed message is damaged");
    let declared = zstd::zstd_safe::get_frame_content_size(&frame.body).ok().flatten();
    let size = declared.and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|size| *size <= BODY_BYTES_MAX).ok_or(damaged)?;
    // No more than that is allocated or written.
    let body = zstd::bulk::decompress(&frame.body, size).map_err(|_| damaged)?;
    match body.len() == size {
        true => Ok(Frame { kind: frame.kind & !PACKED, body }),
        false => Err(damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_survive(kind in 0..0x80_u8, unit in proptest::collection::vec(any::<u8>(), 0..200), times in 0..300_usize, level in -7..12_i32) {
            let frame = Frame { kind, body: unit.repeat(times) };
            let packed = pack(frame.clone(), level);
            prop_assert!(packed.body.len() <= frame.body.len());
            prop_assert_eq!(unpack(packed), Ok(frame));
        }

        #[test]
        fn anything_can_be_unpacked(kind: u8, body: Vec<u8>) {
            drop(unpack(Frame { kind, body }));
        }

        #[test]
        fn damaged_frames_can_be_unpacked(at: usize, with: u8, times in 1..5000_usize) {
            let mut packed = pack(Frame { kind: 7, body: b"abcdefgh".repeat(100 + times) }, LEVEL);
            let at = at % packed.body.len();
            packed.body[at] = with;
            if let Ok(frame) = unpack(packed) {
                prop_assert!(frame.body.len() <= BODY_BYTES_MAX);
            }
        }
    }

    /// What would become more than a frame may hold is refused, whether it says so or not.
    #[test]
    fn bombs_are_refused() {
        let zeroes = vec![0; 64 << 20];
        let body = zstd::bulk::compress(&zeroes, 19).unwrap();
        assert!(body.len() < 1 << 16);
        assert!(unpack(Frame { kind: PACKED | 7, body: body.clone() }).is_err());
        // Two frames, the first of which is short.
        let mut two = zstd::bulk::compress(&[0; 100], 3).unwrap();
        two.extend(body);
        assert!(unpack(Frame { kind: PACKED | 7, body: two }).is_err());
        // A frame that does not declare its size.
        let body = zstd::stream::encode_all(&*zeroes, 3).unwrap();
        assert!(unpack(Frame { kind: PACKED | 7, body }).is_err());
        assert!(unpack(Frame { kind: PACKED, body: Vec::new() }).is_err());
    }

    #[test]
    fn suffixes() {
        let packing = Packing::new(LEVEL, None).unwrap();
        for name in ["a.gz", "b.MP4", "c.tar.zst", ".jpg", "x.odt"] {
            assert!(packing.skips(name.as_bytes()), "{name}");
        }
        for name in ["a", "gz", "a.gz.txt", "a.gzz", "a.", "mp3"] {
            assert!(!packing.skips(name.as_bytes()), "{name}");
        }
        let own = Packing::new(LEVEL, Some(b"x[ab]/LOG")).unwrap();
        assert!(own.skips(b"1.xa") && own.skips(b"1.XB") && own.skips(b"1.log"));
        assert!(!own.skips(b"1.gz") && !own.skips(b"1.x"));
        assert!(!Packing::new(LEVEL, Some(b"")).unwrap().skips(b"1.gz"));
        assert!(
            Packing::new(LEVEL, Some(b"a[")).is_err() && Packing::new(LEVEL, Some(b"a[]")).is_err()
        );
    }
}
