//! Mapping of local names to keys and back; pure. docs/s3.md has the table.
//!
//! Without encoding both are the same bytes, or the name is refused. With encoding each component of a path has a key
//! and each component of a key has a path, one to one. Names valid on both sides stay unchanged. The others get a
//! mark and are percent-encoded: `E(x)` is `%=` and then `x` with `%`, NUL and bytes that are not UTF-8 as `%XX`.
//!
//! - A path component `p` that is not UTF-8 has the key `E(p)`.
//! - A key component `k` that no file can have (empty, `.`, `..`, with a NUL) has the path `E(k)`.
//! - To avoid collisions, names that already look encoded are encoded once more: the path `E(p)` has the key
//!   `E(E(p))`, the key `E(k)` has the path `E(E(k))`, and so on.

use std::borrow::Cow;

/// Maximum length of a path component, in bytes: NAME_MAX of limits.h.
const COMPONENT_BYTES_MAX: usize = 255;
/// Maximum length of a key, in bytes: "Naming Amazon S3 objects", S3 User Guide.
const KEY_BYTES_MAX: usize = 1024;
/// Prefix of every encoded component.
const MARK: &[u8] = b"%=";

/// Reason that a name cannot be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// A component is `.` or `..`, or empty, or contains a NUL: no file can have that name, or it would leave the
    /// target folder.
    NoPath,
    /// A component is longer than 255 bytes.
    TooLong,
    /// The local name is not UTF-8, as keys must be.
    NotUtf8,
    /// The key is longer than 1,024 bytes.
    KeyTooLong,
}

impl NameError {
    /// Returns the reason, as the end of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            NameError::NoPath => {
                "no file can have that name: a part of it is empty, '.', '..', or holds a NUL \
                 (--encode-names writes it percent-encoded)"
            }
            NameError::TooLong => "a part of its name is longer than 255 bytes",
            NameError::NotUtf8 => {
                "its name is not UTF-8, which keys have to be (--encode-names writes it \
                 percent-encoded)"
            }
            NameError::KeyTooLong => "its key would be longer than 1,024 bytes",
        }
    }
}

/// Returns the key (below the prefix) for a relative local path without a slash at its end. The caller must check the
/// total length with the prefix ([`KEY_BYTES_MAX`] applies to the returned part).
///
/// # Errors
/// [`NameError`]; with `encode` invalid components are percent-encoded instead.
pub fn key_of(path: &[u8], encode: bool) -> Result<Vec<u8>, NameError> {
    let mut key = Vec::with_capacity(path.len());
    for (at, component) in path.split(|byte| *byte == b'/').enumerate() {
        if at > 0 {
            key.push(b'/');
        }
        if !is_file_name(component) {
            return Err(NameError::NoPath);
        }
        if component.len() > COMPONENT_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        if encode {
            key.extend_from_slice(&component_key(component));
        } else if std::str::from_utf8(component).is_ok() {
            key.extend_from_slice(component);
        } else {
            return Err(NameError::NotUtf8);
        }
    }
    if key.len() > KEY_BYTES_MAX { Err(NameError::KeyTooLong) } else { Ok(key) }
}

/// Returns the relative local path for a key (below the prefix). The caller removes the slash of a folder marker
/// (`a/`) first.
///
/// # Errors
/// [`NameError`]; with `encode` components that no file can have are percent-encoded instead.
pub fn path_of(key: &[u8], encode: bool) -> Result<Vec<u8>, NameError> {
    if key.len() > KEY_BYTES_MAX {
        return Err(NameError::KeyTooLong);
    }
    let mut path = Vec::with_capacity(key.len());
    for (at, component) in key.split(|byte| *byte == b'/').enumerate() {
        if at > 0 {
            path.push(b'/');
        }
        let component = if encode { component_path(component) } else { component.into() };
        if !is_file_name(&component) {
            return Err(NameError::NoPath);
        }
        if component.len() > COMPONENT_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        path.extend_from_slice(&component);
    }
    Ok(path)
}

/// Returns the sort key of a local name with `encode`: its key, whatever its length; folders keep the slash at their
/// end.
pub(super) fn sort_key(name: &[u8]) -> Cow<'_, [u8]> {
    if std::str::from_utf8(name).is_ok() && !name.windows(2).any(|two| two == MARK) {
        return Cow::Borrowed(name);
    }
    let mut key = Vec::with_capacity(name.len() + 16);
    let (inner, end) = match name.strip_suffix(b"/") {
        Some(inner) => (inner, &b"/"[..]),
        None => (name, &b""[..]),
    };
    for (at, component) in inner.split(|byte| *byte == b'/').enumerate() {
        if at > 0 {
            key.push(b'/');
        }
        key.extend_from_slice(&component_key(component));
    }
    key.extend_from_slice(end);
    Cow::Owned(key)
}

/// Returns whether a directory can have an entry of that name.
fn is_file_name(component: &[u8]) -> bool {
    !matches!(component, b"" | b"." | b"..") && !component.contains(&0)
}

fn component_key(path: &[u8]) -> Cow<'_, [u8]> {
    let (depth, core) = peeled(path);
    match (std::str::from_utf8(&core).is_ok(), is_file_name(&core)) {
        (false, true) => encoded(path).into(),
        (true, false) if depth > 0 => decoded(path).map_or(path.into(), Cow::Owned),
        _ => path.into(),
    }
}

fn component_path(key: &[u8]) -> Cow<'_, [u8]> {
    let (depth, core) = peeled(key);
    match (std::str::from_utf8(&core).is_ok(), is_file_name(&core)) {
        (false, true) if depth > 0 => decoded(key).map_or(key.into(), Cow::Owned),
        (true, false) => encoded(key).into(),
        _ => key.into(),
    }
}

/// Removes nested encodings; returns their number and the inner text.
fn peeled(component: &[u8]) -> (usize, Cow<'_, [u8]>) {
    let mut inside = Cow::Borrowed(component);
    let mut depth = 0;
    while let Some(next) = decoded(&inside) {
        inside = Cow::Owned(next);
        depth += 1;
    }
    (depth, inside)
}

/// Returns `E` of the module's documentation.
fn encoded(component: &[u8]) -> Vec<u8> {
    let mut out = MARK.to_vec();
    let escape = |out: &mut Vec<u8>, byte: u8| {
        let digit = |nibble: u8| b"0123456789ABCDEF"[usize::from(nibble & 15)];
        out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte)]);
    };
    for chunk in component.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            if matches!(byte, 0 | b'%') {
                escape(&mut out, byte);
            } else {
                out.push(byte);
            }
        }
        for byte in chunk.invalid() {
            escape(&mut out, *byte);
        }
    }
    out
}

/// Inverts [`encoded`]; returns `None` for text that it never produces.
fn decoded(component: &[u8]) -> Option<Vec<u8>> {
    let rest = component.strip_prefix(MARK)?;
    let mut out = Vec::with_capacity(rest.len());
    let mut bytes = rest.iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'%' {
            let mut digit = || (*bytes.next()? as char).to_digit(16);
            out.push(u8::try_from(digit()? << 4 | digit()?).ok()?);
        } else {
            out.push(*byte);
        }
    }
    (encoded(&out) == component).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates problematic components, and encodings of them.
    fn component() -> impl Strategy<Value = Vec<u8>> {
        let plain = prop::collection::vec(
            prop_oneof![
                Just(b'a'),
                Just(b'%'),
                Just(b'='),
                Just(b'.'),
                Just(b'2'),
                Just(b'E'),
                Just(0),
                Just(0xff),
                Just(0xc3),
                Just(0xa4)
            ],
            0..5,
        );
        (plain, 0..3_u8)
            .prop_map(|(plain, depth)| (0..depth).fold(plain, |component, _| encoded(&component)))
    }

    fn name() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(component(), 1..4).prop_map(|parts| parts.join(&b'/'))
    }

    fn is_path(path: &[u8]) -> bool {
        path.split(|byte| *byte == b'/').all(is_file_name)
    }

    proptest! {
        #[test]
        fn a_path_comes_back_from_its_key(path in name(), encode: bool) {
            let is_utf8 = std::str::from_utf8(&path).is_ok();
            match key_of(&path, encode) {
                Ok(key) => {
                    prop_assert!(std::str::from_utf8(&key).is_ok());
                    prop_assert!(encode || key == path);
                    prop_assert_eq!(path_of(&key, encode), Ok(path.clone()));
                    prop_assert_eq!(&*sort_key(&path), &*key_of(&path, true).unwrap());
                }
                Err(NameError::NoPath) => prop_assert!(!is_path(&path)),
                Err(error) => {
                    prop_assert_eq!(error, NameError::NotUtf8);
                    prop_assert!(!encode && !is_utf8);
                }
            }
        }

        #[test]
        fn a_key_comes_back_from_its_path_and_never_leaves_the_folder(key in name(), encode: bool) {
            let Ok(text) = String::from_utf8(key.clone()) else { return Ok(()) };
            match path_of(text.as_bytes(), encode) {
                Ok(path) => {
                    prop_assert!(is_path(&path), "{}", path.escape_ascii());
                    prop_assert_eq!(key_of(&path, encode), Ok(key));
                }
                Err(error) => {
                    prop_assert_eq!(error, NameError::NoPath);
                    prop_assert!(!encode && !is_path(&key));
                }
            }
        }
    }

    #[test]
    fn the_table() {
        for (key, path) in [
            (&b"a/b c"[..], Some(&b"a/b c"[..])),
            (b"a//b", None),
            (b"/a", None),
            (b"a/", None),
            (b"", None),
            (b"a/./b", None),
            (b"../b", None),
            (b"a\0b", None),
            (b"100%/%41/.../$x\n", Some(b"100%/%41/.../$x\n")),
        ] {
            assert_eq!(path_of(key, false).ok().as_deref(), path, "{}", key.escape_ascii());
        }
        for (key, path) in [
            (&b"a//b"[..], &b"a/%=/b"[..]),
            (b"/a", b"%=/a"),
            (b"../b", b"%=../b"),
            (b"a\0b", b"%=a%00b"),
            (b"%=caf%E9", b"caf\xe9"),
            (b"%=x", b"%=x"),
            (b"%=..", b"%=%25=.."),
            (b"100%/%41", b"100%/%41"),
        ] {
            assert_eq!(path_of(key, true).as_deref(), Ok(path), "{}", key.escape_ascii());
            assert_eq!(key_of(path, true).as_deref(), Ok(key), "{}", path.escape_ascii());
        }
    }

    #[test]
    fn lengths() {
        assert_eq!(key_of(&[b'a'; 256], true), Err(NameError::TooLong));
        assert_eq!(path_of(&[b'a'; 256], true), Err(NameError::TooLong));
        assert_eq!(path_of(&[0; 100], true), Err(NameError::TooLong));
        let long = [&[b'a'; 200][..]; 6].join(&b'/');
        assert_eq!(key_of(&long, false), Err(NameError::KeyTooLong));
        assert_eq!(path_of(&long, false), Err(NameError::KeyTooLong));
    }
}
