//! `hakobu help TOPIC`: the included documentation as text for a terminal.

mod plain;

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
    "explain" = "explain",
    "cluster-guide" = "cluster",
    "scale" = "scale",
    "differences" = "differences",
    "compatibility" = "compatibility",
    #[cfg(feature = "lab")]
    "bench-guide" = "bench",
    #[cfg(feature = "lab")]
    "watch-guide" = "watch",
    #[cfg(feature = "lab")]
    "report-guide" = "report",
    #[cfg(feature = "lab")]
    "compare-guide" = "compare",
    #[cfg(feature = "lab")]
    "statistics" = "statistics",
    #[cfg(feature = "io")]
    "io-guide" = "io",
};

/// The name of the topic that lists the others.
pub const LIST: &str = "topics";

/// Returns the names of all topics.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, _)| *name).chain([LIST])
}

/// Shows a topic, or the list of them; returns false if there is none of that name.
pub fn show(name: &str) -> bool {
    let text = match TOPICS.iter().find(|(topic, _)| *topic == name) {
        Some((_, markdown)) => plain::text(markdown, topic_of),
        None if name == LIST => list(),
        None => return false,
    };
    output::text(&text);
    true
}

fn list() -> String {
    let mut out = String::from("hakobu help TOPIC shows one of:\n\n");
    for (name, markdown) in TOPICS {
        let title = markdown.lines().next().unwrap_or_default().trim_start_matches("# ");
        out.push_str(&format!("  {name:<14} {}\n", plain::inline(title, topic_of)));
    }
    out
}

/// Returns the topic of a document, if it is one.
fn topic_of(document: &str) -> Option<&'static str> {
    let guide = format!("{document}-guide");
    names().find(|name| *name == document || *name == guide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(all(feature = "lab", feature = "io"))]
    fn every_document_is_a_topic() {
        for entry in std::fs::read_dir("docs").unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "md") {
                let name = path.file_stem().unwrap().to_str().unwrap();
                assert!(topic_of(name).is_some(), "add docs/{name}.md to src/commands/topics.rs");
            }
        }
    }

    #[test]
    fn no_topic_hides_a_command_and_all_are_text() {
        for (name, markdown) in TOPICS {
            assert!(
                super::super::find(super::super::COMMANDS, name).is_none(),
                "{name} is a command"
            );
            let text = plain::text(markdown, topic_of);
            assert!(text.lines().count() > 20, "{name}");
            assert!(!text.contains("](") && !text.contains("```"), "{name} is still Markdown");
        }
        assert!(list().lines().count() >= TOPICS.len());
    }
}
