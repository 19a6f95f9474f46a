//! Verdicts in Japanese.

use crate::verdict::words::{
    Clause, VerdictWords, WINDOWS_TOLD, against_limit, measure, percent, short,
};
use crate::verdict::{
    About, Advice, BottleneckName, CpuChange, Evidence, Help, Level, NextCeiling, Resource,
    Statement, Useless, Verdict,
};

pub(super) struct Japanese;

impl VerdictWords for Japanese {
    fn resource(&self, of: Resource) -> &'static str {
        match of {
            Resource::Cpu => "CPU",
            Resource::Thread => "単一スレッド",
            Resource::DiskIops => "ディスクの IOPS",
            Resource::DiskBandwidth => "ディスクの帯域幅",
            Resource::Network => "ネットワーク",
            Resource::Server => "サーバー",
            Resource::Lock => "カーネルのロック",
            Resource::Latency => "レイテンシー",
            Resource::Peer => "通信相手",
            Resource::Source => "コピー元",
            Resource::Target => "コピー先",
            Resource::UserLimit => "レート制限",
            Resource::Own => "hakobu のメモリ上限",
            Resource::None => "不明",
        }
    }

    fn level(&self, of: Level) -> &'static str {
        match of {
            Level::NotDetermined => "不明",
            Level::Consistent => "推定",
            Level::AtLimit => "上限に到達",
            Level::Proven => "実験で確認",
        }
    }

    fn statement(&self, of: Statement) -> &'static str {
        match of {
            Statement::AllUsableCpusUsed => "使用可能な CPU をすべて使用",
            Statement::MostUsableCpusUsed => "使用可能な CPU の大半を使用",
            Statement::UsableCpusUnused => "使用可能な CPU に空きあり",
            Statement::NoCpuIdle => "空いている CPU なし",
            Statement::CpusHardlyIdle => "CPU の空きはわずか",
            Statement::CpusIdle => "CPU に空きあり",
            Statement::OneCpuNeverIdle => "1 つの CPU が飽和",
            Statement::OneCpuHardlyIdle => "1 つの CPU がほぼ飽和",
            Statement::EachCpuIdleAtTimes => "飽和した CPU なし",
            Statement::ThreadsWaitForCpus => "スレッドが CPU を待っている",
            Statement::ThreadsWaitForCpusAtTimes => "スレッドがときどき CPU を待つ",
            Statement::ThreadsGetCpus => "CPU 待ちなし",
            Statement::CpuPressure => "CPU 待ちのタスクあり",
            Statement::SomeCpuPressure => "ときどき CPU 待ちのタスクあり",
            Statement::LittleCpuPressure => "CPU 待ちのタスクはわずか",
            Statement::QuotaThrottles => "CPU クォータで制限されている",
            Statement::QuotaThrottlesAtTimes => "ときどき CPU クォータで制限される",
            Statement::QuotaFree => "CPU クォータの影響なし",
            Statement::CpusStolen => "ハイパーバイザーに CPU 時間を奪われている",
            Statement::FewCpusStolen => "奪われた CPU 時間はわずか",
            Statement::ThreadFull => "1 つのスレッドが飽和",
            Statement::NoThreadFull => "飽和したスレッドなし",
            Statement::ThreadsBlocked => "スレッドがカーネル内で待機している",
            Statement::ThreadsBlockedAtTimes => "スレッドがときどき待機",
            Statement::ThreadsRarelyBlocked => "スレッドの待機はわずか",
            Statement::IoPressure => "I/O 待ちのタスクあり",
            Statement::SomeIoPressure => "ときどき I/O 待ちのタスクあり",
            Statement::LittleIoPressure => "I/O 待ちのタスクはわずか",
            Statement::TasksBlocked => "I/O でブロックされたタスクあり",
            Statement::FewTasksBlocked => "I/O でブロックされたタスクはわずか",
            Statement::IoWait => "CPU が I/O を待っている",
            Statement::LittleIoWait => "iowait はわずか",
            Statement::MemoryPressure => "メモリ待ちのタスクあり",
            Statement::SomeMemoryPressure => "ときどきメモリ待ちのタスクあり",
            Statement::LittleMemoryPressure => "メモリ待ちのタスクはわずか",
            Statement::Traffic => "ネットワークを使用",
            Statement::NoTraffic => "通信はほとんどなし",
            Statement::WaitsForPeer => "通信相手を待っている",
            Statement::WaitsForPeerAtTimes => "ときどき通信相手を待つ",
            Statement::NeverWaitsForPeer => "通信相手を待っていない",
            Statement::JobsWait => "ジョブが待機している",
            Statement::JobsWaitAtTimes => "ジョブがときどき待機",
            Statement::JobsHardlyWait => "ジョブの待機はわずか",
            Statement::LockContended => "スレッドがロックを待っている",
            Statement::LockContendedAtTimes => "スレッドがときどきロックを待つ",
            Statement::LocksFree => "ロックの競合なし",
            Statement::DiskNeverIdle => "ディスクが飽和",
            Statement::DiskHardlyIdle => "ディスクがほぼ飽和",
            Statement::DiskHasPauses => "ディスクに余裕あり",
            Statement::DiskQueues => "ディスクに要求がたまっている",
            Statement::DiskQueueShort => "ディスクの待ち行列は短い",
            Statement::WritebackThrottles => "書き込み側がライトバックを待っている",
            Statement::WritebackFree => "書き込み側の待ちなし",
            Statement::LinkFull => "回線が飽和",
            Statement::LinkHasRoom => "回線に余裕あり",
            Statement::RoundTripsLong => "経路上でパケットが滞留",
            Statement::RoundTripsLonger => "往復時間が最小値よりやや長い",
            Statement::RoundTripsShort => "経路上の滞留なし",
            Statement::SegmentsLost => "セグメントの損失あり",
            Statement::FewSegmentsLost => "セグメントの損失はほぼなし",
            Statement::SendQueueBacklog => "送信待ちがたまっている",
            Statement::SendQueueBacklogAtTimes => "ときどき送信待ちがたまる",
            Statement::NoSendQueueBacklog => "送信待ちなし",
            Statement::ServerReadsNothing => "サーバーが受信していない",
            Statement::ServerReadsSlowly => "サーバーの受信が遅い",
            Statement::ServerReadsSlowlyAtTimes => "サーバーの受信がときどき遅い",
            Statement::ServerReads => "サーバーの受信は追いついている",
            Statement::PacketsQueued => "インターフェースにパケットが滞留",
            Statement::FewPacketsQueued => "インターフェースの滞留はわずか",
            Statement::NoPacketsQueued => "パケットの滞留なし",
            Statement::RequestsQueueAtServer => "サーバーに要求がたまっている",
            Statement::ResponsesAwaitOwnLimit => "設定した上限による待ちを含む",
            Statement::ResponsesSlower => "最速の応答より遅い",
            Statement::ResponsesFast => "レイテンシーは変わらず",
            Statement::ServerThrottles => "スロットリングあり（503、429）",
            Statement::ServerThrottlesAtTimes => "ときどきスロットリングあり（503、429）",
            Statement::NoThrottling => "スロットリングなし（503、429）",
            Statement::MoreJobsGain => "並列数に応じて速くなる",
            Statement::MoreJobsGainLittle => "並列数を増やしてもわずかな向上",
            Statement::MoreJobsNoGain => "並列数を増やしても変わらない",
            Statement::IsBottleneck => "ボトルネックである",
            Statement::IsPartlyBottleneck => "一部影響あり",
            Statement::IsNoBottleneck => "ボトルネックではない",
            Statement::CeilingReached => "上限に到達",
            Statement::BelowCeiling => "上限未満",
            Statement::LimitReached => "設定した上限に到達",
            Statement::BelowLimit => "設定した上限未満",
            Statement::MostOfTheTime => "大半の時間",
            Statement::PartOfTheTime => "一部の時間",
            Statement::HardlyEver => "ほとんどなし",
        }
    }

    fn signal(&self, of: &Evidence) -> String {
        let name = name(of);
        match &*of.signal {
            "cpu_used_cpus" => "使用 CPU 数".to_owned(),
            "machine_used_cpus" => "全プロセスの使用 CPU 数".to_owned(),
            "cpu_busy_share" => format!("使用率が最も高い CPU（{name}）"),
            "stolen_cpus" => "ハイパーバイザーに奪われた CPU 数".to_owned(),
            "run_delay_share" => "実行可能時間のうちの CPU 待ち".to_owned(),
            "cpu_pressure_share" => "CPU プレッシャー (PSI)".to_owned(),
            "quota_throttled_share" => "CPU クォータで制限された周期".to_owned(),
            "thread_used_cpus" => "使用率が最も高いスレッド（CPU 数）".to_owned(),
            "blocked_share" => "スレッドがブロックされた時間".to_owned(),
            "io_pressure_share" => "I/O プレッシャー (PSI)".to_owned(),
            "memory_pressure_share" => "メモリプレッシャー (PSI)".to_owned(),
            "io_blocked_tasks" => "I/O でブロックされたタスク".to_owned(),
            "iowait_share" => "iowait".to_owned(),
            "lock_waits_share" => "ロック待ちのあったサンプル".to_owned(),
            "disk_read_iops" => format!("{name} の読み込み（IOPS）"),
            "disk_write_iops" => format!("{name} の書き込み（IOPS）"),
            "disk_iops" => format!("{name} の IOPS"),
            "disk_read_bytes_per_s" => format!("{name} の読み込み速度"),
            "disk_write_bytes_per_s" => format!("{name} の書き込み速度"),
            "disk_bytes_per_s" => format!("{name} のスループット"),
            "disk_busy_share" => format!("{name} の使用率"),
            "disks_busy_share" => "ディスクの最大使用率".to_owned(),
            "disk_queue" => format!("{name} の処理中の要求"),
            "dirty_bytes" => "ダーティページ".to_owned(),
            "link_bytes_per_s" | "far_link_bytes_per_s" => "回線のスループット".to_owned(),
            "link_wait_share" => "送信側が回線を待っていた時間".to_owned(),
            "far_used_cpus" => format!("{name} の使用 CPU 数"),
            "ssh_used_cpus" if name.is_empty() => "ssh の使用 CPU 数".to_owned(),
            "ssh_used_cpus" => format!("{name} の ssh の使用 CPU 数"),
            "peer_wait_share" => "通信相手を待っていたサンプル".to_owned(),
            "traffic_bytes_per_s" => "通信量".to_owned(),
            "rtt_ms" => "往復時間".to_owned(),
            "handshake_ms" => "TCP ハンドシェイクの時間".to_owned(),
            "retransmits_share" => "再送されたセグメント".to_owned(),
            "send_queue_full_share" => "送信待ちのあった時間".to_owned(),
            "peer_window_full_share" => "サーバーのウィンドウが満杯の時間".to_owned(),
            "backlog_bytes" => "インターフェースの滞留".to_owned(),
            "answer_ms" => "応答時間".to_owned(),
            "throttled_share" => "スロットリングされた要求".to_owned(),
            "user_limit_per_s" | "user_limit_bytes_per_s" => format!("{name} に対する速度"),
            "jobs_waiting_share" => "ジョブの待ち時間".to_owned(),
            "jobs_elasticity" => "並列数を 2 倍にした効果".to_owned(),
            "experiment_elasticity" => {
                format!("{}の変化に対する速度の変化", changed(&name).trim_start())
            }
            "idle_units_share" => "空きワーカー".to_owned(),
            "told_runs" => "この判定の測定回数".to_owned(),
            other => match other.strip_prefix("phase_").and_then(|it| it.strip_suffix("_share")) {
                Some(phase) => format!("稼働中のワーカー: {}", doing(phase)),
                None if name.is_empty() => other.replace('_', " "),
                None => format!("{} ({name})", other.replace('_', " ")),
            },
        }
    }

    fn evidence(&self, of: &Evidence) -> String {
        let value = measure(of, of.value);
        let (share, limit) = against_limit(of);
        let name = name(of);
        match &*of.signal {
            "cpu_used_cpus" => format!("CPU 使用 {share} / {limit}"),
            "machine_used_cpus" => format!("全プロセスの CPU 使用 {share} / {limit}"),
            "cpu_busy_share" => format!("{name} の使用率 {value}"),
            "stolen_cpus" => format!("ハイパーバイザーに奪われた CPU {value}"),
            "run_delay_share" => format!("実行可能なスレッドの CPU 待ち {value}"),
            "cpu_pressure_share" => format!("CPU 待ちのタスクがある時間 {value}"),
            "quota_throttled_share" => format!("CPU クォータの周期の {value} で制限"),
            "thread_used_cpus" => {
                format!("スレッドの最大 CPU 使用率 {}", percent(of.value))
            }
            "blocked_share" => format!("スレッドのブロック {value}"),
            "io_pressure_share" => format!("I/O 待ちのタスクがある時間 {value}"),
            "memory_pressure_share" => format!("メモリ待ちのタスクがある時間 {value}"),
            "io_blocked_tasks" => format!("I/O でブロックされたタスク {value}"),
            "iowait_share" => format!("iowait {value}"),
            "lock_waits_share" => format!("ロック待ちのあったサンプル {value}"),
            "disk_read_iops" => format!("{name} の読み込み {share} / {limit} IOPS"),
            "disk_write_iops" => format!("{name} への書き込み {share} / {limit} IOPS"),
            "disk_iops" if name.is_empty() => format!("{share} / {limit} IOPS"),
            "disk_iops" => format!("{name} で {share} / {limit} IOPS"),
            "disk_read_bytes_per_s" => format!("{name} の読み込み {share} / {limit}"),
            "disk_write_bytes_per_s" => format!("{name} への書き込み {share} / {limit}"),
            "disk_bytes_per_s" if name.is_empty() => format!("{share} / {limit}"),
            "disk_bytes_per_s" => format!("{name} で {share} / {limit}"),
            "disk_busy_share" if name.is_empty() => format!("ディスクの使用率 {value}"),
            "disk_busy_share" => format!("{name} の使用率 {value}"),
            "disks_busy_share" if of.value < 0.05 => "ディスクは空き".to_owned(),
            "disks_busy_share" => format!("ディスクの最大使用率 {value}"),
            "disk_queue" => format!("{name} で処理中の要求 {value}"),
            "dirty_bytes" => format!("ダーティページ {share} / {limit}"),
            "link_bytes_per_s" => format!("回線 {share} / {limit}"),
            "far_link_bytes_per_s" if of.value < WINDOWS_TOLD * of.limit => {
                format!("回線 {value}")
            }
            "far_link_bytes_per_s" => {
                format!("回線 {share} / {limit}（往復時間と ssh のウィンドウによる上限）")
            }
            "link_wait_share" => format!("送信側の回線待ち {value}"),
            "far_used_cpus" => format!("{name} の CPU 使用 {share} / {limit}"),
            "ssh_used_cpus" if name.is_empty() => {
                format!("ssh の CPU 使用率 {}", percent(of.value))
            }
            "ssh_used_cpus" => format!("{name} の ssh の CPU 使用率 {}", percent(of.value)),
            "peer_wait_share" => format!("通信相手を待っていたサンプル {value}"),
            "traffic_bytes_per_s" => format!("通信量 {value}"),
            "rtt_ms" => format!("往復時間 {value}、最小 {limit}"),
            "handshake_ms" => format!("TCP ハンドシェイク {value}、最小 {limit}"),
            "retransmits_share" => format!("セグメントの再送 {value}"),
            "send_queue_full_share" => format!("送信待ちのあった時間 {value}"),
            "peer_window_full_share" => format!("サーバーのウィンドウが満杯の時間 {value}"),
            "backlog_bytes" => format!("インターフェースに {value} が滞留"),
            "answer_ms" => format!("応答時間 {value}、最速 {limit}"),
            "throttled_share" => format!("スロットリングされた要求 {value}"),
            "user_limit_per_s" => format!("{name} の {share} / {limit} 回/秒"),
            "user_limit_bytes_per_s" => format!("{name} の {share} / {limit}"),
            "jobs_waiting_share" => format!("各ジョブの待ち時間 {value}"),
            "jobs_elasticity" if of.value <= 0.005 => "並列数を増やしても速くならない".to_owned(),
            "jobs_elasticity" if of.value < 0.7 => {
                format!("並列数を 2 倍にしても {value} しか速くならない")
            }
            "jobs_elasticity" => format!("並列数を 2 倍にすると {value} 速くなる"),
            "experiment_elasticity" => {
                format!("{}の変化に対する速度の変化 {value}", changed(&name).trim_start())
            }
            "idle_units_share" => format!("ワーカーの空き時間 {value}"),
            "told_runs" => format!("{limit} 回中 {value} 回の測定で同じ判定"),
            other => match other.strip_prefix("phase_").and_then(|it| it.strip_suffix("_share")) {
                Some(phase) => format!("ワーカーの{} {value}", doing(phase)),
                None => format!("{} {value}", self.signal(of)),
            },
        }
    }

    fn clause(&self, of: &Clause<'_>, about: About) -> String {
        let who = match about {
            About::Transfer => "hakobu の CPU 使用",
            About::Cell => "ツールの CPU 使用",
            About::Command => "コマンドの CPU 使用",
        };
        match of {
            Clause::OwnCpus { used, of } => format!("{} / {} を使用", short(*used), short(*of)),
            Clause::Cpus { used, of, others: None } => {
                format!("{who} {} / {}", short(*used), short(*of))
            }
            Clause::Cpus { used, of, others: Some(others) } => {
                let (used, of, others) = (short(*used), short(*of), short(*others));
                format!("{who} {used} / {of}、ほかのプロセスは {others}")
            }
            Clause::Experiment { changed, factor, effect } => {
                let what = match changed {
                    Resource::Latency => "並列数".to_owned(),
                    other => self::changed(other.name()).trim_start().to_owned(),
                };
                let factor = match *factor {
                    0.5 => "半分".to_owned(),
                    factor => format!(" {factor:.1} 倍"),
                };
                format!("{what}を{factor}にすると速度は元の {}", percent(*effect))
            }
            Clause::Phases { idle, phases, .. } => {
                let idle = idle.map(|share| format!("空き {}", percent(share)));
                let each = idle.into_iter().chain(
                    phases
                        .iter()
                        .map(|(phase, share)| format!("{} {}", doing(phase), percent(*share))),
                );
                format!("ワーカーの時間の内訳は{}", each.collect::<Vec<_>>().join("、"))
            }
            Clause::Limit(of) => {
                let (share, limit) = against_limit(of);
                match &*of.signal {
                    "user_limit_bytes_per_s" => format!("{share} / {limit}"),
                    _ => format!("{share} / {limit} 回/秒"),
                }
            }
            Clause::Signal(of) => self.evidence(of),
        }
    }

    fn bottleneck(&self, of: &BottleneckName) -> String {
        match of {
            BottleneckName::Resource(resource) => self.resource(*resource).to_owned(),
            BottleneckName::OneCpu => "1 つの CPU".to_owned(),
            BottleneckName::CommandThread => "コマンドの単一スレッド".to_owned(),
            BottleneckName::Option(option) => option.clone(),
            BottleneckName::Link => "ネットワーク回線".to_owned(),
            BottleneckName::CpuOf(host) => format!("{host} の CPU"),
            BottleneckName::Ssh(place) if place.is_empty() => "ssh の暗号化".to_owned(),
            BottleneckName::Ssh(host) => format!("{host} の ssh の暗号化"),
        }
    }

    fn identified(&self, verdict: &Verdict, clauses: &[String], advice: &str) -> String {
        let what = self.bottleneck(&verdict.named);
        let evidence = clauses.join("、");
        match verdict.level {
            Level::Consistent => format!("ボトルネック（推定）: {what}（{evidence}）。{advice}"),
            Level::Proven => format!("ボトルネック（実験で確認）: {what}（{evidence}）。{advice}"),
            Level::AtLimit | Level::NotDetermined => {
                format!("ボトルネック: {what}（{evidence}）。{advice}")
            }
        }
    }

    fn too_little(&self, clauses: &[String], advice: &str) -> String {
        match clauses.join("、") {
            none if none.is_empty() => format!("ボトルネック: 不明。{advice}"),
            seen => format!("ボトルネック: 不明。{advice}{seen}。"),
        }
    }

    fn unknown(&self, clauses: &[String], advice: &str) -> String {
        match clauses.join("、") {
            none if none.is_empty() => format!("ボトルネック: 不明。{advice}"),
            evidence => format!("ボトルネック: 不明（{evidence}）。{advice}"),
        }
    }

    fn advice(&self, of: &Advice, open: &[Resource]) -> String {
        let useless = useless(&of.useless);
        let help = match &of.help {
            Help::TooLittleWork => return "処理量が少なすぎて判定できません。".to_owned(),
            Help::CommandTooShort => {
                return "コマンドが短すぎます（判定には 2 秒以上必要）。".to_owned();
            }
            Help::CommandIdle => {
                return "コマンドはほとんどの時間スリープしていました。".to_owned();
            }
            Help::HigherLimit(None) => return "上限を上げると速くなります。".to_owned(),
            Help::HigherLimit(Some(option)) => {
                return format!("{option} の値を上げると速くなります。");
            }
            Help::Unknown { experiments } => {
                let signals = match open {
                    [] if *experiments => String::new(),
                    [] => "1 つの資源に絞り込める根拠がありません。".to_owned(),
                    _ => {
                        let open: Vec<&str> = open.iter().map(|of| self.resource(*of)).collect();
                        format!("候補は{}ですが、絞り込めません。", spaced(&open.join("、")))
                    }
                };
                let experiments = if *experiments {
                    "--prove を付けて実行すると、実験で原因を絞り込みます。"
                } else {
                    ""
                };
                return format!("{signals}{useless}{experiments}");
            }
            Help::Cpus { change, others_cpus, until } => {
                cpus(*change, *others_cpus, until.as_ref())
            }
            Help::FasterCpuOrThreads => {
                "速くするには、より高速な CPU か、コマンドのマルチスレッド化が必要です".to_owned()
            }
            Help::FasterCpus => "速くするには、より高速な CPU が必要です".to_owned(),
            Help::MoreJobs => "並列数 (-j) を増やすと速くなります".to_owned(),
            Help::MoreJobsOrLessLatency => {
                "並列数 (-j) を増やすか、レイテンシーを下げると速くなります".to_owned()
            }
            Help::MoreJobsThanPossible => {
                "並列数を増やすと速くなりますが、ファイル記述子 (ulimit -n) かメモリ (--memory) の上限に達しています"
                    .to_owned()
            }
            Help::MoreIops(None) => "IOPS を増やすと速くなります".to_owned(),
            Help::MoreIops(Some(from)) => {
                format!("IOPS を増やすと速くなります（上限は {from} で設定されています）")
            }
            Help::MoreDiskBandwidth(None) => "ディスクの帯域幅を増やすと速くなります".to_owned(),
            Help::MoreDiskBandwidth(Some(from)) => format!(
                "ディスクの帯域幅を増やすと速くなります（上限は {from} で設定されています）"
            ),
            Help::FasterLink => "改善するには、より高速な回線が必要です".to_owned(),
            Help::MoreChannels => {
                "改善するには、往復時間の短縮か、より多くのチャネルを許すサーバー（MaxSessions）が必要です".to_owned()
            }
            Help::CpusOf(host) => format!("{host} の CPU を増やすと速くなります"),
            Help::QuickerCipher => {
                "CPU 時間の少ない暗号を選ぶと速くなります（-e 'ssh -c CIPHER'）".to_owned()
            }
            Help::FasterPath => "改善するには、サーバーまでのより高速な経路が必要です".to_owned(),
            Help::ServerAllowingMore => {
                "サーバーが毎秒の要求数の上限を上げれば速くなります".to_owned()
            }
            Help::ServerHandlingMore => {
                "改善するには、より多くの要求を同時に処理できるサーバーが必要です".to_owned()
            }
            Help::MoreDirectories => {
                "ファイルを複数のディレクトリに分散すると速くなります".to_owned()
            }
            Help::FasterPeer => "改善するには、より高速なサーバーか、そこまでのより高速な経路が必要です".to_owned(),
            Help::FasterSource => "改善するには、より高速なコピー元が必要です".to_owned(),
            Help::FasterTarget => "改善するには、より高速なコピー先が必要です".to_owned(),
            Help::MoreMemory => "メモリの上限 (--memory) を上げると速くなります".to_owned(),
        };
        format!("{help}。{useless}")
    }
}

fn cpus(change: CpuChange, others_cpus: Option<f64>, until: Option<&NextCeiling>) -> String {
    let help = match change {
        CpuChange::FasterOrMoreProcesses => {
            "CPU を高速にするか、CPU とプロセスを共に増やすと速くなります".to_owned()
        }
        CpuChange::Quota => "CPU クォータを増やすと速くなります".to_owned(),
        CpuChange::Dedicated => {
            "ほかの仮想マシンと共有しない（専有の）CPU にすると速くなります".to_owned()
        }
        CpuChange::Affinity(all) => {
            format!("マシンの {all:.0} CPU をもっと使えるようにすると速くなります（アフィニティ）")
        }
        CpuChange::MoreWithJobs => "コアと並列数 (-j) を共に増やすと速くなります".to_owned(),
        CpuChange::FewerOthersOrMore => {
            "ほかのプロセスを減らすか、コアを増やすと速くなります".to_owned()
        }
        CpuChange::More => "コアを増やすと速くなります".to_owned(),
    };
    let others = others_cpus.map(|cpus| format!("（ほかのプロセスが {cpus:.1} CPU を使用）"));
    let until = until.map(|NextCeiling { disk, operations, factor }| {
        let what = if *operations { "IOPS" } else { "帯域幅" };
        format!("。ただし現在の {factor:.1} 倍で {disk} の{}の上限に達します", spaced(what))
    });
    format!("{help}{}{}", others.unwrap_or_default(), until.unwrap_or_default())
}

/// A sentence with the changes without effect; empty without any.
fn useless(all: &[Useless]) -> String {
    let more: Vec<&str> = all
        .iter()
        .filter_map(|of| match of {
            Useless::Cpus => Some("CPU"),
            Useless::Bandwidth => Some("帯域幅"),
            Useless::Jobs => Some("並列数"),
            Useless::Disks | Useless::Processes => None,
        })
        .collect();
    let more = match more.as_slice() {
        [] => None,
        [one, other] => Some(format!("{}や{other}を増やしても", spaced_end(one))),
        all => Some(format!("{}を増やしても", spaced_end(&all.join("、")))),
    };
    let disks = all.contains(&Useless::Disks).then(|| "ディスクを高速にしても".to_owned());
    let mut parts: Vec<String> = more.into_iter().chain(disks).collect();
    if all.contains(&Useless::Processes) {
        let particle = if parts.is_empty() { "は" } else { "も" };
        parts.push(format!("プロセスを増やすだけで{particle}"));
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!("{}速くなりません。", parts.join("、")),
    }
}

/// Name in a signal. A CPU without a number has an English one.
fn name(of: &Evidence) -> String {
    match of.of.as_str() {
        "one CPU" => "1 つの CPU".to_owned(),
        name => name.to_owned(),
    }
}

/// What a worker does in a phase.
fn doing(phase: &str) -> &str {
    match phase {
        "list" => "一覧の取得",
        "look" => "メタデータの読み込み",
        "read" => "読み込み",
        "create" => "ファイルの作成",
        "write" => "書き込み",
        "settle" => "属性の設定",
        "remove" => "削除",
        "compute" => "チェックサムの計算",
        "connect" => "接続",
        "send" => "送信",
        "answer" => "応答待ち",
        "receive" => "受信",
        "limit" => "レート制限による待ち",
        "pause" => "再試行までの待ち",
        "room" => "メモリ待ち",
        "other" => "その他",
        other => other,
    }
}

/// What an experiment changed.
fn changed(resource: &str) -> String {
    let what = match resource {
        "cpu" => "CPU 数",
        "latency" => "並列数またはレイテンシー",
        "user-limit" => "レート制限",
        "disk-iops" => "IOPS",
        "disk-bandwidth" => "ディスクの帯域幅",
        "network" => "帯域幅",
        other => other,
    };
    spaced(what)
}

/// Sets a space after a part that ends with a Latin word.
fn spaced_end(part: &str) -> String {
    let is_latin = part.chars().next_back().is_some_and(|c| c.is_ascii());
    format!("{part}{}", if is_latin { " " } else { "" })
}

/// Sets spaces between Japanese text and Latin words at the ends of a part.
fn spaced(part: &str) -> String {
    let (before, after) = (
        part.chars().next().is_some_and(|c| c.is_ascii()),
        part.chars().next_back().is_some_and(|c| c.is_ascii()),
    );
    format!("{}{part}{}", if before { " " } else { "" }, if after { " " } else { "" })
}
