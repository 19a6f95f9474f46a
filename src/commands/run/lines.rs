//! Parser of a run file's lines: split as in a shell, without any expansion; s5cmd's short options are translated.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Splits a line into words. Quotes, backslashes and `$'…'` mean the same as in a shell; `#` at the start of a word
/// begins a comment. An empty result means nothing to do.
///
/// # Errors
/// The mistake in the line.
pub fn words(line: &[u8]) -> Result<Vec<OsString>, &'static str> {
    const OPEN: &str = "a quote is not closed";
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => words.extend(word.take().map(OsString::from_vec)),
            b'#' if word.is_none() => break,
            0 => return Err("a NUL cannot be part of a word"),
            b'\'' => {
                let end = rest.iter().position(|byte| *byte == b'\'').ok_or(OPEN)?;
                word.get_or_insert_default().extend_from_slice(&rest[..end]);
                rest = &rest[end + 1..];
            }
            b'"' => double_quoted(&mut rest, word.get_or_insert_default()).ok_or(OPEN)?,
            b'$' if rest.starts_with(b"'") => {
                rest = &rest[1..];
                escaped(&mut rest, word.get_or_insert_default()).ok_or(OPEN)?;
            }
            b'\\' => {
                let (&next, after) = rest.split_first().ok_or("a backslash ends the line")?;
                word.get_or_insert_default().push(next);
                rest = after;
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word.map(OsString::from_vec));
    Ok(words)
}

/// Reads up to the closing quote; a backslash escapes `"`, `\`, `$` and a backtick.
fn double_quoted(rest: &mut &[u8], word: &mut Vec<u8>) -> Option<()> {
    loop {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        match (byte, rest.first()) {
            (b'"', _) => return Some(()),
            (b'\\', Some(&next @ (b'"' | b'\\' | b'$' | b'`'))) => {
                word.push(next);
                *rest = &rest[1..];
            }
            _ => word.push(byte),
        }
    }
}

/// Reads `$'…'` up to the closing quote, with C's escapes.
fn escaped(rest: &mut &[u8], word: &mut Vec<u8>) -> Option<()> {
    loop {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        match byte {
            b'\'' => return Some(()),
            b'\\' => {
                let (&letter, after) = rest.split_first()?;
                *rest = after;
                match letter {
                    b'a' => word.push(7),
                    b'b' => word.push(8),
                    b't' => word.push(b'\t'),
                    b'n' => word.push(b'\n'),
                    b'v' => word.push(11),
                    b'f' => word.push(12),
                    b'r' => word.push(b'\r'),
                    b'0'..=b'7' => {
                        let digits = rest.iter().take(2).take_while(|b| (b'0'..=b'7').contains(b));
                        let digits: Vec<u8> = digits.copied().collect();
                        let value = digits.iter().fold(u32::from(letter - b'0'), |sum, digit| {
                            sum * 8 + u32::from(digit - b'0')
                        });
                        word.push(value as u8);
                        *rest = &rest[digits.len()..];
                    }
                    other => word.push(other),
                }
            }
            other => word.push(other),
        }
    }
}

/// Returns whether a line has patterns without a style: then the style is s5cmd's.
pub fn has_patterns(words: &[OsString]) -> bool {
    let begins = |name: &str| {
        words
            .iter()
            .any(|word| word.to_str().is_some_and(|word| word.split('=').next() == Some(name)))
    };
    (begins("--exclude") || begins("--include")) && !begins("--filter-style")
}

/// Returns why a line of a command may not run: its options could start programs. A file from elsewhere must not.
pub fn starts_programs(command: &str, words: &[OsString]) -> Option<&'static str> {
    let named = |option: &str, bytes_min: usize| {
        let mut options = words.iter().take_while(|word| *word != "--");
        options.any(|word| {
            let name = word.to_str().and_then(|word| word.split('=').next()).unwrap_or("");
            // Long options may be abbreviated.
            name.len() >= bytes_min && option.starts_with(name)
        })
    };
    if command == "sync" && named("--cluster", "--cl".len()) {
        return Some("--cluster starts workers: it is no option of a line");
    }
    // Such a file may name a program that prints the keys (`credential_process`).
    named("--credentials-file", "--cr".len())
        .then_some("--credentials-file is for all lines: give it to hakobu run")
}

/// Options without a value that s5cmd accepts with one, `-n=true`, for all commands.
const SWITCHES: &[&str] = &[
    "all-versions",
    "delete",
    "etag",
    "exit-on-error",
    "flatten",
    "group",
    "humanize",
    "if-size-differ",
    "if-source-newer",
    "no-clobber",
    "no-follow-symlinks",
    "raw",
    "show-fullpath",
    "show-progress",
    "size-only",
];
/// Their short spellings, by command.
const SHORT_SWITCHES: &[(&str, &[&str])] = &[
    ("cp", &["f", "n", "s", "sp", "u"]),
    ("mv", &["f", "n", "s", "sp", "u"]),
    ("ls", &["e", "s", "H"]),
    ("du", &["g", "H"]),
    ("pipe", &["n"]),
];

/// Returns a switch that has a value without it; `None` if the value switches it off. Other words are unchanged.
fn without_value(command: &OsStr, word: OsString) -> Option<OsString> {
    let parts = word.to_str().and_then(|text| {
        let (name, value) = text.strip_prefix('-')?.split_once('=')?;
        let (dashes, name) = match name.strip_prefix('-') {
            Some(long) => ("--", long),
            None => ("-", name),
        };
        let mut commands = SHORT_SWITCHES.iter();
        let short =
            commands.find(|(of, _)| command == *of).is_some_and(|(_, it)| it.contains(&name));
        // The words of Go's strconv.ParseBool.
        let on = match value {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
            "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
            _ => return None,
        };
        (SWITCHES.contains(&name) || short).then(|| (on, format!("{dashes}{name}")))
    });
    match parts {
        Some((on, name)) => on.then(|| name.into()),
        None => Some(word),
    }
}

/// Options that s5cmd accepts with one dash as well.
const LONG: &[&str] = &[
    "acl",
    "all-versions",
    "cache-control",
    "concurrency",
    "content-disposition",
    "content-encoding",
    "content-type",
    "delete",
    "destination-region",
    "etag",
    "exclude",
    "exit-on-error",
    "expire",
    "expires",
    "flatten",
    "group",
    "humanize",
    "if-size-differ",
    "if-source-newer",
    "include",
    "metadata",
    "metadata-directive",
    "no-clobber",
    "no-follow-symlinks",
    "part-size",
    "raw",
    "show-fullpath",
    "show-progress",
    "size-only",
    "source-region",
    "sse",
    "sse-kms-key-id",
    "storage-class",
    "version-id",
];

/// Returns a long option with two dashes; other words unchanged.
fn two_dashes(word: OsString) -> OsString {
    let long = word.to_str().and_then(|word| word.strip_prefix('-'));
    match long.filter(|long| LONG.contains(&long.split('=').next().unwrap_or(""))) {
        Some(long) => format!("--{long}").into(),
        None => word,
    }
}

/// Translates s5cmd's spellings. Those that already have a meaning for `s3://` keep it.
pub fn translated(words: Vec<OsString>) -> Vec<OsString> {
    let command = words.first().cloned().unwrap_or_default();
    let copies = command == "cp" || command == "mv";
    let parted = copies || command == "sync" || command == "pipe";
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let in_ours = |(at, word)| match at < end {
        true => without_value(&command, two_dashes(word)),
        false => Some(word),
    };
    let words: Vec<OsString> = words.into_iter().enumerate().filter_map(in_ours).collect();
    let has = |names: &[&str]| {
        let options = words.iter().take_while(|word| *word != "--");
        options.filter_map(|word| word.to_str()).any(|word| names.contains(&word))
    };
    let sized = has(&["-s", "--if-size-differ"]);
    let newer = has(&["-u", "--if-source-newer"]);
    let mut out = Vec::with_capacity(words.len());
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let number = |word: Option<&OsString>| {
            word.is_some_and(|word| word.as_bytes().first().is_some_and(u8::is_ascii_digit))
        };
        let ours = match word.to_str() {
            Some("--") => {
                out.push(word);
                break;
            }
            // Each of -n, -s and -u allows or forbids replacing, and the last one of them decides.
            Some("-n" | "--no-clobber") if copies && (sized || newer) => continue,
            Some("-s" | "--if-size-differ") if copies && newer => continue,
            Some("-s" | "--if-size-differ") if copies => "--size-only",
            Some(text) if parted && text.starts_with("-c=") => {
                out.push(format!("--concurrency={}", &text["-c=".len()..]).into());
                continue;
            }
            Some(text) if parted && text.starts_with("-p=") => {
                out.push(format!("--part-size={}", &text["-p=".len()..]).into());
                continue;
            }
            Some("-c") if parted && number(words.peek()) => "--concurrency",
            Some("-p") if parted && number(words.peek()) => "--part-size",
            Some("-sp" | "--show-progress") if copies => "--progress",
            Some("-H" | "--humanize") if command == "ls" || command == "du" => "-h",
            Some("-e" | "-s") if command == "ls" => "-l",
            Some("-g") if command == "du" => "--group",
            Some("--expire") if command == "presign" => "--expires-in",
            _ => {
                out.push(word);
                continue;
            }
        };
        out.push(ours.into());
    }
    out.extend(words);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Result<String, &'static str> {
        let words = words(line.as_bytes())?;
        Ok(words.iter().map(|word| format!("[{}]", word.display())).collect())
    }

    #[test]
    fn as_a_shell() {
        for (line, expected) in [
            ("", Ok("")),
            ("  # all of it", Ok("")),
            ("cp a b # rest", Ok("[cp][a][b]")),
            ("cp a#b 's3://b/k k'", Ok("[cp][a#b][s3://b/k k]")),
            ("cp \"a $x\\\"\\a\" b\\ c", Ok("[cp][a $x\"\\a][b c]")),
            ("a'b'\"c\"$'d\\n\\101'", Ok("[abcd\nA]")),
            ("x '' \"\"", Ok("[x][][]")),
            ("a*b?\r\n", Ok("[a*b?]")),
            ("$x $", Ok("[$x][$]")),
            ("'a", Err("a quote is not closed")),
            ("\"a", Err("a quote is not closed")),
            ("$'a", Err("a quote is not closed")),
            ("a\\", Err("a backslash ends the line")),
            ("a\0b", Err("a NUL cannot be part of a word")),
        ] {
            assert_eq!(split(line).as_deref(), expected.as_deref(), "{line}");
        }
    }

    #[test]
    fn s5cmds_words() {
        let translated_line = |line: &str| {
            let words = translated(words(line.as_bytes()).unwrap());
            words.iter().map(|word| word.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        for (line, expected) in [
            ("cp -n -s -u a b", "cp -u a b"),
            ("cp -n -s a b", "cp --size-only a b"),
            ("cp -n -- -s b", "cp -n -- -s b"),
            ("cp -c 5 -p 50 a b", "cp --concurrency 5 --part-size 50 a b"),
            ("cp -p a b", "cp -p a b"),
            // A dropped condition does not make a file's name the value of -p.
            ("cp -u -p -n 5 d", "cp -u -p 5 d"),
            ("cp --if-source-newer -- -s b", "cp --if-source-newer -- -s b"),
            ("sync -c a b", "sync -c a b"),
            ("ls -H -e s3://b", "ls -h -l s3://b"),
            ("rm -s x", "rm -s x"),
            ("rm -raw -exclude=*.x s3://b/*", "rm --raw --exclude=*.x s3://b/*"),
            ("rm -- -raw", "rm -- -raw"),
            ("cp -c=1 -p=50 a b", "cp --concurrency=1 --part-size=50 a b"),
            ("cp -concurrency=1 a b", "cp --concurrency=1 a b"),
            ("cat -c=1 a", "cat -c=1 a"),
            ("cp -n=true -s=false a b", "cp -n a b"),
            ("cp --if-size-differ=1 -u=F a b", "cp --size-only a b"),
            ("sync --delete=false a b", "sync a b"),
            ("sync -delete=true -size-only=t a b", "sync --delete --size-only a b"),
            ("ls -e=true -H=0 s3://b", "ls -l s3://b"),
            ("rm -raw=true a", "rm --raw a"),
            ("cp -n=perhaps a b", "cp -n=perhaps a b"),
            ("cp -- -n=true b", "cp -- -n=true b"),
            ("sync -c 5 -p 8 a b", "sync --concurrency 5 --part-size 8 a b"),
            ("du -g -H s3://b", "du --group -h s3://b"),
        ] {
            assert_eq!(translated_line(line), expected);
        }
    }

    #[test]
    fn options_that_start_programs() {
        let refused = |line: &str| {
            let words = words(line.as_bytes()).unwrap();
            starts_programs(words[0].to_str().unwrap(), &words[1..]).is_some()
        };
        for line in [
            "sync --cluster slurm:4 a b",
            "sync --cluster=ray:4 a b",
            "sync --clus=local:1 a b",
            "cp --credentials-file=f a b",
            "sync --cred f a b",
        ] {
            assert!(refused(line), "{line}");
        }
        for line in [
            "sync --delete a b",
            "sync -c a b",
            "cp --content-type=x a b",
            "sync -- --cluster=ray:4 b",
        ] {
            assert!(!refused(line), "{line}");
        }
    }

    proptest::proptest! {
        /// A run file can read the output of a dry run.
        #[test]
        fn quoted_names_come_back(name: Vec<u8>) {
            let name: Vec<u8> = name.into_iter().filter(|byte| *byte != 0).collect();
            let mut line = b"cp ".to_vec();
            crate::show::escape::push_quoted(&name, &mut line);
            let words = words(&line);
            proptest::prop_assert_eq!(words, Ok(vec!["cp".into(), OsString::from_vec(name)]));
        }

        #[test]
        fn any_line_is_taken_or_refused(line: Vec<u8>) {
            if let Ok(words) = words(&line) {
                proptest::prop_assert!(words.len() <= line.len());
            }
        }
    }
}
