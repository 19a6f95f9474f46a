//! The table of totals: one row for each finished step.

use crate::number::grouped;
use std::time::Duration;

/// The names of the columns.
pub const HEAD: &str = "step                files            bytes  seconds      MB/s  requests\n";

/// Returns the totals of a step as a line: files made, moved or compared, their bytes, the wall time, and the requests
/// that the store answered, if the step made any. MB are 1,000,000 bytes; a step without duration or bytes has no rate.
pub fn line(step: &str, files: u64, bytes: u64, took: Duration, requests: Option<u64>) -> String {
    let seconds = took.as_secs_f64();
    let rate = match bytes > 0 && seconds > 0.0 {
        true => format!("{:.1}", bytes as f64 / 1e6 / seconds),
        false => "-".into(),
    };
    let requests = requests.map_or_else(|| "-".into(), grouped);
    format!(
        "{:<15} {:>9} {:>16} {seconds:>8.2} {rate:>9} {requests:>9}\n",
        step,
        grouped(files),
        grouped(bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_below_their_heads() {
        let took = Duration::from_millis(1500);
        let up = line("sync up", 2001, 99_876_864, took, Some(2021));
        let again = line("sync up again", 0, 0, took, None);
        assert_eq!(
            format!("{HEAD}{up}{again}"),
            "step                files            bytes  seconds      MB/s  requests\n\
             sync up             2,001       99,876,864     1.50      66.6     2,021\n\
             sync up again           0                0     1.50         -         -\n"
        );
    }
}
