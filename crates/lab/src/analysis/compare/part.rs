//! One of the compared results.

use crate::analysis::Analysis;
use crate::analysis::view::ResultsView;
use crate::results::Cell;
use std::collections::BTreeSet;

/// One of the compared results.
pub(super) struct ComparisonPart<'a> {
    pub view: ResultsView<'a>,
    pub analysis: Analysis,
    pub name: String,
    /// True if its metric is that of the first result.
    pub fits: bool,
}

/// Read/write pattern of a cell as fio names it, from its parameters or name; `None` if unknown.
pub(super) fn pattern(cell: &Cell) -> Option<String> {
    let said = cell.parameters.get("rw").or(cell.parameters.get("readwrite"));
    let pattern = said.unwrap_or(&cell.series).to_ascii_lowercase();
    let is_one = said.is_some() || pattern.contains("read") || pattern.contains("write");
    is_one.then_some(pattern)
}

/// True if the lines of a group are kinds of work (reads, writes) rather than ways to do the same work.
pub(super) fn are_kinds(part: &ComparisonPart<'_>, group: &str) -> bool {
    let cells = part.view.settings().filter(|cell| cell.group == group);
    let patterns: BTreeSet<Option<String>> = cells.map(pattern).collect();
    part.view.more_is_better() && patterns.len() > 1
}

/// Prefix of a sentence about a cell or sweep: `small, rsync`.
pub(super) fn of(group: &str, series: &str, one_group: bool) -> String {
    match (one_group || group.is_empty(), series.is_empty()) {
        (true, _) => series.to_owned(),
        (false, true) => group.to_owned(),
        (false, false) => format!("{group}, {series}"),
    }
}
