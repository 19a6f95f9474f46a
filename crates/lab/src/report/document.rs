//! The document of a report: sections of blocks with all facts. Formats render it and add none.

use crate::report::facts::ReportFacts;
use crate::report::load_chart::{LoadChart, timeline, typical};
use crate::report::number::smallest_difference;
use crate::report::sweep_chart::{DescribedChart, picture};
use crate::report::tables::{self, TimesExtent};
use crate::report::words::{ReportWords, with};

/// Most charts of single runs in a document: each takes about 25 kB.
pub(super) const RUN_PICTURES_MAX: usize = 8;

/// A block of a report.
pub(super) enum ReportBlock {
    /// Heading of a section, or within one.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A paragraph about the measurement, not about its result.
    Note(String),
    /// Sentences of equal rank.
    List(Vec<String>),
    /// Lines of code.
    Code(Vec<String>),
    /// Table.
    Table(ReportTable),
    /// Chart.
    Chart(DescribedChart),
    /// Chart of a load, with the values that a cursor reads.
    Load(LoadChart),
    /// Blocks that are shown on demand.
    Details(String, Vec<ReportBlock>),
}

/// A section of a report.
pub(super) struct ReportSection {
    /// Name in the page, unique within a result.
    pub(super) name: &'static str,
    pub(super) title: String,
    pub(super) blocks: Vec<ReportBlock>,
}

/// All sections about one result; `pictures` is the number of single runs to draw.
pub(super) fn sections(
    facts: &ReportFacts<'_>,
    words: &'static ReportWords,
    pictures: usize,
) -> Vec<ReportSection> {
    use ReportBlock::{Details, Heading, List, Note, Table, Text};
    let mut found = Vec::new();
    let mut add = |name: &'static str, title: &str, blocks: Vec<ReportBlock>| {
        if !blocks.is_empty() {
            found.push(ReportSection { name, title: title.to_owned(), blocks });
        }
    };
    let table = |of: ReportTable| (!of.is_empty()).then_some(Table(of));
    let groups = facts.groups();
    let say = facts.say(words);
    let mut conclusion = vec![List(say.verdict(&facts.analysis.verdict))];
    conclusion.extend(tables::machine_line(facts, words).map(Note));
    let commands = tables::best_commands(facts);
    conclusion.extend((!commands.is_empty()).then_some(ReportBlock::Code(commands)));
    add("verdict", words.verdict, conclusion);
    let mut times = Vec::new();
    for group in &groups {
        if groups.len() > 1 {
            times.push(Heading(words.group(group)));
        }
        if let Some(of) = picture(facts, group, words) {
            let is_first = !times.iter().any(|block| matches!(block, ReportBlock::Chart(_)));
            let legend = is_first.then(|| Note(of.legend.clone()));
            times.push(ReportBlock::Chart(of));
            times.extend(legend);
        }
        times.extend(table(tables::times(facts, group, words, TimesExtent::Full)));
        times.extend(table(tables::lines(facts, group, words)));
    }
    add("times", &times_title(facts, words), times);
    if !facts.header().published.is_empty() {
        let blocks = table(tables::published(facts, words)).into_iter().collect();
        add("published", words.published, blocks);
    }
    let mut resources: Vec<ReportBlock> =
        groups.iter().filter_map(|group| table(tables::resources(facts, group, words))).collect();
    let all: Vec<ReportBlock> = table(tables::settings(facts, words)).into_iter().collect();
    if !all.is_empty() {
        resources.push(Details(words.all_settings.to_owned(), all));
    }
    add("resources", words.resources, resources);
    let proofs = table(tables::proofs(facts, words));
    let means = || Note(words.sensitivity_means.to_owned());
    let proofs = proofs.map_or_else(Vec::new, |found| vec![found, means()]);
    add("proofs", words.proofs, proofs);
    let mut controls = vec![match table(tables::controls(facts, words)) {
        Some(found) => found,
        None => Text(words.no_controls.to_owned()),
    }];
    let noise = facts.analysis.noise;
    controls.extend(noise.map(|noise| Text(with(words.noise, &[&smallest_difference(noise)]))));
    add("controls", words.controls, controls);
    add("load", words.load, loads(facts, words, pictures));
    let caveats = say.caveats(&facts.analysis.caveats);
    add(
        "caveats",
        words.caveats,
        vec![Text(tables::ending(facts, words)), distrust(caveats, words)],
    );
    let machine = [
        tables::fingerprints(&[*facts], words),
        tables::programs(facts, words),
        tables::data(facts, words),
    ];
    add("machine", words.machine, machine.into_iter().filter_map(table).collect());
    let (raw, count) = tables::runs(facts, words);
    let mut runs = Vec::new();
    if raw.rows.len() < count {
        let parts = [raw.rows.len().to_string(), count.to_string()];
        runs.push(Note(with(words.raw_some, &[&parts[0], &parts[1]])));
    }
    runs.extend(table(raw));
    let mut record = vec![Details(words.raw_runs.to_owned(), runs)];
    if let Some(found) = table(tables::commands(facts, words)) {
        record.push(Details(words.commands.to_owned(), vec![found]));
    }
    if !facts.header().text.is_empty() {
        let lines = facts.header().text.lines().map(str::to_owned).collect();
        record.push(Details(words.campaign.to_owned(), vec![ReportBlock::Code(lines)]));
    }
    add("runs", words.record, record);
    found
}

fn times_title(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    match &facts.header().x_name {
        Some(x_name) if facts.header().cells.iter().any(|cell| cell.x.is_some()) => {
            let metric = words.metric(facts.metric());
            with(words.swept_title, &[&capital(metric), words.swept(x_name)])
        }
        _ => words.side_by_side.to_owned(),
    }
}

/// Capitalises the first letter of a heading.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn loads(
    facts: &ReportFacts<'_>,
    words: &'static ReportWords,
    pictures: usize,
) -> Vec<ReportBlock> {
    let Some(all) = timeline(facts, words) else { return Vec::new() };
    let each = typical(facts, pictures, words).into_iter().map(ReportBlock::Load);
    let note = ReportBlock::Note(words.load_more.to_owned());
    [ReportBlock::Load(all)].into_iter().chain(each).chain([note]).collect()
}

/// Reasons to distrust results.
pub(super) fn distrust(caveats: Vec<String>, words: &ReportWords) -> ReportBlock {
    match caveats.is_empty() {
        true => ReportBlock::Text(words.no_caveats.to_owned()),
        false => ReportBlock::List(caveats),
    }
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ReportTable {
    /// Caption.
    pub(super) caption: String,
    /// Names of columns. The first column names the rows.
    pub(super) head: Vec<String>,
    /// Rows, each as long as `head`.
    pub(super) rows: Vec<Vec<String>>,
    /// True for columns of numbers, which are right-aligned.
    pub(super) numbers: Vec<bool>,
    /// True for emphasised rows: hakobu's own.
    pub(super) strong: Vec<bool>,
    /// True for a table that stays one on a phone: its first column becomes the headings of its rows.
    pub(super) is_compact: bool,
}

impl ReportTable {
    /// Creates an empty table. A leading `#` in a column name marks numbers and is not shown.
    pub(super) fn new(caption: impl Into<String>, head: &[impl AsRef<str>]) -> ReportTable {
        let head = || head.iter().map(AsRef::as_ref);
        ReportTable {
            caption: caption.into(),
            head: head().map(|name| name.strip_prefix('#').unwrap_or(name).to_owned()).collect(),
            numbers: head().map(|name| name.starts_with('#')).collect(),
            ..ReportTable::default()
        }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: Vec<String>) {
        self.push_as(row, false);
    }

    /// Adds a row, emphasised if `strong`.
    pub(super) fn push_as(&mut self, mut row: Vec<String>, strong: bool) {
        row.resize(self.head.len(), String::new());
        self.rows.push(row);
        self.strong.push(strong);
    }

    /// Removes columns that are empty in all rows, except the first column.
    pub(super) fn without_empty_columns(self) -> ReportTable {
        let says = |at: usize| {
            at == 0 || self.rows.iter().any(|row| !row[at].is_empty() && row[at] != NONE)
        };
        let keep = (0..self.head.len()).map(says).collect();
        self.with_columns(keep)
    }

    /// Removes columns by their names.
    pub(super) fn without(self, names: &[&str]) -> ReportTable {
        let keep = self.head.iter().map(|head| !names.contains(&head.as_str())).collect();
        self.with_columns(keep)
    }

    fn with_columns(mut self, keep: Vec<bool>) -> ReportTable {
        for row in self.rows.iter_mut().chain([&mut self.head]) {
            let mut keep = keep.iter();
            row.retain(|_| keep.next().is_none_or(|keep| *keep));
        }
        let mut keep = keep.iter();
        self.numbers.retain(|_| keep.next().is_none_or(|keep| *keep));
        self
    }

    /// Removes the first column if it has the same name in several rows, where what is above the table says it.
    pub(super) fn without_one_name(self) -> ReportTable {
        let names: Vec<Option<&String>> = self.rows.iter().map(|row| row.first()).collect();
        let is_one = names.len() > 1 && names.windows(2).all(|pair| pair[0] == pair[1]);
        let keep = (0..self.head.len()).map(|at| at > 0 || !is_one).collect();
        self.with_columns(keep)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Placeholder for a missing value.
pub(super) const NONE: &str = "–";

/// The text, or the placeholder.
pub(super) fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_say_nothing_go() {
        let mut table = ReportTable::new("c", &["a", "#b", "#c"]);
        table.push(vec!["x".into(), NONE.into(), "1".into()]);
        table.push_as(vec!["y".into()], true);
        let table = table.without_empty_columns();
        assert_eq!(
            (table.head.clone(), table.numbers.clone()),
            (vec!["a".into(), "c".to_owned()], vec![false, true])
        );
        assert_eq!(table.rows, [["x", "1"], ["y", ""]]);
        assert_eq!(table.strong, [false, true]);
        // Two names stay, one goes.
        let mut table = table.without_one_name();
        assert_eq!(table.head, ["a", "c"]);
        table.rows[1][0] = "x".into();
        let table = table.without_one_name();
        assert_eq!((table.head, table.numbers), (vec!["c".to_owned()], vec![true]));
    }
}
