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
    let width = TOPICS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, markdown) in TOPICS {
        let title = markdown.lines().next().unwrap_or_default().trim_start_matches("# ");
        out.push_str(&format!("  {name:<width$} {}\n", plain::inline(title, topic_of)));
    }
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
            assert!(super::super::find(name).is_none(), "{name} is a command");
            let text = plain::text(markdown, topic_of);
            assert!(text.lines().count() > 20, "{name}");
            assert!(!text.contains("](") && !text.contains("```"), "{name} is still Markdown");
        }
        assert!(list().lines().count() >= TOPICS.len());
    }
}
