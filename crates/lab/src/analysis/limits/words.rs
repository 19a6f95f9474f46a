//! Words for the signals of a verdict in the language of a report.

use crate::analysis::Lang;
use hakobu_explain::verdict::{self, Evidence, measure};

/// Words for a signal. Signals that cells cannot have are in English only.
pub(super) fn words(of: &Evidence, lang: Lang) -> String {
    let (value, limit) = (measure(of, of.value), measure(of, of.limit));
    match (&*of.signal, lang) {
        ("cpu_used_cpus", Lang::Ja) => format!("{limit} CPU 中 {value} を使用"),
        ("machine_used_cpus", Lang::Ja) => format!("全プロセスで {limit} CPU 中 {value}"),
        ("cpu_busy_share", Lang::Ja) => format!("1 つの CPU の使用率 {value}"),
        ("iowait_share", Lang::Ja) => format!("CPU の I/O 待ち {value}"),
        ("disk_busy_share" | "disks_busy_share", Lang::Ja) => format!("ディスクの使用率 {value}"),
        ("disk_iops", Lang::Ja) => format!("上限 {limit} IOPS 中 {value}"),
        ("disk_bytes_per_s" | "link_bytes_per_s", Lang::Ja) => format!("上限 {limit} 中 {value}"),
        ("jobs_waiting_share", Lang::Ja) => format!("各ジョブは時間の {value} を待機"),
        ("jobs_elasticity", Lang::Ja) if of.value < 0.0 => {
            "ジョブ数を増やしても向上せず".to_owned()
        }
        ("jobs_elasticity", Lang::Ja) => format!("ジョブ数を 100 % 増やすと {value} 向上"),
        ("experiment_elasticity", Lang::Ja) => format!("{} の変化の {value} が速さに反映", of.of),
        ("told_runs", Lang::Ja) => format!("{limit} 回中 {value} 回の自身の判定"),
        _ => verdict::words(of),
    }
}
