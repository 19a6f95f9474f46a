//! The text of the status line while a command runs.

use crate::number;
use hakobu_lab::record::RecordRow;
use std::fmt::Write as _;

/// Returns an interval in one line, the most important part first.
pub fn words(row: &RecordRow) -> String {
    let rates = &row.rates;
    let percent = |share: f64| (share * 100.0).round() as u64;
    let mut out = format!(" {:.1} s", row.at_s);
    if let Some(cpu) = row.cpu() {
        let _ = write!(
            out,
            " | CPU us {} sy {} wa {} st {} id {}",
            percent(cpu.user),
            percent(cpu.system),
            percent(cpu.iowait),
            percent(cpu.steal),
            percent(cpu.idle)
        );
    }
    let process = &rates.process;
    let _ = write!(
        out,
        " | own {} %, thread {} %, RSS {}",
        percent(process.cpu()),
        percent(row.busiest_thread()),
        number::bytes(process.rss_bytes)
    );
    let moved = |disk: &hakobu_explain::sample::DiskRates| disk.read_iops + disk.write_iops;
    let disks = rates.disks.iter().filter(|disk| moved(disk) > 0.0);
    if let Some(disk) = disks.max_by(|a, b| a.busy.total_cmp(&b.busy)) {
        let _ = write!(
            out,
            " | {} {}/s read, {}/s written, {} IOPS, {} % busy",
            disk.name,
            number::bytes(disk.read_bytes_per_s as u64),
            number::bytes(disk.write_bytes_per_s as u64),
            number::grouped(moved(disk).round() as u64),
            percent(disk.busy)
        );
    }
    let (rx, tx) = row.network_bytes_per_s();
    if rx + tx >= 1.0 {
        let (rx, tx) = (number::bytes(rx as u64), number::bytes(tx as u64));
        let _ = write!(out, " | net {rx}/s in, {tx}/s out");
    }
    out.push(' ');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_explain::sample::{CpuRates, DiskRates, ProcessRates, Rates};

    #[test]
    fn one_line_says_it() {
        let rates = Rates {
            span_s: 0.1,
            cpu: CpuRates { user: 1.0, idle: 1.0, ..CpuRates::default() },
            disks: vec![
                DiskRates { name: "vdb".into(), busy: 1.0, ..DiskRates::default() },
                DiskRates {
                    name: "vda".into(),
                    busy: 0.5,
                    write_iops: 1500.0,
                    write_bytes_per_s: 12_000_000.0,
                    ..DiskRates::default()
                },
            ],
            process: ProcessRates {
                user: 1.2,
                busiest: Some((7, 0.99)),
                rss_bytes: 5_000_000,
                ..ProcessRates::default()
            },
            ..Rates::default()
        };
        assert_eq!(
            words(&RecordRow { at_s: 3.1, rates }),
            " 3.1 s | CPU us 50 sy 0 wa 0 st 0 id 50 | own 120 %, thread 99 %, RSS 5.00 MB \
             | vda 0 bytes/s read, 12.00 MB/s written, 1,500 IOPS, 50 % busy "
        );
    }
}
