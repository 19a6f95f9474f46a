//! Shell quoting (POSIX.1-2024, Shell Command Language, 2.2): an inserted value stays one word.

/// Quotes a word if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,=+@%^".contains(c);
    // GNU parallel, find and xargs recognise only the unquoted `{}`.
    match word == "{}" || !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", in_single(word)),
    }
}

/// Escapes a text for use between single quotes.
pub fn in_single(text: &str) -> String {
    text.replace('\'', "'\\''")
}

/// Escapes a text for use between double quotes.
pub fn in_double(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '$' | '`' | '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Formats a command as one shell line.
pub fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(quoted).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_it_has_to_be() {
        for (word, shown) in [
            ("plain-1.txt", "plain-1.txt"),
            ("/a/b", "/a/b"),
            ("--x=1", "--x=1"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("$HOME", "'$HOME'"),
            ("~", "'~'"),
            ("{}", "{}"),
            ("{a,b}", "'{a,b}'"),
            ("*", "'*'"),
            ("a\nb", "'a\nb'"),
            ("é", "'é'"),
        ] {
            assert_eq!(quoted(word), shown);
        }
        assert_eq!(line(["cp", "a b", "c"]), "cp 'a b' c");
    }

    /// Runs a script in a real shell.
    fn shell(script: &str) -> String {
        let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_shell_reads_what_was_meant() {
        for word in [
            "",
            " ",
            "a'b",
            "a\"b",
            "$(touch x)",
            "`id`",
            "\\",
            "\\\\'",
            "-n",
            "a\nb",
            "!!",
            "x;y|z&",
            "''",
            "~root",
            "*",
            "#c",
            "%s",
        ] {
            assert_eq!(shell(&format!("printf %s {}", quoted(word))), word, "{word:?}");
            assert_eq!(shell(&format!("printf %s '{}'", in_single(word))), word, "{word:?}");
            assert_eq!(shell(&format!("printf %s \"{}\"", in_double(word))), word, "{word:?}");
            let twice = quoted(&quoted(word));
            assert_eq!(shell(&format!("eval printf %s {twice}")), word, "{word:?}");
        }
    }
}
