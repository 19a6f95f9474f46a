//! `hakobu help TOPIC`: the included documentation, Markdown, as text for a terminal: paragraphs wrapped, tables as lists, links
//! as names. Supports the part of Markdown that these documents use.

use crate::show::output;

/// A document: its name as a topic, and its text in Markdown.
type Topic = (&'static str, &'static str);

macro_rules! topics {
    ($($(#[$when:meta])* $name:literal = $file:literal,)*) => {
        &[$($(#[$when])* ($name, include_str!(concat!("../../docs/", $file, ".md")))),*]
    };
}

/// All of them, in list order. A document with the name of a command is its guide.
const TOPICS: &[Topic] = topics! {
    "tutorial" = "tutorial",
    "how-to" = "how-to",
    "s3" = "s3",
    "s3-commands" = "s3-commands",
    "tuning" = "tuning",
    "limits" = "limits",
    "progress" = "progress",
    "explain" = "explain",
    "remote" = "remote",
    "cluster-guide" = "cluster",
    "scale" = "scale",
    "manifest" = "manifest",
    "differences" = "differences",
    "compatibility" = "compatibility",
    #[cfg(feature = "lab")]
    "bench-guide" = "bench",
    #[cfg(feature = "io")]
    "io-guide" = "io",
    #[cfg(feature = "lab")]
    "watch-guide" = "watch",
    #[cfg(feature = "lab")]
    "report-guide" = "report",
    #[cfg(feature = "lab")]
    "compare-guide" = "compare",
    #[cfg(feature = "lab")]
    "statistics" = "statistics",
    #[cfg(feature = "lab")]
    "campaigns" = "campaigns/README",
    #[cfg(feature = "lab")]
    "a-rsync-parallel" = "campaigns/a-rsync-parallel",
    #[cfg(feature = "lab")]
    "b-aws-s3-requests" = "campaigns/b-aws-s3-requests",
    #[cfg(feature = "lab")]
    "c-fio-numjobs" = "campaigns/c-fio-numjobs",
    #[cfg(feature = "lab")]
    "d-s3cmd-parallel" = "campaigns/d-s3cmd-parallel",
    #[cfg(feature = "lab")]
    "e-cp-rsync-load" = "campaigns/e-cp-rsync-load",
    #[cfg(feature = "lab")]
    "f-remote" = "campaigns/f-remote",
};

/// Other words for topics.
const ALIASES: &[Topic] = &[
    ("cheat-sheet", "how-to"),
    ("commands", "how-to"),
    ("examples", "how-to"),
    ("jobs", "tuning"),
    ("performance", "tuning"),
    ("speed", "tuning"),
    ("bandwidth", "limits"),
    ("bottleneck", "explain"),
    ("bottlenecks", "explain"),
    ("machines", "cluster-guide"),
    ("ssh", "remote"),
    ("rsync", "differences"),
];

/// The name of the topic that lists the others.
pub const LIST: &str = "topics";

/// Returns the names of all topics.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, _)| *name).chain([LIST])
}

/// Shows a topic, or the list of them; returns false if there is none of that name.
pub fn show(name: &str) -> bool {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, topic)| *topic);
    let text = match TOPICS.iter().find(|(topic, _)| *topic == name) {
        Some((_, markdown)) => plain_text(markdown, topic_of),
        None if name == LIST => list(),
        None => return false,
    };
    output::text(&text);
    true
}

fn list() -> String {
    let mut out = String::from("hakobu help TOPIC shows one of:\n\n");
    let width = TOPICS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, markdown) in TOPICS {
        let title = markdown.lines().next().unwrap_or_default().trim_start_matches("# ");
        out.push_str(&format!(
            "  {name:<width$} {}\n",
            inline_text(title, topic_of).replace('`', "")
        ));
    }
    out.push_str("\nhakobu help COMMAND shows the options of a command.\n");
    out
}

/// Returns the topic of a document, if it is one. `document` is the target of a link without `.md`. A README is
/// the topic of its folder. Figures (docs/benchmarks) are no topics.
fn topic_of(document: &str) -> Option<&'static str> {
    if document.contains("benchmarks/") {
        return None;
    }
    let document = document.strip_suffix("/README").unwrap_or(document);
    let name = document.rsplit('/').next()?;
    let guide = format!("{name}-guide");
    names().find(|topic| *topic == name || *topic == guide)
}

/// Columns of a line.
const COLUMNS: usize = 78;

/// Returns the topic of a document.
type Topics = fn(&str) -> Option<&'static str>;

/// Renders a document.
pub fn plain_text(markdown: &str, topic_of: Topics) -> String {
    let mut out = Page { out: String::new(), topic_of };
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let code = lines.by_ref().take_while(|line| !line.starts_with("```"));
            code.for_each(|line| out.push(4, line));
            out.blank();
        } else if let Some(title) = line.strip_prefix("# ") {
            out.push(0, &inline_text(title, topic_of).to_uppercase());
            out.blank();
        } else if line.starts_with('#') {
            out.push(0, &inline_text(line.trim_start_matches(['#', ' ']), topic_of));
            out.blank();
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(cells(row));
            }
            out.table(&rows);
        } else if line.trim().is_empty() || line.starts_with("<!--") {
            continue;
        } else {
            let mut paragraph = line.trim().to_owned();
            while let Some(more) = lines.next_if(|next| continues(next)) {
                paragraph.push(' ');
                paragraph.push_str(more.trim());
            }
            out.paragraph(line, &paragraph);
            if lines.peek().is_none_or(|next| marker(next.trim_start()) == 0) {
                out.blank();
            }
        }
    }
    out.out
}

/// Returns text with its links as names and without emphasis; code keeps its marks.
pub fn inline_text(text: &str, topic_of: Topics) -> String {
    let (mut out, mut rest) = (String::new(), text);
    let mut in_code = false;
    while let Some(first) = rest.chars().next() {
        if first == '`' {
            in_code = !in_code;
        } else if !in_code && let Some((shown, target, after)) = link(rest) {
            out.push_str(&inline_text(shown, topic_of));
            if let Some(name) = aim(target, shown, topic_of) {
                out.push_str(&format!(" ({name})"));
            }
            rest = after;
            continue;
        } else if !in_code && let Some(after) = rest.strip_prefix("**") {
            rest = after;
            continue;
        } else if rest.starts_with("\\|") {
            rest = &rest[1..];
            continue;
        }
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// Parses a link at the start of a text: returns its text, its target, and the rest.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let inside = text.strip_prefix("![").or_else(|| text.strip_prefix('['))?;
    let (shown, rest) = inside.split_once("](")?;
    let (target, after) = rest.split_once(')')?;
    (!shown.contains('[')).then_some((shown, target, after))
}

/// Returns the description of a link's target: the topic of a document, an address, or nothing.
fn aim(target: &str, shown: &str, topic_of: Topics) -> Option<String> {
    if target.starts_with("http") {
        return (target != shown).then(|| target.to_owned());
    }
    let document = target.split('#').next()?.strip_suffix(".md")?;
    topic_of(document).map(|topic| format!("hakobu help {topic}"))
}

/// Returns the cells of a row of a table.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", "\u{1}");
    row.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

/// Returns whether a line continues the paragraph before it.
fn continues(line: &str) -> bool {
    let text = line.trim_start();
    !text.is_empty()
        && marker(text) == 0
        && !text.starts_with(['|', '#'])
        && !text.starts_with("```")
}

/// Returns the length of the marker of a list item; 0 if there is none.
fn marker(text: &str) -> usize {
    if text.starts_with("- ") {
        return 2;
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 && text[digits..].starts_with(". ") { digits + 2 } else { 0 }
}

struct Page {
    out: String,
    topic_of: Topics,
}

impl Page {
    fn push(&mut self, indent: usize, line: &str) {
        let line = format!("{:indent$}{line}", "");
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Renders a paragraph or a list item; `first` is the prefix of its first line.
    fn paragraph(&mut self, first: &str, text: &str) {
        let outer = 2 + (first.len() - first.trim_start().len());
        let hang = marker(text);
        let text = inline_text(text, self.topic_of);
        self.wrapped(outer, outer + hang, &text);
    }

    /// Wraps words into lines, with the indentation of the first and the other lines. Spaces within code stay
    /// together.
    fn wrapped(&mut self, first: usize, others: usize, text: &str) {
        let (mut line, mut indent) = (String::new(), first);
        for word in text.split(' ') {
            let width = indent + line.chars().count() + 1 + word.chars().count();
            if width > COLUMNS && !line.is_empty() {
                self.push(indent, &line);
                (line, indent) = (String::new(), others);
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.push(indent, &line);
    }

    /// Renders a table as a list: the first cell of a row, below it the others, each with its headline if there are
    /// more than two columns.
    fn table(&mut self, rows: &[Vec<String>]) {
        let Some((head, rows)) = rows.split_first() else { return };
        let is_rule = |row: &&Vec<String>| {
            row.iter().all(|cell| !cell.is_empty() && cell.bytes().all(|b| b"-:".contains(&b)))
        };
        for row in rows.iter().filter(|row| !is_rule(row)) {
            for (at, cell) in row.iter().enumerate() {
                let cell = inline_text(cell, self.topic_of);
                let name = head.get(at).map(|name| inline_text(name, self.topic_of));
                match (at, name) {
                    (_, _) if cell.is_empty() => {}
                    (0, _) => self.wrapped(2, 4, &cell),
                    (_, Some(name)) if head.len() > 2 && !name.is_empty() => {
                        self.wrapped(6, 8, &format!("{name}: {cell}"));
                    }
                    _ => self.wrapped(6, 8, &cell),
                }
            }
        }
        self.blank();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(all(feature = "lab", feature = "io"))]
    fn every_document_is_a_topic() {
        for folder in ["docs", "docs/campaigns"] {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|end| end == "md") {
                    let name = path.with_extension("");
                    let name = name.to_str().unwrap();
                    assert!(topic_of(name).is_some(), "add {name}.md to src/commands/topics.rs");
                }
            }
        }
    }

    #[test]
    #[cfg(feature = "lab")]
    fn links_to_campaigns_name_their_topics() {
        assert_eq!(topic_of("campaigns/README"), Some("campaigns"));
        assert_eq!(topic_of("campaigns/c-fio-numjobs"), Some("c-fio-numjobs"));
        assert_eq!(topic_of("../compare"), Some("compare-guide"));
        assert_eq!(topic_of("../../BENCHMARKS"), None);
        assert_eq!(topic_of("../benchmarks/io"), None);
    }

    #[test]
    fn no_topic_hides_a_command_and_all_are_text() {
        for (name, markdown) in TOPICS {
            assert!(crate::find(name).is_none(), "{name} is a command");
            let text = plain_text(markdown, topic_of);
            assert!(text.lines().count() > 20, "{name}");
            assert!(!text.contains("](") && !text.contains("```"), "{name} is still Markdown");
        }
        assert!(list().lines().count() >= TOPICS.len());
        for (alias, topic) in ALIASES {
            assert!(crate::find(alias).is_none(), "{alias} is a command");
            assert!(names().any(|name| name == *topic), "{alias} is {topic}");
            assert!(names().all(|name| name != *alias), "{alias} is a topic");
        }
    }

    fn topic(document: &str) -> Option<&'static str> {
        (document == "tuning").then_some("tuning")
    }

    #[test]
    fn documents_become_text() {
        let markdown = "# A title\n\nSome **bold** text with a [link](tuning.md#jobs), one\nto \
                        [nowhere](other.md) and `code [x](y.md)`.\n\n- an item\n  that goes on\n- \
                        another\n\n<!-- not shown -->\n## Part\n\n```sh\nhakobu sync  a b\n```\n\n\
                        | option | what |\n|---|---|\n| `-a\\|b` | both |\n";
        let expected = "A TITLE\n\n  Some bold text with a link (hakobu help tuning), one to nowhere and `code\n  \
                        [x](y.md)`.\n\n  - an item that goes on\n  - another\n\nPart\n\n    hakobu sync  a b\n\n  \
                        `-a|b`\n      both\n\n";
        assert_eq!(plain_text(markdown, topic), expected);
    }

    #[test]
    fn wide_tables_name_their_columns() {
        let markdown = "| a | b | c |\n|---|---|---|\n| 1 | 2 | |\n";
        assert_eq!(plain_text(markdown, topic), "  1\n      b: 2\n\n");
    }
}
