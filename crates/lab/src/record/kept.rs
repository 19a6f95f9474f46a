//! Bounded store of rows for the JSON file and the chart, regardless of the length of a recording.

use super::columns::{ColumnKind, RecordColumn, RecordColumns};
use super::row::RecordRow;

/// Most rows. At ten per second neighbours are first merged after 17 minutes.
const ROWS_MAX: usize = 10_000;

/// Table of numbers. When it is full, neighbouring rows are merged, and each row then covers twice the time.
#[derive(Clone, Debug)]
pub struct RecordTable {
    /// Its columns; the first one is the time.
    pub(super) columns: Vec<RecordColumn>,
    rows: Vec<(f64, Vec<f64>)>,
    /// Intervals per row.
    pub(super) each: usize,
    /// Intervals that do not fill a row yet.
    open: Vec<(f64, Vec<f64>)>,
    rows_max: usize,
}

impl RecordTable {
    /// Creates an empty table for a recording.
    pub fn new(columns: &RecordColumns) -> RecordTable {
        RecordTable::of(columns.list(), ROWS_MAX)
    }

    /// Creates an empty table of these columns.
    pub(crate) fn of(columns: Vec<RecordColumn>, rows_max: usize) -> RecordTable {
        RecordTable { columns, rows: Vec::new(), each: 1, open: Vec::new(), rows_max }
    }

    /// Adds an interval.
    pub fn push(&mut self, columns: &RecordColumns, row: &RecordRow) {
        self.add(row.rates.span_s, columns.cells(row));
    }

    /// Adds the numbers of an interval.
    pub(crate) fn add(&mut self, took_s: f64, cells: Vec<f64>) {
        self.open.push((took_s, cells));
        if self.open.len() < self.each {
            return;
        }
        self.close();
        if self.rows.len() >= self.rows_max {
            let rows = std::mem::take(&mut self.rows);
            self.rows = rows.chunks(2).map(|pair| joined(&self.columns, pair)).collect();
            self.each *= 2;
        }
    }

    /// Completes the last row at the end of the recording.
    pub fn close(&mut self) {
        if !self.open.is_empty() {
            self.rows.push(joined(&self.columns, &self.open));
            self.open.clear();
        }
    }

    /// Rows, each with one number per column.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.rows.iter().map(|(_, cells)| cells.as_slice())
    }

    /// Column by name as (seconds, number), without unknown numbers.
    pub fn series(&self, name: &str) -> Vec<(f64, f64)> {
        let Some(at) = self.columns.iter().position(|column| column.name == name) else {
            return Vec::new();
        };
        let points = self.rows().filter_map(|cells| Some((*cells.first()?, *cells.get(at)?)));
        points.filter(|(_, number)| number.is_finite()).collect()
    }
}

/// Merges rows: time-weighted means of rates, last values of levels. Unknown parts are ignored.
fn joined(columns: &[RecordColumn], rows: &[(f64, Vec<f64>)]) -> (f64, Vec<f64>) {
    let cells = columns.iter().enumerate().map(|(at, column)| {
        let known = rows.iter().filter_map(|(took_s, cells)| Some((*took_s, *cells.get(at)?)));
        let mut known = known.filter(|(_, number)| number.is_finite());
        match column.kind {
            ColumnKind::Level => known.next_back().map_or(f64::NAN, |(_, number)| number),
            ColumnKind::Rate => {
                let (sum, time) = known.fold((0.0, 0.0), |(sum, time), (took_s, number)| {
                    (sum + number * took_s, time + took_s)
                });
                if time > 0.0 { sum / time } else { f64::NAN }
            }
        }
    });
    (rows.iter().map(|(took_s, _)| took_s).sum(), cells.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_recording_keeps_its_means_in_few_rows() {
        let column = |name: &str, kind| RecordColumn { name: name.into(), unit: "", kind };
        let columns = vec![column("t", ColumnKind::Level), column("x", ColumnKind::Rate)];
        let mut kept = RecordTable::of(columns, 8);
        for second in 1..=100 {
            let x = if second % 10 == 0 { f64::NAN } else { f64::from(second) };
            kept.add(1.0, vec![f64::from(second), x]);
        }
        kept.close();
        assert_eq!(kept.each, 16);
        let times: Vec<f64> = kept.rows().map(|cells| cells[0]).collect();
        assert_eq!(times, [16.0, 32.0, 48.0, 64.0, 80.0, 96.0, 100.0]);
        let x = kept.series("x");
        // Means of 1 … 16 without 10, and of 97 … 99.
        assert!((x[0].1 - 8.4).abs() < 0.05 && (x[6].1 - 98.0).abs() < 1e-9, "{x:?}");
        assert!(kept.series("y").is_empty());
    }
}
