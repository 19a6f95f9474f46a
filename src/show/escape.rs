//! Escaping of names for a terminal or a log: control bytes are written as `\#012`, as in rsync (rsync(1),
//! `--8-bit-output`), or quoted for a shell.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes above 127 that count as printable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// None (a locale without UTF-8).
    Ascii,
    /// Those that are characters in UTF-8.
    Utf8,
    /// All (`-8`).
    EightBit,
}

impl Escape {
    /// Returns the setting for the locale of the environment.
    pub fn of_locale() -> Escape {
        let value = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
            .unwrap_or_default()
            .to_ascii_lowercase();
        if value.contains("utf-8") || value.contains("utf8") { Escape::Utf8 } else { Escape::Ascii }
    }

    /// Appends `name` to `out` with unprintable characters escaped. A backslash is escaped only if the text would
    /// look like an escape.
    pub fn push(self, name: &[u8], out: &mut Vec<u8>) {
        for chunk in name.utf8_chunks() {
            let valid = chunk.valid();
            for (at, c) in valid.char_indices() {
                let bytes = &valid.as_bytes()[at..at + c.len_utf8()];
                let plain = match c {
                    '\t' => true,
                    '\\' => !looks_escaped(&valid.as_bytes()[at..]),
                    c if c.is_ascii() => !c.is_ascii_control(),
                    c => match self {
                        Escape::Ascii => false,
                        Escape::Utf8 => !c.is_control(),
                        Escape::EightBit => true,
                    },
                };
                if plain { out.extend_from_slice(bytes) } else { octal(bytes, out) }
            }
            match self {
                Escape::EightBit => out.extend_from_slice(chunk.invalid()),
                _ => octal(chunk.invalid(), out),
            }
        }
    }

    /// Returns a path as text.
    pub fn path(self, path: &Path) -> String {
        let mut out = Vec::new();
        self.push(path.as_os_str().as_bytes(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn looks_escaped(text: &[u8]) -> bool {
    matches!(text, [b'\\', b'#', a, b, c, ..]
        if [a, b, c].iter().all(|digit| digit.is_ascii_digit()))
}

fn octal(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.extend_from_slice(format!("\\#{byte:03o}").as_bytes());
    }
}

/// Appends `name` quoted so that a shell reads it as one word, in the style of cp's `-v`.
pub fn push_quoted(name: &[u8], out: &mut Vec<u8>) {
    let control = |b: &u8| b.is_ascii_control() || *b >= 0x80;
    let is_text = std::str::from_utf8(name).is_ok_and(|text| !text.chars().any(char::is_control));
    let active = |b: &u8| matches!(b, b'"' | b'\\' | b'$' | b'`' | b'!');
    if is_text && name.contains(&b'\'') && !name.iter().any(active) {
        out.push(b'"');
        out.extend_from_slice(name);
        out.push(b'"');
        return;
    }
    out.push(b'\'');
    // Whether the previous bytes were escapes, inside of $'…'.
    let mut escaping = false;
    for byte in name {
        let escape = !is_text && control(byte);
        match (escape, escaping) {
            (true, false) => out.extend_from_slice(b"'$'"),
            (false, true) if *byte != b'\'' => out.extend_from_slice(b"''"),
            _ => {}
        }
        escaping = escape;
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            b if escape => match b"abtnvfr".get(usize::from(b.wrapping_sub(7))) {
                Some(letter) => out.extend_from_slice(&[b'\\', *letter]),
                None => out.extend_from_slice(format!("\\{b:03o}").as_bytes()),
            },
            b => out.push(*b),
        }
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(how: Escape, name: &[u8]) -> String {
        let mut out = Vec::new();
        how.push(name, &mut out);
        out.escape_ascii().to_string()
    }

    #[test]
    fn as_rsync() {
        for (name, ascii, utf8, eight) in [
            (&b"plain"[..], "plain", "plain", "plain"),
            (b"a\nb", r"a\\#012b", r"a\\#012b", r"a\\#012b"),
            (b"\\#012", r"\\#134#012", r"\\#134#012", r"\\#134#012"),
            (b"a\\#b", r"a\\#b", r"a\\#b", r"a\\#b"),
            (b"c\\d\t", r"c\\d\t", r"c\\d\t", r"c\\d\t"),
            ("ä".as_bytes(), r"\\#303\\#244", r"\xc3\xa4", r"\xc3\xa4"),
            (b"\xff", r"\\#377", r"\\#377", r"\xff"),
            (b"\x1b[2J\x7f", r"\\#033[2J\\#177", r"\\#033[2J\\#177", r"\\#033[2J\\#177"),
            ("\u{85}".as_bytes(), r"\\#302\\#205", r"\\#302\\#205", r"\xc2\x85"),
        ] {
            assert_eq!(escaped(Escape::Ascii, name), ascii);
            assert_eq!(escaped(Escape::Utf8, name), utf8);
            assert_eq!(escaped(Escape::EightBit, name), eight);
        }
    }

    #[test]
    fn quoted() {
        for (name, text) in [
            (&b"a b"[..], "'a b'"),
            (b"it's", "\"it's\""),
            (b"it's $5", "'it'\\''s $5'"),
            (b"a\nb", "'a'$'\\n''b'"),
            (b"\xff", "''$'\\377'"),
            (b"t\t", "'t'$'\\t'"),
            (b"\x01\x02k", "''$'\\001\\002''k'"),
            (b"", "''"),
        ] {
            let mut out = Vec::new();
            push_quoted(name, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_active_comes_through(name: Vec<u8>) {
            let mut out = Vec::new();
            Escape::Utf8.push(&name, &mut out);
            let text = String::from_utf8(out);
            proptest::prop_assert!(text.is_ok_and(|t| t.chars().all(|c| c == '\t' || !c.is_control())));
        }
    }
}
