//! Commands with placeholders: `rsync -a {src}/ {dst}/`. An inserted value stays one word, whether bare or in single or
//! double quotes. A command without shell syntax is split here and run without a shell, so that no shell is measured.
//! Values that may be secret are hidden in the record.

use crate::campaign::spec::toml::{UnknownName, is_placeholder};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// Values of placeholders.
pub type PlaceholderValues = BTreeMap<String, PlaceholderValue>;

/// Value of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceholderValue {
    /// One word or part of a word.
    Word(String),
    /// Any number of separate words.
    Words(Vec<String>),
}

impl From<String> for PlaceholderValue {
    fn from(word: String) -> PlaceholderValue {
        PlaceholderValue::Word(word)
    }
}

impl From<&Path> for PlaceholderValue {
    fn from(path: &Path) -> PlaceholderValue {
        PlaceholderValue::Word(path.to_string_lossy().into_owned())
    }
}

/// Quotes around a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuoteKind {
    Bare,
    Single,
    Double,
}

#[derive(Clone, Debug, PartialEq)]
enum TemplateToken {
    Text(String),
    Hole {
        name: String,
        /// True to quote once more, for a shell that the command starts.
        again: bool,
        quote: QuoteKind,
    },
}

/// A command with placeholders.
///
/// `{name}` is a placeholder; the value of `{name!q}` is quoted once more, for programs that pass it to a
/// shell (GNU parallel does). `{}`, `{/}`, `${name}` and other braces belong to the command, and `{{name}}`
/// yields `{name}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    tokens: Vec<TemplateToken>,
    needs_shell: bool,
}

/// Why a text is no command, or cannot be filled in: what follows its name in a sentence.
#[derive(Debug)]
pub enum TemplateError {
    /// There is nothing in it.
    Empty,
    /// This quote is not closed.
    Open(char),
    /// A placeholder is not defined.
    Unknown(UnknownName),
    /// A placeholder has no value here.
    NoValue(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::Empty => out.write_str("is an empty command"),
            TemplateError::Open(quote) => write!(out, "has a {quote} that is not closed"),
            TemplateError::Unknown(name) => name.fmt(out),
            TemplateError::NoValue(name) => write!(out, "there is nothing for {{{name}}}"),
        }
    }
}

error_type!(TemplateError: Unknown(UnknownName); );

/// Words that only a shell understands.
const SHELL_WORDS: &[&str] = &[
    ".", "alias", "break", "case", "cd", "eval", "exec", "exit", "export", "for", "if", "read",
    "set", "shift", "time", "trap", "type", "ulimit", "umask", "unset", "until", "wait", "while",
    "!", "{",
];

impl Template {
    /// Parses a command.
    ///
    /// # Errors
    /// A quote is not closed, or the command is empty.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TemplateError::Empty);
        }
        let mut tokens = Vec::new();
        let mut plain = String::new();
        let (mut quote, mut needs_shell) = (QuoteKind::Bare, false);
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let after_dollar = plain.ends_with('$') && quote != QuoteKind::Single;
            if let Some((name, again, length)) = hole(rest).filter(|_| !after_dollar) {
                if !plain.is_empty() {
                    tokens.push(TemplateToken::Text(std::mem::take(&mut plain)));
                }
                tokens.push(TemplateToken::Hole { name: name.to_owned(), again, quote });
                at += length;
                continue;
            }
            if let Some((inner, length)) = escaped_braces(rest) {
                plain.push_str(inner);
                at += length;
                continue;
            }
            let mut length = c.len_utf8();
            match (quote, c) {
                (QuoteKind::Bare, '\'') => quote = QuoteKind::Single,
                (QuoteKind::Bare, '"') => quote = QuoteKind::Double,
                (QuoteKind::Single, '\'') | (QuoteKind::Double, '"') => quote = QuoteKind::Bare,
                (QuoteKind::Bare | QuoteKind::Double, '\\') => {
                    length += rest.chars().nth(1).map_or(0, char::len_utf8);
                }
                (QuoteKind::Double, '$' | '`') => needs_shell = true,
                (QuoteKind::Bare, _) => needs_shell |= is_operator(c, &plain),
                _ => {}
            }
            plain.push_str(&rest[..length]);
            at += length;
        }
        match quote {
            QuoteKind::Bare => {}
            QuoteKind::Single => return Err(TemplateError::Open('\'')),
            QuoteKind::Double => return Err(TemplateError::Open('"')),
        }
        if !plain.is_empty() {
            tokens.push(TemplateToken::Text(plain));
        }
        let first = text.split_whitespace().next().unwrap_or_default();
        needs_shell |= SHELL_WORDS.contains(&first) || is_assignment(first);
        Ok(Template { tokens, needs_shell })
    }

    /// Parses a text other than a command: a path, the value of a variable. Quotes have no meaning in it.
    pub fn plain(text: &str) -> Template {
        let mut tokens = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let length = if let Some((name, again, length)) = hole(rest) {
                tokens.push(TemplateToken::Text(std::mem::take(&mut plain)));
                tokens.push(TemplateToken::Hole {
                    name: name.to_owned(),
                    again,
                    quote: QuoteKind::Bare,
                });
                length
            } else if let Some((inner, length)) = escaped_braces(rest) {
                plain.push_str(inner);
                length
            } else {
                plain.push(c);
                c.len_utf8()
            };
            rest = &rest[length..];
        }
        tokens.push(TemplateToken::Text(plain));
        Template { tokens, needs_shell: false }
    }

    /// Names of its placeholders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter_map(|token| match token {
            TemplateToken::Hole { name, .. } => Some(name.as_str()),
            TemplateToken::Text(_) => None,
        })
    }

    /// True if it has a placeholder of this name.
    pub fn mentions(&self, wanted: &str) -> bool {
        self.names().any(|name| name == wanted)
    }

    /// Program that it starts, if its first word is a plain word and no shell keyword.
    pub fn program(&self) -> Option<String> {
        let Some(TemplateToken::Text(text)) = self.tokens.first() else { return None };
        let word = text.split_whitespace().next()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
        // A placeholder may follow without a space, as in `tool-{version}`.
        let ends = self.tokens.len() == 1 || text.trim_start().len() > word.len();
        let is_program = ends && word.chars().all(plain) && !SHELL_WORDS.contains(&word);
        is_program.then(|| word.to_owned())
    }

    /// True if only a shell can run it.
    pub fn needs_shell(&self) -> bool {
        self.needs_shell
    }

    /// Arguments that run it: those of the command, or a shell with the command as a script.
    pub fn argv(
        &self,
        values: &PlaceholderValues,
        shell: bool,
    ) -> Result<Vec<String>, TemplateError> {
        if shell || self.needs_shell {
            Ok(vec!["sh".into(), "-c".into(), self.script(values)?])
        } else {
            self.words(values)
        }
    }

    /// The command as a shell script.
    pub fn script(&self, values: &PlaceholderValues) -> Result<String, TemplateError> {
        self.filled(values, |word, quote| match quote {
            QuoteKind::Bare => quoted(word),
            QuoteKind::Single => in_single(word),
            QuoteKind::Double => in_double(word),
        })
    }

    /// The text with values inserted unquoted, for [`Template::plain`].
    pub fn text(&self, values: &PlaceholderValues) -> Result<String, TemplateError> {
        self.filled(values, |word, _| word.to_owned())
    }

    fn filled(
        &self,
        values: &PlaceholderValues,
        form: impl Fn(&str, QuoteKind) -> String,
    ) -> Result<String, TemplateError> {
        let mut out = String::new();
        for token in &self.tokens {
            match token {
                TemplateToken::Text(text) => out.push_str(text),
                TemplateToken::Hole { name, again, quote } => {
                    let words = placeholder_words(values, name, *again)?;
                    let words: Vec<String> = words.iter().map(|word| form(word, *quote)).collect();
                    out.push_str(&words.join(" "));
                }
            }
        }
        Ok(out)
    }

    /// Words of a command that needs no shell.
    fn words(&self, values: &PlaceholderValues) -> Result<Vec<String>, TemplateError> {
        let mut words = Vec::new();
        let mut open: Option<String> = None;
        let mut quote = QuoteKind::Bare;
        for token in &self.tokens {
            match token {
                TemplateToken::Text(text) => split(text, &mut quote, &mut open, &mut words),
                TemplateToken::Hole { name, again, .. } => match values.get(name) {
                    Some(PlaceholderValue::Words(_)) if open.is_none() => {
                        words.extend(placeholder_words(values, name, *again)?);
                    }
                    _ => {
                        let text = placeholder_words(values, name, *again)?.join(" ");
                        open.get_or_insert_default().push_str(&text);
                    }
                },
            }
        }
        words.extend(open);
        Ok(words)
    }
}

/// Continues to split a text into words, by the shell's rules for quotes and backslashes.
fn split(text: &str, quote: &mut QuoteKind, open: &mut Option<String>, words: &mut Vec<String>) {
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match (*quote, c) {
            (QuoteKind::Bare, c) if c.is_whitespace() => words.extend(open.take()),
            (QuoteKind::Bare, '\'' | '"') => {
                *quote = if c == '"' { QuoteKind::Double } else { QuoteKind::Single };
                open.get_or_insert_default();
            }
            (QuoteKind::Single, '\'') | (QuoteKind::Double, '"') => *quote = QuoteKind::Bare,
            (QuoteKind::Bare, '\\') => open.get_or_insert_default().extend(letters.next()),
            (QuoteKind::Double, '\\') => {
                let next = letters.next();
                let word = open.get_or_insert_default();
                // In double quotes a backslash escapes only these.
                if !matches!(next, Some('$' | '`' | '"' | '\\')) {
                    word.push('\\');
                }
                word.extend(next);
            }
            (_, c) => open.get_or_insert_default().push(c),
        }
    }
}

/// Value of a placeholder as words.
fn placeholder_words(
    values: &PlaceholderValues,
    name: &str,
    again: bool,
) -> Result<Vec<String>, TemplateError> {
    let words = match values.get(name) {
        Some(PlaceholderValue::Word(word)) => vec![word.clone()],
        Some(PlaceholderValue::Words(words)) => words.clone(),
        None => return Err(TemplateError::NoValue(name.to_owned())),
    };
    Ok(if again { words.iter().map(|word| quoted(word)).collect() } else { words })
}

/// Placeholder at the start of a text: name, whether to quote once more, length.
fn hole(text: &str) -> Option<(&str, bool, usize)> {
    let inner = text.strip_prefix('{')?;
    let end = inner.find('}')?;
    let (name, again) = match inner[..end].strip_suffix("!q") {
        Some(name) => (name, true),
        None => (&inner[..end], false),
    };
    is_placeholder(name).then_some((name, again, end + 2))
}

/// `{{name}}` at the start of a text: the literal text, and its length.
fn escaped_braces(text: &str) -> Option<(&str, usize)> {
    let inner = text.strip_prefix('{')?;
    let (_, _, length) = hole(inner)?;
    inner[length..].starts_with('}').then(|| (&inner[..length], length + 2))
}

/// True if an unquoted character is shell syntax, given the text before it.
fn is_operator(c: char, before: &str) -> bool {
    let starts_word = before.is_empty() || before.ends_with(char::is_whitespace);
    match c {
        '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | '\n' => true,
        '~' | '#' => starts_word,
        _ => false,
    }
}

/// True for `NAME=value` before a command.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

// What a record shows of values that may be secret: those of environment variables. Their names are shown, and the
// placeholders in them whose values stand in the record anyway.

/// Stands for what is not shown.
pub const HIDDEN: &str = "***";

/// Names of placeholders that are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownPlaceholders(pub BTreeSet<String>);

impl ShownPlaceholders {
    /// A template as a text in which literal parts and other placeholders are hidden; `{name}` stands for those that
    /// are shown.
    pub fn template(&self, template: &Template) -> String {
        self.join(template, |name| Some(format!("{{{name}}}")))
    }

    /// The same with the values of those that are shown.
    pub fn text(&self, template: &Template, values: &PlaceholderValues) -> String {
        self.join(template, |name| Template::plain(&format!("{{{name}}}")).text(values).ok())
    }

    fn join(&self, template: &Template, shown: impl Fn(&str) -> Option<String>) -> String {
        let mut out = String::new();
        for token in &template.tokens {
            let text = match token {
                TemplateToken::Hole { name, .. } if self.0.contains(name) => shown(name),
                TemplateToken::Hole { .. } => None,
                TemplateToken::Text(text) if text.is_empty() => continue,
                TemplateToken::Text(_) => None,
            };
            match text {
                Some(text) => out.push_str(&text),
                None if out.ends_with(HIDDEN) => {}
                None => out.push_str(HIDDEN),
            }
        }
        out
    }
}

// Shell quoting (POSIX.1-2024, Shell Command Language, 2.2): an inserted value stays one word.

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
    use std::process::Command;

    #[test]
    fn only_known_placeholders_are_shown() {
        let shown = ShownPlaceholders(BTreeSet::from(["jobs".to_owned()]));
        let value = |text: &str| text.to_owned().into();
        let values = PlaceholderValues::from([
            ("jobs".into(), value("4")),
            ("token".into(), value("s3cr3t")),
        ]);
        for (text, template, filled) in [
            ("", "", ""),
            ("s3cr3t", "***", "***"),
            ("{jobs}", "{jobs}", "4"),
            ("{token}", "***", "***"),
            ("a{token}b", "***", "***"),
            ("s3cr3t-{jobs}-more", "***{jobs}***", "***4***"),
            ("{{jobs}}", "***", "***"),
        ] {
            let plain = Template::plain(text);
            assert_eq!(shown.template(&plain), template, "{text}");
            assert_eq!(shown.text(&plain, &values), filled, "{text}");
        }
    }

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

    const HOSTILE: &[&str] = &[
        "plain",
        "with space",
        "it's",
        "\"quoted\"",
        "$(touch injected)",
        "`touch injected`",
        "; touch injected;",
        "a\nb",
        "a\\b\\",
        "*",
        "~root",
        "-rf",
        "&& touch injected",
        "{}",
        "é 漢",
        "'\"'\"'",
        "#",
        "$HOME",
        "!x",
    ];

    fn values(pairs: &[(&str, &str)]) -> PlaceholderValues {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), PlaceholderValue::Word((*value).to_owned())))
            .collect()
    }

    fn argv(template: &str, pairs: &[(&str, &str)]) -> Vec<String> {
        Template::parse(template).unwrap().argv(&values(pairs), false).unwrap()
    }

    #[test]
    fn simple_commands_need_no_shell() {
        let pairs = [("src", "/a b"), ("dst", "/c"), ("jobs", "4")];
        for (template, words) in [
            ("cp -a {src}/. {dst}/", vec!["cp", "-a", "/a b/.", "/c/"]),
            ("x '{src}' \"{dst}\"", vec!["x", "/a b", "/c"]),
            ("x 'a b'c\"d e\" f\\ g", vec!["x", "a bcd e", "f g"]),
            ("x '' \"\" y", vec!["x", "", "", "y"]),
            ("x \"a\\\"b\\c\" '\\'", vec!["x", "a\"b\\c", "\\"]),
            (
                "parallel -j {jobs} rsync {} {dst!q}/",
                vec!["parallel", "-j", "4", "rsync", "{}", "/c/"],
            ),
            ("x {src!q}", vec!["x", "'/a b'"]),
            ("x {{src}} {/} {/.} {a b}", vec!["x", "{src}", "{/}", "{/.}", "{a", "b}"]),
            ("x --n={jobs}%", vec!["x", "--n=4%"]),
            ("x a#b a~b", vec!["x", "a#b", "a~b"]),
            ("  x \t y\n", vec!["x", "y"]),
        ] {
            assert_eq!(argv(template, &pairs), words, "{template}");
        }
    }

    #[test]
    fn what_needs_a_shell_gets_one() {
        for template in [
            "a | b", "a && b", "a; b", "a > b", "a < b", "a $x", "a `b`", "a *", "a ?", "a [b]",
            "a # b", "a ~/b", "cd /x", "X=1 a", "a \"$x\"", "a & b", "(a)", "a\nb", "if true",
            "exec a",
        ] {
            assert!(Template::parse(template).unwrap().needs_shell(), "{template}");
        }
        for template in
            ["a 'b | c'", "a \"b > c\"", "a \\; b", "a '$x'", "a b=c", "a {}", "a +%s !x"]
        {
            assert!(!Template::parse(template).unwrap().needs_shell(), "{template}");
        }
        for (template, why) in [("a 'b", "'"), ("a \"b", "\""), ("", "empty"), ("a \"b\\\"", "\"")]
        {
            let found = Template::parse(template).unwrap_err().to_string();
            assert!(found.contains(why), "{template}: {found}");
        }
    }

    #[test]
    fn words_in_a_row_stay_words() {
        let template = Template::parse("a {options} b --x={options}").unwrap();
        let mut given = PlaceholderValues::new();
        let mut with = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            given.insert("options".into(), PlaceholderValue::Words(words));
            (template.argv(&given, false).unwrap(), template.script(&given).unwrap())
        };
        assert_eq!(with(&[]).0, ["a", "b", "--x="]);
        let (words, script) = with(&["c d", "e"]);
        assert_eq!(words, ["a", "c d", "e", "b", "--x=c d e"]);
        assert_eq!(script, "a 'c d' e b --x='c d' e");
        let none = template.argv(&PlaceholderValues::new(), false).unwrap_err();
        assert!(none.to_string().contains("{options}"), "{none}");
    }

    /// Runs a command that prints its arguments, and returns them.
    fn echoed(argv: &[String]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let output =
            Command::new(&argv[0]).args(&argv[1..]).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{argv:?}: {output:?}");
        assert!(!dir.path().join("injected").exists(), "{argv:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_terminator('\u{1}').map(str::to_owned).collect()
    }

    #[test]
    fn hostile_names_stay_one_word_everywhere() {
        for name in HOSTILE {
            for template in [
                "printf '%s\\001' {src} end",
                "printf '%s\\001' '{src}' end",
                "printf '%s\\001' \"{src}\" end",
                "printf '%s\\001' {src} end; true",
                "printf '%s\\001' '{src}' end; true",
                "printf '%s\\001' \"{src}\" end; true",
                "eval printf \"'%s\\\\001'\" {src!q} end",
            ] {
                let words = argv(template, &[("src", name)]);
                assert_eq!(echoed(&words), [*name, "end"], "{template}: {words:?}");
                let forced = Template::parse(template).unwrap();
                let forced = forced.argv(&values(&[("src", name)]), true).unwrap();
                assert_eq!(forced[0], "sh");
                assert_eq!(echoed(&forced), [*name, "end"], "{template}: {forced:?}");
            }
        }
    }

    #[test]
    fn texts_are_filled_as_they_are() {
        let plain = Template::plain("it's {src} {{src}} ${x}");
        assert_eq!(
            plain.text(&values(&[("src", "a b"), ("x", "y")])).unwrap(),
            "it's a b {src} $y"
        );
        assert_eq!(plain.names().collect::<Vec<_>>(), ["src", "x"]);
    }

    #[test]
    fn the_program_of_a_command_is_its_first_word() {
        for (template, program) in [
            ("cp {src} {dst}", Some("cp")),
            ("/usr/bin/x y | z", Some("/usr/bin/x")),
            ("{own} sync", None),
            ("cd /x && y", None),
            ("X=1 y", None),
            ("'x' y", None),
            ("tool-{jobs}", None),
            ("only", Some("only")),
        ] {
            let found = Template::parse(template).unwrap().program();
            assert_eq!(found.as_deref(), program, "{template}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_value_stays_one_word(value in "[^\u{0}]{0,20}") {
            let words = argv("x {src} y", &[("src", &value)]);
            proptest::prop_assert_eq!(words, ["x", value.as_str(), "y"]);
        }

        #[test]
        fn any_command_is_taken_or_refused(text: String) {
            if let Ok(template) = Template::parse(&text) {
                let names: Vec<String> = template.names().map(str::to_owned).collect();
                let filled = names.into_iter().map(|name| (name, PlaceholderValue::Word("v".into()))).collect();
                proptest::prop_assert!(template.argv(&filled, false).is_ok());
                proptest::prop_assert!(template.script(&filled).is_ok());
            }
        }
    }
}
