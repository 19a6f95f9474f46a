//! Raw runs of all campaigns as CSV (RFC 4180) with a header. Common columns come first; parameters, metrics
//! and load follow under their own names.

use super::Part;
use super::escape::{csv, csv_line};
use super::machines;
use super::record::pairs;
use crate::results::{Cell, Run};
use std::collections::BTreeSet;

const HEAD: &str = "campaign,machine,group,series,x,cell,block,place,at_s,warmup,ok,problem,\
                    exit_code,wall_s,user_s,sys_s,rss_bytes_max,read_bytes,write_bytes,\
                    voluntary_switches,involuntary_switches,started,cached,checked_files,\
                    checked_bytes,compared_files,control_of,data,conditions,command";

/// Formats the CSV file.
pub(super) fn text(parts: &[Part]) -> String {
    let cells = || parts.iter().flat_map(|part| &part.results.header.cells);
    let runs = || parts.iter().flat_map(|part| &part.results.runs);
    let parameters: BTreeSet<&String> = cells().flat_map(|cell| cell.parameters.keys()).collect();
    let metrics: BTreeSet<&String> = runs().flat_map(|run| run.metrics.keys()).collect();
    let load: BTreeSet<&String> = runs().flat_map(|run| run.load.keys()).collect();
    let mut out = HEAD.to_owned();
    for (kind, names) in [("parameter", &parameters), ("metric", &metrics), ("load", &load)] {
        for name in names {
            out.push(',');
            out.push_str(&csv(&format!("{kind}.{name}")));
        }
    }
    out.push_str("\r\n");
    let all: Vec<_> = parts.iter().map(Part::facts).collect();
    for (facts, machine) in all.iter().zip(machines::names(&all)) {
        for run in &facts.results.runs {
            let Some(cell) = facts.cell(run.cell) else { continue };
            let mut line = vec![facts.header().name.clone(), machine.clone()];
            line.extend(of_cell(cell));
            line.extend(of_run(run));
            line.extend(of_rest(cell));
            let number = |value: &f64| value.to_string();
            let found = |name: &&String| cell.parameters.get(*name).cloned().unwrap_or_default();
            line.extend(parameters.iter().map(found));
            let metric = |name: &&String| run.metrics.get(*name).map(number).unwrap_or_default();
            line.extend(metrics.iter().map(metric));
            let mean = |name: &&String| run.load.get(*name).map(number).unwrap_or_default();
            line.extend(load.iter().map(mean));
            out.push_str(&csv_line(&line));
        }
    }
    out
}

fn of_cell(cell: &Cell) -> [String; 4] {
    let x = cell.x.map(|x| x.to_string()).unwrap_or_default();
    [cell.group.clone(), cell.series.clone(), x, cell.id.to_string()]
}

fn of_run(run: &Run) -> Vec<String> {
    let checked = run.checked.as_ref();
    let count = |of: fn(&crate::results::Checked) -> u64| {
        checked.map(|checked| of(checked).to_string()).unwrap_or_default()
    };
    vec![
        run.block.to_string(),
        run.place.to_string(),
        run.at_s.to_string(),
        run.warmup.to_string(),
        run.ok.to_string(),
        run.problem.clone().unwrap_or_default(),
        run.exit_code.map(|code| code.to_string()).unwrap_or_default(),
        run.wall_s.to_string(),
        run.user_s.to_string(),
        run.sys_s.to_string(),
        run.rss_bytes_max.to_string(),
        run.read_bytes.to_string(),
        run.write_bytes.to_string(),
        run.voluntary_switches.to_string(),
        run.involuntary_switches.to_string(),
        run.started.to_string(),
        run.cached.map(|share| share.to_string()).unwrap_or_default(),
        count(|checked| checked.files),
        count(|checked| checked.bytes),
        count(|checked| checked.compared),
    ]
}

fn of_rest(cell: &Cell) -> [String; 4] {
    let control_of = cell.control_of.map(|of| of.to_string()).unwrap_or_default();
    [control_of, cell.data.clone(), pairs(&cell.conditions), cell.command.clone()]
}
