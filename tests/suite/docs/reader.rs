//! Extracts command lines from Markdown and manual pages as scripts.

use std::fmt::Write;

/// Commands that run in one shell.
#[derive(Debug)]
pub struct Script {
    /// The document and the line.
    pub place: String,
    /// Script for bash.
    pub text: String,
    /// Expected output, if documented.
    pub output: Option<String>,
}

/// Begins the comment that says why a block is not run.
const NOT_RUN: &str = "<!-- not run: ";
/// Begins the comment that names an option that each command of a block gets besides, and says why: one that
/// reads everything and measures nothing.
const RUN_WITH: &str = "<!-- run with ";

/// The scripts of a document. In a session all blocks are one.
pub fn scripts(file: &str, markdown: &str, session: bool) -> Vec<Script> {
    let mut found: Vec<Script> = Vec::new();
    let (mut left_out, mut with, mut at) = (false, None, 0);
    let lines: Vec<&str> = markdown.lines().collect();
    while at < lines.len() {
        let line = lines[at];
        let place = format!("{file}:{}", at + 1);
        at += 1;
        if let Some(kind) = line.strip_prefix("```") {
            let end = at + lines[at..].iter().take_while(|line| !line.starts_with("```")).count();
            let block = &lines[at..end];
            at = end + 1;
            match kind {
                _ if std::mem::take(&mut left_out) => {}
                "sh" => {
                    let block: Vec<String> =
                        block.iter().map(|line| with_option(line, with)).collect();
                    let block: Vec<&str> = block.iter().map(String::as_str).collect();
                    found.push(Script { place, text: runnable(&block), output: None });
                }
                "console" => found.push(console(place, block)),
                _ => {}
            }
            with = None;
            continue;
        }
        if let Some(rest) = line.strip_prefix(RUN_WITH) {
            let (option, reason) = rest.split_once(": ").unwrap_or_else(|| panic!("{place}"));
            assert!(reason.trim_end_matches("-->").trim().len() > 10, "{place}: no reason");
            with = Some(option);
            continue;
        }
        if let Some(reason) = line.strip_prefix(NOT_RUN) {
            assert!(reason.trim_end_matches("-->").trim().len() > 10, "{place}: no reason");
            left_out = true;
            continue;
        }
        assert!(!left_out || line.trim().is_empty(), "{place}: no block follows '{NOT_RUN}'");
        for code in spans(line).filter(|code| is_command(code)) {
            let text = runnable(&[&code]);
            found.push(Script { place: place.clone(), text, output: None });
        }
    }
    if session && let Some(first) = found.first() {
        let place = first.place.clone();
        let text = found.iter().map(|script| script.text.as_str()).collect();
        return vec![Script { place, text, output: None }];
    }
    found
}

/// A line of a block whose commands get an option behind their names.
fn with_option(line: &str, option: Option<&str>) -> String {
    let words: Vec<&str> = line.splitn(3, ' ').collect();
    match (option, words.as_slice()) {
        (Some(option), ["hakobu", command, rest]) => format!("hakobu {command} {option} {rest}"),
        _ => line.to_owned(),
    }
}

/// Code within a line of text.
fn spans(line: &str) -> impl Iterator<Item = String> {
    line.split('`').skip(1).step_by(2).map(|code| code.replace("\\|", "|"))
}

/// Whether code in a text is a command line: not the name of a command, nor a form with something left
/// out or a variable in place of a file.
fn is_command(code: &str) -> bool {
    let Some(rest) = code.strip_prefix("hakobu ") else { return false };
    let name = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let is_form = code.contains('…') || code.contains("...") || code.ends_with(" FILE");
    !is_form && !rest.split(' ').all(name)
}

/// The examples of a manual page.
pub fn examples(page: &str, troff: &str) -> Vec<Script> {
    let mut found = Vec::new();
    for (number, block) in troff.split(".EX\n").skip(1).enumerate() {
        let line = block.split("\n.EE").next().unwrap().trim();
        let mut text = line.replace("\\(ti", "~").replace("\\(ha", "^").replace("\\(ga", "`");
        text = text.replace("\\(aq", "'").replace("\\-", "-").replace("\\e", "\\");
        let place = format!("{page}, example {}", number + 1);
        found.push(Script { place, text: runnable(&[&text]), output: None });
    }
    found
}

/// Commands after `$ ` and what they print.
fn console(place: String, block: &[&str]) -> Script {
    let commands: Vec<&str> = block.iter().filter_map(|line| line.strip_prefix("$ ")).collect();
    let mut output = String::new();
    for line in block.iter().filter(|line| !line.starts_with("$ ")) {
        writeln!(output, "{line}").unwrap();
    }
    Script { place, text: runnable(&commands), output: Some(output) }
}

/// A script of lines as they are typed. A comment may name the exit code that a line has, or say that
/// Ctrl-C ends it.
fn runnable(lines: &[&str]) -> String {
    let mut out = String::new();
    let mut command = String::new();
    for line in lines {
        command.push_str(line);
        if line.ends_with('\\') {
            command.push('\n');
            continue;
        }
        let comment = command.rsplit_once(" # ").map_or("", |(_, comment)| comment).to_owned();
        let code = comment
            .split_once("exit code ")
            .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        if comment.contains("Ctrl-C") {
            writeln!(out, "timeout --preserve-status -s INT 3 {command}").unwrap();
        } else if let Some(code) = code {
            write!(out, "set +e\n{command}\ncode=$?\nset -e\n").unwrap();
            writeln!(
                out,
                "[ $code = {code} ] || {{ echo \"exit code $code, not {code}\"; exit 1; }}"
            )
            .unwrap();
        } else {
            writeln!(out, "{command}").unwrap();
        }
        if command.split(" # ").next().unwrap().trim_end().ends_with('&') {
            // A user who types leaves a server that much time.
            out.push_str("sleep 1\n");
        }
        command.clear();
    }
    out
}

#[test]
fn commands_are_found() {
    let text = "See `hakobu io`, `hakobu sync … x`, `hakobu cp -a a b` and `rsync -a a b`.\n\
                <!-- not run: takes a whole day -->\n```sh\nlong\n```\n\
                ```sh\nhakobu a \\\n  b\nhakobu c &   # there\n```\n```toml\nx\n```\n";
    let found = scripts("f", text, false);
    let texts: Vec<&str> = found.iter().map(|script| script.text.as_str()).collect();
    assert_eq!(texts, ["hakobu cp -a a b\n", "hakobu a \\\n  b\nhakobu c &   # there\nsleep 1\n"]);
    assert_eq!(found[1].place, "f:6");
    let found =
        scripts("f", "<!-- run with --dry-run: takes a day -->\n```sh\nhakobu a b\nc\n```", false);
    assert_eq!(found[0].text, "hakobu a --dry-run b\nc\n");
    let found = scripts("f", "```console\n$ a\nx\n$ b\ny\n```", false);
    assert_eq!((&*found[0].text, found[0].output.as_deref()), ("a\nb\n", Some("x\ny\n")));
    let found = examples("p", ".EX\n    a \\-\\-b \\(aqx\\(aq \\(ti\n.EE\n");
    assert_eq!(found[0].text, "a --b 'x' ~\n");
}
