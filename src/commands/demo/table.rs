//! The table of totals: one row for each finished step.

use crate::number::grouped;
use std::time::Duration;

/// The names of the columns.
pub const HEAD: &str = "step                files            bytes  seconds      MB/s  requests\n";

/// Totals of a step.
pub struct Row {
    /// Its name.
    pub step: &'static str,
    /// Number of files made, moved or compared.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Wall time.
    pub took: Duration,
    /// Requests that the store answered; `None` if the step made none.
    pub requests: Option<u64>,
}

/// Returns a row as a line. MB are 1,000,000 bytes; a step without duration or bytes has no rate.
pub fn line(row: &Row) -> String {
    let seconds = row.took.as_secs_f64();
    let rate = match row.bytes > 0 && seconds > 0.0 {
        true => format!("{:.1}", row.bytes as f64 / 1e6 / seconds),
        false => "-".into(),
    };
    let requests = row.requests.map_or_else(|| "-".into(), grouped);
    format!(
        "{:<15} {:>9} {:>16} {seconds:>8.2} {rate:>9} {requests:>9}\n",
        row.step,
        grouped(row.files),
        grouped(row.bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_below_their_heads() {
        let took = Duration::from_millis(1500);
        let up =
            Row { step: "sync up", files: 2001, bytes: 99_876_864, took, requests: Some(2021) };
        let again = Row { step: "sync up again", files: 0, bytes: 0, requests: None, ..up };
        assert_eq!(
            format!("{HEAD}{}{}", line(&up), line(&again)),
            "step                files            bytes  seconds      MB/s  requests\n\
             sync up             2,001       99,876,864     1.50      66.6     2,021\n\
             sync up again           0                0     1.50         -         -\n"
        );
    }
}
