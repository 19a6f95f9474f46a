//! Checksums of objects and parts: compute, compare, combine, and S3's encoding.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest};
use hakobu_core::percent::hex;
use http::HeaderName;
use md5::Md5;
use ring::digest;

/// Algorithms that S3 stores with an object, and MD5 for ETags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// CRC-64/NVME, always over the full object. The default.
    Crc64Nvme,
    /// CRC-32C (Castagnoli), full object or composite.
    Crc32c,
    /// CRC-32 (ISO-HDLC), full object or composite.
    Crc32,
    /// SHA-256; composite for several parts.
    Sha256,
    /// SHA-1; composite for several parts.
    Sha1,
    /// MD5, sent as Content-MD5; the ETag of a single-part object without KMS encryption.
    Md5,
}

/// A computed or stored checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksum {
    pub algorithm: Algorithm,
    /// Value; big-endian for CRCs, as in S3's base64 form.
    pub value: Vec<u8>,
    /// Number of parts of a composite checksum, 0 for one of the full object.
    pub parts: u32,
}

impl Algorithm {
    /// All algorithms, strongest evidence per CPU second first.
    pub const ALL: [Algorithm; 6] = [
        Algorithm::Crc64Nvme,
        Algorithm::Crc32c,
        Algorithm::Crc32,
        Algorithm::Sha256,
        Algorithm::Sha1,
        Algorithm::Md5,
    ];

    /// Header, XML element (none for MD5), and length of the value in bytes.
    fn row(self) -> (&'static str, &'static str, usize) {
        match self {
            Algorithm::Crc64Nvme => ("x-amz-checksum-crc64nvme", "ChecksumCRC64NVME", 8),
            Algorithm::Crc32c => ("x-amz-checksum-crc32c", "ChecksumCRC32C", 4),
            Algorithm::Crc32 => ("x-amz-checksum-crc32", "ChecksumCRC32", 4),
            Algorithm::Sha256 => ("x-amz-checksum-sha256", "ChecksumSHA256", 32),
            Algorithm::Sha1 => ("x-amz-checksum-sha1", "ChecksumSHA1", 20),
            Algorithm::Md5 => ("content-md5", "", 16),
        }
    }

    /// Name in `x-amz-checksum-algorithm` (`CRC64NVME`); `MD5` for MD5.
    pub fn name(self) -> &'static str {
        self.element().strip_prefix("Checksum").unwrap_or("MD5")
    }

    /// Header that carries it: `x-amz-checksum-crc64nvme`, …, `content-md5`.
    pub fn header(self) -> HeaderName {
        HeaderName::from_static(self.row().0)
    }

    /// XML element that carries it: `ChecksumCRC64NVME`; empty for MD5, which has none.
    pub(crate) fn element(self) -> &'static str {
        self.row().1
    }

    /// Algorithm of an XML element; `None` for other elements.
    pub(crate) fn of_element(name: &[u8]) -> Option<Algorithm> {
        let known = Algorithm::ALL.into_iter().find(|known| known.element().as_bytes() == name);
        known.filter(|_| !name.is_empty())
    }

    /// Parses `CRC64NVME`, `crc32c`, `SHA256`, `md5` …
    pub fn parse(text: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(text))
    }

    /// Length of its value in bytes.
    pub fn value_bytes(self) -> usize {
        self.row().2
    }
}

/// Incremental computation of a checksum.
pub struct Hasher {
    algorithm: Algorithm,
    state: State,
}

enum State {
    Crc(Digest),
    Sha(digest::Context),
    Md5(Md5),
}

impl Hasher {
    /// Starts a computation.
    pub fn new(algorithm: Algorithm) -> Hasher {
        let state = match algorithm {
            Algorithm::Crc64Nvme => State::Crc(Digest::new(CrcAlgorithm::Crc64Nvme)),
            Algorithm::Crc32c => State::Crc(Digest::new(CrcAlgorithm::Crc32Iscsi)),
            Algorithm::Crc32 => State::Crc(Digest::new(CrcAlgorithm::Crc32IsoHdlc)),
            Algorithm::Sha256 => State::Sha(digest::Context::new(&digest::SHA256)),
            Algorithm::Sha1 => State::Sha(digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY)),
            Algorithm::Md5 => State::Md5(Md5::default()),
        };
        Hasher { algorithm, state }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Crc(crc) => crc.update(bytes),
            State::Sha(sha) => sha.update(bytes),
            State::Md5(md5) => md5::Digest::update(md5, bytes),
        }
    }

    pub fn finish(self) -> Checksum {
        let value = match self.state {
            State::Crc(crc) => {
                let bytes = crc.finalize().to_be_bytes();
                bytes[8 - self.algorithm.value_bytes()..].to_vec()
            }
            State::Sha(sha) => sha.finish().as_ref().to_vec(),
            State::Md5(md5) => md5::Digest::finalize(md5).to_vec(),
        };
        Checksum { algorithm: self.algorithm, value, parts: 0 }
    }
}

impl Checksum {
    /// Checksum of a buffer.
    pub fn of(algorithm: Algorithm, bytes: &[u8]) -> Checksum {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// S3's form: base64, followed by `-N` for a composite checksum.
    pub fn encode(&self) -> String {
        self.with_parts(STANDARD.encode(&self.value))
    }

    fn with_parts(&self, value: String) -> String {
        match self.parts {
            0 => value,
            parts => format!("{value}-{parts}"),
        }
    }

    /// Parses S3's form. `None` if the form or length is wrong.
    pub fn decode(algorithm: Algorithm, text: &str) -> Option<Checksum> {
        let (value, parts) = match text.split_once('-') {
            Some((value, parts)) => {
                let digits = !parts.is_empty() && parts.bytes().all(|b| b.is_ascii_digit());
                (value, parts.parse().ok().filter(|parts| digits && *parts > 0)?)
            }
            None => (text, 0),
        };
        let value = STANDARD.decode(value).ok()?;
        let fits = value.len() == algorithm.value_bytes();
        fits.then_some(Checksum { algorithm, value, parts })
    }

    /// Composite checksum (or composite ETag for MD5) of parts: the hash of their hashes.
    pub fn composite(algorithm: Algorithm, parts: &[Checksum]) -> Checksum {
        let mut hasher = Hasher::new(algorithm);
        for part in parts {
            hasher.update(&part.value);
        }
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        Checksum { parts: count, ..hasher.finish() }
    }

    /// An MD5 as an ETag without quotes: hexadecimal, followed by `-N` if composite. `None` for other
    /// algorithms.
    pub fn etag(&self) -> Option<String> {
        (self.algorithm == Algorithm::Md5).then(|| self.with_parts(hex(&self.value)))
    }
}

/// CRC-64/NVME of a concatenation of `first` and `second`, of which `second` is `second_bytes` long.
pub fn combine_crc64(first: u64, second: u64, second_bytes: u64) -> u64 {
    crc_fast::checksum_combine(CrcAlgorithm::Crc64Nvme, first, second, second_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex_of(algorithm: Algorithm, bytes: &[u8]) -> String {
        hex(&Checksum::of(algorithm, bytes).value)
    }

    /// Check values of the CRC catalogue (for "123456789"), FIPS 180 and RFC 1321.
    #[test]
    fn known_answers() {
        assert_eq!(hex_of(Algorithm::Crc64Nvme, b"123456789"), "ae8b14860a799888");
        assert_eq!(hex_of(Algorithm::Crc32c, b"123456789"), "e3069283");
        assert_eq!(hex_of(Algorithm::Crc32, b"123456789"), "cbf43926");
        assert_eq!(hex_of(Algorithm::Sha1, b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(
            hex_of(Algorithm::Sha256, b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(hex_of(Algorithm::Md5, b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(Checksum::of(Algorithm::Md5, b"").encode(), "1B2M2Y8AsgTpgAmY7PhCfg==");
        assert_eq!(Checksum::of(Algorithm::Crc64Nvme, b"").encode(), "AAAAAAAAAAA=");
    }

    #[test]
    fn names_headers_and_lengths() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::parse(algorithm.name()), Some(algorithm));
            assert_eq!(Algorithm::parse(&algorithm.name().to_lowercase()), Some(algorithm));
            assert_eq!(Checksum::of(algorithm, b"x").value.len(), algorithm.value_bytes());
            let header = algorithm.header();
            assert!(header.as_str().ends_with(&algorithm.name().to_lowercase()), "{header}");
        }
        assert_eq!(Algorithm::parse("crc64"), None);
    }

    #[test]
    fn what_is_no_checksum_is_not_decoded() {
        for text in
            ["", "-", "AAAA", "y/Q5Jg==-", "y/Q5Jg==-0", "y/Q5Jg==-x", "y/Q5Jg==-+1", "y/Q5J"]
        {
            assert_eq!(Checksum::decode(Algorithm::Crc32, text), None, "{text}");
        }
        let whole = Checksum::decode(Algorithm::Crc32, "y/Q5Jg==").unwrap();
        assert_eq!(whole, Checksum::of(Algorithm::Crc32, b"123456789"));
        assert_eq!(Checksum::decode(Algorithm::Crc32, "y/Q5Jg==-3").unwrap().parts, 3);
        assert_eq!(Checksum::decode(Algorithm::Crc64Nvme, "y/Q5Jg=="), None);
    }

    #[test]
    fn an_etag_of_parts_is_the_md5_of_their_md5s() {
        let parts = [b"a", b"b"].map(|part| Checksum::of(Algorithm::Md5, part));
        let joined = [parts[0].value.clone(), parts[1].value.clone()].concat();
        let etag = Checksum::composite(Algorithm::Md5, &parts).etag().unwrap();
        assert_eq!(etag, format!("{}-2", hex_of(Algorithm::Md5, &joined)));
        assert_eq!(Checksum::of(Algorithm::Sha1, b"").etag(), None);
    }

    proptest! {
        #[test]
        fn pieces_make_the_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..2_000), at in any::<prop::sample::Index>(),
        ) {
            let (first, second) = bytes.split_at(at.index(bytes.len() + 1));
            for algorithm in Algorithm::ALL {
                let mut hasher = Hasher::new(algorithm);
                hasher.update(first);
                hasher.update(second);
                let whole = Checksum::of(algorithm, &bytes);
                prop_assert_eq!(&hasher.finish(), &whole);
                prop_assert_eq!(Checksum::decode(algorithm, &whole.encode()), Some(whole));
            }
            let crc = |bytes| {
                let value = Checksum::of(Algorithm::Crc64Nvme, bytes).value;
                u64::from_be_bytes(value.try_into().unwrap())
            };
            let joined = combine_crc64(crc(first), crc(second), second.len() as u64);
            prop_assert_eq!(joined, crc(&bytes));
        }
    }
}
