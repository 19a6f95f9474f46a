//! The table of a sweep while it grows: groups down, the swept number across, the median so far in
//! each cell.

use crate::number;
use crate::show::progress::{Progress, ProgressForm};
use crate::show::{output, screen};
use hakobu_lab::analysis::median;
use hakobu_lab::campaign::Plan;
use hakobu_lab::campaign::run::Event;
use hakobu_lab::results::Cell;
use hakobu_sys::stdio;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Widest name of a group that is not cut.
const NAME_MAX: usize = 28;
/// Columns of a number.
const COLUMN: usize = 9;

/// The table.
pub struct Table {
    metric: String,
    groups: Vec<String>,
    xs: Vec<f64>,
    /// Values by group and place of the swept number.
    values: BTreeMap<(usize, usize), Vec<f64>>,
    is_drawn: bool,
    told: BTreeSet<String>,
    progress: Progress,
}

impl Table {
    /// An empty one.
    pub fn new(plan: &Plan) -> Table {
        let mut groups: Vec<String> = Vec::new();
        let mut xs: Vec<f64> = Vec::new();
        for planned in &plan.cells {
            if !groups.contains(&planned.cell.group) {
                groups.push(planned.cell.group.clone());
            }
            let x = planned.cell.x.unwrap_or(0.0);
            if !xs.contains(&x) {
                xs.push(x);
            }
        }
        Table {
            metric: plan.header.metric.clone(),
            groups,
            xs,
            values: BTreeMap::new(),
            is_drawn: screen::redraws(),
            told: BTreeSet::new(),
            progress: Progress::start(ProgressForm::OnSignal, |_| {}),
        }
    }

    /// Shows what happened.
    pub fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Begins { cell, done, most, at_s, .. } => {
                let swept = cell.x.map_or(String::new(), |x| format!(" @{x}"));
                let left = match *done {
                    0 => String::new(),
                    done => {
                        let left_s = at_s / done as f64 * most.saturating_sub(done) as f64;
                        format!(", {left_s:.0} s left")
                    }
                };
                let state = format!("run {} of {most}{left}: {}{swept}", done + 1, cell.group);
                self.progress.says(&state);
                self.draw(&state);
            }
            Event::Ended { cell, run } => {
                if let Some(value) = run.metrics.get(&self.metric).filter(|_| run.ok) {
                    self.add(cell, *value);
                }
                if let Some(problem) = &run.problem {
                    self.tell(&format!("{}: {problem}", cell.group));
                }
            }
            Event::Teardown(why) => self.tell(&format!("cleanup: {why}")),
            Event::Data(_) | Event::Setup(_) | Event::Experiment { .. } => {}
        }
    }

    fn tell(&mut self, message: &str) {
        if self.told.insert(message.to_owned()) {
            output::message(message);
        }
    }

    fn add(&mut self, cell: &Cell, value: f64) {
        // A control repeats a cell: it says the same.
        let x = cell.x.unwrap_or(0.0);
        let group = self.groups.iter().position(|group| *group == cell.group);
        let column = self.xs.iter().position(|known| *known == x);
        if let Some(at) = group.zip(column) {
            self.values.entry(at).or_default().push(value);
        }
    }

    fn draw(&self, state: &str) {
        if !self.is_drawn {
            return;
        }
        let columns = stdio::columns(io::stderr()).unwrap_or(80);
        let lines = self.lines(columns.saturating_sub(1), state);
        screen::show(&lines.join("\n"));
    }

    /// The table with what happens at the moment; where it is too wide, the last columns stay.
    fn lines(&self, width: usize, state: &str) -> Vec<String> {
        let longest = self.groups.iter().map(|group| group.chars().count()).max().unwrap_or(0);
        let name = longest.max(self.metric.len()).min(NAME_MAX);
        let fit = (width.saturating_sub(name) / COLUMN).max(1);
        let first = self.xs.len().saturating_sub(fit);
        let row = |name_of: &str, cells: &mut dyn Iterator<Item = String>| {
            let short: String = name_of.chars().take(name).collect();
            let cells: String = cells.map(|cell| format!("{cell:>COLUMN$}")).collect();
            let line = format!("{short:name$}{cells}");
            line.chars().take(width).collect::<String>()
        };
        let shown = first..self.xs.len();
        let mut heads = shown.clone().map(|at| self.xs[at].to_string());
        let mut lines = vec![row(&self.metric, &mut heads)];
        for (at, group) in self.groups.iter().enumerate() {
            let mut cells = shown.clone().map(|column| {
                let values = self.values.get(&(at, column));
                let mid = values.and_then(|values| median(values));
                mid.map_or("-".to_owned(), |mid| number::grouped(mid.round() as u64))
            });
            lines.push(row(group, &mut cells));
        }
        lines.push(state.chars().take(width).collect());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_lab::campaign::Planned;
    use hakobu_lab::results::Header;

    fn cell(group: &str, x: f64) -> Cell {
        Cell { group: group.into(), x: Some(x), ..Cell::default() }
    }

    fn table() -> Table {
        let cells = [("rw read", 1.0), ("rw read", 8.0), ("rw randread", 1.0)];
        let planned = |(group, x)| Planned { cell: cell(group, x), ..Planned::default() };
        let header = Header { metric: "iops".into(), ..Header::default() };
        let plan = Plan { header, cells: cells.map(planned).to_vec(), ..Plan::default() };
        Table::new(&plan)
    }

    #[test]
    fn medians_stand_in_their_places() {
        let mut table = table();
        for value in [1000.0, 3000.0, 2000.4] {
            table.add(&cell("rw read", 8.0), value);
        }
        table.add(&cell("rw randread", 1.0), 512.0);
        assert_eq!(
            table.lines(60, "run 5 of 6"),
            [
                "iops               1        8",
                "rw read            -    2,000",
                "rw randread      512        -",
                "run 5 of 6",
            ]
        );
        // The last columns stay.
        assert_eq!(table.lines(21, "run 5 of 6")[1], "rw read        2,000");
    }
}
