//! Names of profiles that the SDK's parser does not accept: with spaces, which aws reads in quotes in the config file
//! (`[profile 'my profile']`) and as they are in the credentials file. They get identifiers, in the headers and where
//! other sections name them.

use aws_runtime::env_config::file::EnvConfigFileKind;
use std::borrow::Cow;
use std::fmt::Write;

/// Properties whose values are names of sections.
const REFERENCES: &[&str] = &["source_profile", "sso_session", "services"];

/// Returns the name of a section for the parser: itself if it is an identifier (letters, digits, `_-/.%@:+`).
pub fn identifier(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-/.%@:+".contains(&byte);
    if name.bytes().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let mut text = String::new();
    for byte in name.bytes() {
        match is_plain(byte) && byte != b'%' {
            true => text.push(char::from(byte)),
            false => {
                // Writing into a string does not fail.
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    Cow::Owned(text)
}

/// Returns a file with identifiers for names.
pub fn with_identifiers(text: &str, kind: EnvConfigFileKind) -> Cow<'_, str> {
    let mut out = String::new();
    let mut changed = false;
    for line in text.split_inclusive('\n') {
        let new = match line.starts_with('[') {
            true => header(line, kind),
            false => reference(line),
        };
        changed |= new.is_some();
        out.push_str(new.as_deref().unwrap_or(line));
    }
    if changed { Cow::Owned(out) } else { Cow::Borrowed(text) }
}

/// Returns a header with identifiers, if it changes.
fn header(line: &str, kind: EnvConfigFileKind) -> Option<String> {
    let end = line.rfind(']')?;
    let (inner, rest) = (line.get(1..end)?, line.get(end..)?);
    let new = match kind {
        EnvConfigFileKind::Config => {
            if !inner.contains(['\'', '"', '\\']) {
                return None;
            }
            match words(inner)?.as_slice() {
                [kind, name] => format!("{kind} {}", identifier(name)),
                _ => return None,
            }
        }
        _ => {
            let name = inner.trim();
            match identifier(name) {
                Cow::Owned(new) if !name.starts_with("profile ") => new,
                _ => return None,
            }
        }
    };
    Some(format!("[{new}{rest}"))
}

/// Returns a property that names another section with its identifier, if it changes.
fn reference(line: &str) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    if !REFERENCES.iter().any(|known| key.trim_end().eq_ignore_ascii_case(known)) {
        return None;
    }
    // A comment begins after a blank.
    let comment = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| value.find(mark)).min();
    let name = value.get(..comment.unwrap_or(value.len()))?.trim();
    match identifier(name) {
        Cow::Owned(new) => Some(format!("{key}= {new}\n")),
        Cow::Borrowed(_) => None,
    }
}

/// Splits as a POSIX shell does, without expansions (Python's `shlex.split`, which aws uses); `None` if a quote is not
/// closed.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => match rest.next()? {
                            escaped @ ('"' | '\\') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_quotes_become_identifiers() {
        let config = EnvConfigFileKind::Config;
        for (line, expected) in [
            ("[profile 'my profile']\n", "[profile my%20profile]\n"),
            ("[profile \"my profile\"]\n", "[profile my%20profile]\n"),
            ("[profile my\\ profile] # mine\n", "[profile my%20profile] # mine\n"),
            ("[profile 'dev']", "[profile dev]"),
            ("[sso-session 'a b']\n", "[sso-session a%20b]\n"),
            ("source_profile = my profile # base\n", "source_profile = my%20profile\n"),
            ("source_profile = base\n", "source_profile = base\n"),
            ("region = 'my region'\n", "region = 'my region'\n"),
            // aws ignores these as well.
            ("[profile my profile]\n", "[profile my profile]\n"),
            ("[profile 'open]\n", "[profile 'open]\n"),
            ("[default]\n", "[default]\n"),
        ] {
            assert_eq!(with_identifiers(line, config), expected, "{line}");
        }
        let credentials = EnvConfigFileKind::Credentials;
        for (line, expected) in [
            ("[my profile]\n", "[my%20profile]\n"),
            ("[ dev ]\n", "[ dev ]\n"),
            ("[profile x]\n", "[profile x]\n"),
        ] {
            assert_eq!(with_identifiers(line, credentials), expected, "{line}");
        }
        assert_eq!(identifier("100% é"), "100%25%20%C3%A9");
        assert_eq!(identifier("a%20b"), "a%20b");
    }
}
