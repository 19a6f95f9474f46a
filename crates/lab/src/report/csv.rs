//! Raw runs of all campaigns as CSV (RFC 4180) with a header. Common columns come first; parameters, metrics
//! and load follow under their own names.

use crate::escape::csv_line;
use crate::report::tables::pairs;
use crate::report::{ReportPart, tables};
use crate::results::{Cell, Run};
use std::collections::BTreeSet;

/// A column: its name, and the text for a run of a cell.
type RunColumn = (&'static str, fn(&Cell, &Run) -> String);

const COLUMNS: &[RunColumn] = &[
    ("group", |cell, _| cell.group.clone()),
    ("series", |cell, _| cell.series.clone()),
    ("x", |cell, _| or_empty(cell.x)),
    ("cell", |cell, _| cell.id.to_string()),
    ("block", |_, run| run.block.to_string()),
    ("place", |_, run| run.place.to_string()),
    ("at_s", |_, run| run.at_s.to_string()),
    ("warmup", |_, run| run.warmup.to_string()),
    ("ok", |_, run| run.ok.to_string()),
    ("problem", |_, run| run.problem.clone().unwrap_or_default()),
    ("exit_code", |_, run| or_empty(run.exit_code)),
    ("wall_s", |_, run| run.wall_s.to_string()),
    ("user_s", |_, run| run.user_s.to_string()),
    ("sys_s", |_, run| run.sys_s.to_string()),
    ("rss_bytes_max", |_, run| run.rss_bytes_max.to_string()),
    ("read_bytes", |_, run| run.read_bytes.to_string()),
    ("write_bytes", |_, run| run.write_bytes.to_string()),
    ("voluntary_switches", |_, run| run.voluntary_switches.to_string()),
    ("involuntary_switches", |_, run| run.involuntary_switches.to_string()),
    ("started", |_, run| run.started.to_string()),
    ("cached", |_, run| or_empty(run.cached)),
    ("checked_files", |_, run| or_empty(run.checked.as_ref().map(|checked| checked.files))),
    ("checked_bytes", |_, run| or_empty(run.checked.as_ref().map(|checked| checked.bytes))),
    ("compared_files", |_, run| or_empty(run.checked.as_ref().map(|checked| checked.compared))),
    ("control_of", |cell, _| or_empty(cell.control_of)),
    ("data", |cell, _| cell.data.clone()),
    ("conditions", |cell, _| pairs(&cell.conditions)),
    ("command", |cell, _| cell.command.clone()),
];

fn or_empty<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Formats the CSV file.
pub(super) fn text(parts: &[ReportPart]) -> String {
    let cells = || parts.iter().flat_map(|part| &part.results.header.cells);
    let runs = || parts.iter().flat_map(|part| &part.results.runs);
    let parameters: BTreeSet<&String> = cells().flat_map(|cell| cell.parameters.keys()).collect();
    let metrics: BTreeSet<&String> = runs().flat_map(|run| run.metrics.keys()).collect();
    let load: BTreeSet<&String> = runs().flat_map(|run| run.load.keys()).collect();
    let common = COLUMNS.iter().map(|(name, _)| *name);
    let mut head: Vec<String> =
        ["campaign", "machine"].into_iter().chain(common).map(str::to_owned).collect();
    for (kind, names) in [("parameter", &parameters), ("metric", &metrics), ("load", &load)] {
        head.extend(names.iter().map(|name| format!("{kind}.{name}")));
    }
    let mut out = csv_line(&head);
    let all: Vec<_> = parts.iter().map(ReportPart::facts).collect();
    for (facts, machine) in all.iter().zip(tables::names(&all)) {
        for run in &facts.results.runs {
            let Some(cell) = facts.cell(run.cell) else { continue };
            let mut line = vec![facts.header().name.clone(), machine.clone()];
            line.extend(COLUMNS.iter().map(|(_, text)| text(cell, run)));
            let found = |name: &&String| cell.parameters.get(*name).cloned().unwrap_or_default();
            line.extend(parameters.iter().map(found));
            line.extend(metrics.iter().map(|name| or_empty(run.metrics.get(*name))));
            line.extend(load.iter().map(|name| or_empty(run.load.get(*name))));
            out.push_str(&csv_line(&line));
        }
    }
    out
}
