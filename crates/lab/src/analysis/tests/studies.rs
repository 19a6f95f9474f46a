//! Published studies: the analysis has to reach the conclusions of their authors.

use crate::analysis::analyse;
use crate::analysis::compare::{
    BuyerNeed, Conclusion, ConclusionChange, ConclusionKind, CostBasis, compare,
};
use crate::analysis::fit::FitModel;
use crate::analysis::prices::{Prices, parse_machines, parse_price, parse_rated};
use crate::analysis::statistics::{SpeedClaim, paired_ratio};
use crate::analysis::tests::{campaign, cell, near, run, run_with};
use crate::report::{Language, said, said_of_comparison};
use crate::results::Results;
use hakobu_explain::verdict::{Level, Resource};

/// rsync under GNU parallel, real and CPU seconds by jobs: "rsync + parallel by instance type and EBS
/// performance", 2025.
const JOBS: [f64; 5] = [1.0, 4.0, 8.0, 16.0, 32.0];
type Times = [(f64, f64, f64); 5];
const LARGE_3000: Times = [
    (114.780, 19.555, 10.825),
    (27.636, 21.030, 11.652),
    (18.453, 23.118, 12.091),
    (17.160, 22.586, 11.186),
    (17.122, 22.353, 11.333),
];
const LARGE_6000: Times = [
    (112.991, 19.035, 9.278),
    (26.870, 20.687, 10.447),
    (18.140, 22.055, 12.408),
    (16.934, 22.109, 11.272),
    (17.328, 22.927, 11.180),
];
const XLARGE_3000: Times = [
    (110.453, 16.370, 7.614),
    (24.909, 16.550, 7.771),
    (12.570, 16.731, 8.066),
    (6.570, 18.351, 9.430),
    (5.854, 19.134, 9.838),
];

fn rsync(times: &[(&str, Times)], cpus: f64) -> Results {
    let mut results = campaign();
    (results.header.machine.cpus, results.header.machine.cpus_online) = (cpus, cpus as usize);
    results.header.machine.name = format!("{cpus} CPUs");
    for (iops, times) in times {
        for (x, of) in JOBS.into_iter().zip(times) {
            let id = cell(&mut results, &format!("{iops} IOPS"), "rsync", Some(x));
            let conditions = &mut results.header.cells[id as usize].conditions;
            conditions.insert("iops".to_owned(), (*iops).to_owned());
            run(&mut results, id, *of);
        }
    }
    results
}

#[test]
fn a_two_cpus_stop_gaining_and_the_disk_is_not_why() {
    let results = rsync(&[("3000", LARGE_3000), ("6000", LARGE_6000)], 2.0);
    let found = analyse(&results);
    let words = said(&results, &found, Language::English);
    let knees: Vec<f64> = found.sweeps.iter().map(|sweep| sweep.knee.unwrap().x).collect();
    assert_eq!(knees, [16.0, 16.0]);
    for (sweep, words) in found.sweeps.iter().zip(&words.stretches) {
        assert!(words[0].starts_with("latency up to 4 jobs ("), "{words:?}");
        assert!(words[1].starts_with("CPU from 8 jobs up ("), "{words:?}");
        let last = &sweep.stretches[1].limiting;
        assert!(last.resource == Resource::Cpu && last.level >= Level::Consistent, "{last:?}");
        assert_eq!(sweep.fit.unwrap().model, FitModel::Cap);
    }
    // 98 % of two CPUs from 16 jobs on.
    assert_eq!(found.cells[4].limiting.level, Level::AtLimit);
    let verdict = words.verdict.join(" ");
    // The study has one run of each.
    let part = "3000 IOPS: 16 jobs came within 3% of the best (17.2 s), in too few runs to be sure";
    assert!(verdict.contains(part), "{part}: {verdict}");
    // Twice the IOPS: one run each is not proof, but the number is reported.
    let iops = found.proofs.iter().find(|of| of.changed == "iops").unwrap();
    assert!(iops.elasticity.mid.abs() < 0.1, "{iops:?}");
    assert!(words.proofs.iter().any(|of| of.contains("too few pairs to tell")));
    assert!(words.caveats.iter().any(|of| of.starts_with("Only one run")), "{:?}", words.caveats);
}

#[test]
fn a_eight_cpus_go_on() {
    let results = rsync(&[("3000", XLARGE_3000)], 8.0);
    let found = analyse(&results);
    let knee = found.sweeps[0].knee.unwrap();
    assert_eq!((knee.x, knee.at_edge), (32.0, true));
    let stretch = &found.sweeps[0].stretches[0];
    assert_eq!(stretch.to_x, 8.0);
    let words = &said(&results, &found, Language::English).stretches[0][0];
    assert!(words.starts_with("latency up to 8 jobs ("), "{words}");
    let results = [rsync(&[("3000", LARGE_3000)], 2.0), rsync(&[("3000", XLARGE_3000)], 8.0)];
    let both = compare(&results, &Prices::default());
    assert_eq!(both.names, ["2 CPUs", "8 CPUs"]);
    let row = both.rows.iter().find(|row| row.x == Some(32.0)).unwrap();
    let ratio = row.sides[1].unwrap().ratio.unwrap();
    assert!(near(ratio.ratio.mid, 17.122 / 5.854, 1e-9) && ratio.claim == SpeedClaim::Unclear);
    assert!(both.changes.iter().any(|of| of.kind == ConclusionKind::Knee && of.differs));
    let wanted = "Knee of rsync differs: 16 jobs on 2 CPUs, 32 jobs or more on 8 CPUs.".to_owned();
    let words = said_of_comparison(&results, &both, Language::English);
    assert!(words.contains(&wanted), "{words:?}");
}

/// Time of s5cmd for the same data, seconds. A quotient, because clippy takes the literal for π.
const S5CMD_S: f64 = 314.0 / 100.0;

/// aws s3 cp by number of requests, three runs each, and queues of two sizes: "How far does tuning the
/// parallelism of aws s3 go", 2025.
#[test]
fn b_requests_level_off_and_the_queue_does_nothing() {
    let requests = [10.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
    let short = [
        [58.53, 59.03, 60.25],
        [37.92, 37.85, 37.76],
        [21.39, 21.35, 21.79],
        [21.15, 21.15, 20.99],
        [20.86, 20.95, 21.03],
        [21.03, 21.01, 21.12],
        [20.89, 20.98, 20.99],
    ];
    let long = [
        [59.9, 60.23, 60.26],
        [38.82, 39.24, 38.21],
        [22.27, 23.72, 22.05],
        [21.08, 20.89, 20.85],
        [21.14, 20.93, 21.11],
        [21.05, 21.01, 20.94],
        [20.93, 20.88, 21.53],
    ];
    let mut results = campaign();
    results.header.x_name = Some("requests".to_owned());
    for (queue, rows) in [("1000", short), ("10000", long)] {
        for (x, times) in requests.into_iter().zip(rows) {
            let id = cell(&mut results, "", "aws s3", Some(x));
            let parameters = &mut results.header.cells[id as usize].parameters;
            parameters.insert("queue".to_owned(), queue.to_owned());
            for wall_s in times {
                run(&mut results, id, (wall_s, 1.0, 1.0));
            }
        }
    }
    let own = cell(&mut results, "", "s5cmd", None);
    run(&mut results, own, (S5CMD_S, 22.78, 4.73));
    let found = analyse(&results);
    let names: Vec<&str> = found.sweeps.iter().map(|sweep| sweep.series.as_str()).collect();
    assert_eq!(names, ["aws s3, queue 1000", "aws s3, queue 10000"]);
    for sweep in &found.sweeps {
        let knee = sweep.knee.unwrap();
        assert!((32.0..=64.0).contains(&knee.x), "{knee:?}");
        let fit = sweep.fit.unwrap();
        let peak = fit.peak_x.unwrap().mid;
        assert!(fit.model == FitModel::Cap && (24.0..=36.0).contains(&peak), "{fit:?}");
    }
    // Both queues with the same requests: nothing is claimed from 64 on.
    for at in 3..7 {
        let (a, b) = (&found.sweeps[0].cells[at], &found.sweeps[1].cells[at]);
        let blocks = |id: &u32| -> Vec<(u32, f64)> {
            let runs = results.runs.iter().filter(|run| run.cell == *id);
            runs.map(|run| (run.block, run.wall_s)).collect()
        };
        let claim = paired_ratio(&blocks(a), &blocks(b), false, 1).unwrap().claim;
        assert!(matches!(claim, SpeedClaim::Unclear | SpeedClaim::Same), "{at}: {claim:?}");
    }
    // 3.14 s against the best of aws: 6.7 times; one run claims nothing.
    let rival = &found.comparisons[0];
    assert_eq!(rival.ratio.claim, SpeedClaim::Unclear);
    assert!(near(rival.ratio.ratio.mid, 20.89 / S5CMD_S, 1e-9), "{rival:?}");
    assert!(near(found.cells[0].mean.unwrap(), 59.27, 1e-4));
}

/// fio over numjobs on two machines, IOPS: "Benchmarking NVMe of the storage-optimised I3", 2017.
const NUMJOBS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
const I2_RANDREAD: [f64; 8] =
    [5439.4, 9780.0, 16099.6, 26403.2, 37554.4, 44384.4, 45394.4, 45142.8];
const I3_RANDREAD: [f64; 8] =
    [10428.4, 20425.0, 39708.4, 74461.2, 130996.4, 207918.8, 214318.2, 209299.4];
const I2_RANDWRITE: [f64; 8] =
    [8091.4, 14003.0, 23147.4, 33653.4, 41419.2, 42895.8, 42668.2, 42769.2];
const I3_RANDWRITE: [f64; 8] =
    [23167.2, 24027.4, 22089.0, 20180.4, 19602.4, 19178.4, 18933.6, 18851.4];

fn fio(name: &str, rows: &[(&str, [f64; 8])]) -> Results {
    let mut results = campaign();
    results.header.x_name = Some("numjobs".to_owned());
    (results.header.metric, results.header.more_is_better) = ("iops".to_owned(), true);
    results.header.machine.name = name.to_owned();
    for (series, rates) in rows {
        for (x, rate) in NUMJOBS.into_iter().zip(rates) {
            let id = cell(&mut results, "", series, Some(x));
            run_with(&mut results, id, "iops", *rate);
        }
    }
    results
}

#[test]
fn c_reads_level_off_and_writes_need_hardly_any_jobs() {
    let i2 = fio("i2.xlarge", &[("randread", I2_RANDREAD), ("randwrite", I2_RANDWRITE)]);
    let i3 = fio("i3.xlarge", &[("randread", I3_RANDREAD), ("randwrite", I3_RANDWRITE)]);
    let knee = |results: &Results, series: &str| {
        let found = analyse(results);
        found.sweeps.iter().find(|sweep| sweep.series == series).unwrap().knee.unwrap()
    };
    assert_eq!((knee(&i2, "randread").x, knee(&i3, "randread").x), (32.0, 32.0));
    // The study chose one job for writes: 3.6 % below two, just outside the rule.
    let writes = knee(&i3, "randwrite");
    assert_eq!((writes.x, writes.at_edge), (2.0, false));
    const { assert!(I3_RANDWRITE[0] / I3_RANDWRITE[1] > 0.96) };
    let both = compare(&[i2, i3], &Prices::default());
    let row = |series: &str, x: f64| {
        both.rows.iter().find(|row| row.series == series && row.x == Some(x)).unwrap()
    };
    let ratio = |series: &str, x: f64| row(series, x).sides[1].unwrap().ratio.unwrap().ratio.mid;
    // Percentages of the study: 191.7 and 463.6 for reads, 286.3 and 44.1 for writes.
    for (series, x, percent) in [
        ("randread", 1.0, 191.7),
        ("randread", 128.0, 463.6),
        ("randwrite", 1.0, 286.3),
        ("randwrite", 128.0, 44.1),
    ] {
        assert!(near(100.0 * ratio(series, x), percent, 1e-3), "{series} {x}");
    }
    assert!(
        both.changes
            .iter()
            .any(|of| of.of == "randwrite" && of.kind == ConclusionKind::Knee && of.differs)
    );
}

#[test]
fn c_prices_are_those_of_the_study() {
    let results = [
        fio("i2.xlarge", &[("randread", I2_RANDREAD)]),
        fio("i3.xlarge", &[("randread", I3_RANDREAD)]),
    ];
    let names = ["i2".to_owned(), "i3".to_owned()];
    let per_hour = [parse_price("A=1.001/h").unwrap(), parse_price("i3=0.366/h").unwrap()];
    let rated = [parse_rated("i2=35000").unwrap(), parse_rated("B=206250").unwrap()];
    let prices = Prices::new(&names, &per_hour, &rated).unwrap();
    let found = compare(&results, &prices);
    let rated = |name: &str| {
        let cost =
            found.costs.iter().find(|cost| cost.name == name && cost.basis == CostBasis::Rated);
        cost.unwrap().per_1m_iops.unwrap()
    };
    assert_eq!(format!("{:.2} {:.2}", rated("i2"), rated("i3")), "28.60 1.77");
    let best = found.best.iter().find(|of| of.basis == CostBasis::Rated).unwrap();
    assert!(best.name == "i3" && best.clear, "{best:?}");
    let fastest = found.best.iter().find(|of| of.need == BuyerNeed::Fastest).unwrap();
    // One run each: ahead, but not claimed.
    assert!(fastest.name == "i3" && !fastest.clear, "{fastest:?}");
    // A million operations at the measured 214,318 per second.
    let cost =
        found.costs.iter().find(|cost| cost.name == "i3" && cost.series == "randread").unwrap();
    assert!(near(cost.per_million_ios.unwrap(), 0.366 / 3600.0 / 214_318.2 * 1e6, 1e-9));
    assert_eq!((cost.per_gb, cost.per_million_files), (None, None));
}

#[test]
fn c_machines_that_were_not_measured_have_prices_of_their_ratings() {
    let results = [
        fio("i2.xlarge", &[("randread", I2_RANDREAD)]),
        fio("i3.xlarge", &[("randread", I3_RANDREAD)]),
    ];
    let names = ["i2.xlarge".to_owned(), "i3.xlarge".to_owned()];
    let table = "name,price,iops,mb_per_s\ni2.xlarge,1.001,35000,\ni3.xlarge,0.366,206250,\n\
                 i3.2xlarge,0.732,412500,\ngp3,0.1,,125\n";
    let machines = parse_machines(table).unwrap();
    let prices = Prices::new(&names, &[], &[]).unwrap().with_machines(machines);
    let found = compare(&results, &prices);
    let rated = |name: &str| {
        found.costs.iter().find(|of| of.name == name && of.basis != CostBasis::Measured).unwrap()
    };
    let per_1m = |name: &str| format!("{:.2}", rated(name).per_1m_iops.unwrap());
    // Values of the study's table.
    assert_eq!(
        [per_1m("i2.xlarge"), per_1m("i3.xlarge"), per_1m("i3.2xlarge")],
        ["28.60", "1.77", "1.77"]
    );
    // 0.1 per hour of 125 MB/s: 450 GB.
    assert!(near(rated("gp3").per_gb.unwrap(), 0.1 / 450.0, 1e-9), "{:?}", rated("gp3"));
    // Measured machines have costs of their own; others only those of their ratings.
    let count = |name: &str| found.costs.iter().filter(|of| of.name == name).count();
    assert_eq!([count("i3.xlarge"), count("i3.2xlarge"), count("gp3")], [2, 1, 1]);
    let best = found.best.iter().find(|of| of.basis == CostBasis::Rated).unwrap();
    assert!(best.name.starts_with("i3."), "{best:?}");
}

#[test]
fn c_reads_reach_the_rated_limit_at_32_jobs_and_writes_at_1() {
    let rows = |rates: [[f64; 8]; 2]| [("randread", rates[0]), ("randwrite", rates[1])];
    let results = [
        fio("i2", &rows([I2_RANDREAD, I2_RANDWRITE])),
        fio("i3", &rows([I3_RANDREAD, I3_RANDWRITE])),
    ];
    let names = ["i2".to_owned(), "i3".to_owned()];
    let rated = [parse_rated("A=35000/35000").unwrap(), parse_rated("B=206250/18750").unwrap()];
    let prices = Prices::new(&names, &[], &rated).unwrap();
    let found = compare(&results, &prices);
    let said = |of: &str| {
        let is = |c: &&ConclusionChange| c.kind == ConclusionKind::Rating && c.of == of;
        found.changes.iter().find(is).unwrap().said[1].clone().unwrap()
    };
    assert_eq!(said("randread"), Conclusion::Reached(32.0));
    assert_eq!(said("randwrite"), Conclusion::Reached(1.0));
    // With one rating for both, writes never reach it.
    let rated = [parse_rated("B=206250").unwrap()];
    let prices = Prices::new(&names, &[], &rated).unwrap();
    let found = compare(&results, &prices);
    let is = |c: &&ConclusionChange| c.kind == ConclusionKind::Rating && c.of == "randwrite";
    let change = found.changes.iter().find(is).unwrap();
    assert_eq!(change.said, [None, Some(Conclusion::NotReached)]);
}

/// s3cmd under parallel with as many jobs as files, and four per core (2013): one run each.
#[test]
fn d_one_run_each_claims_nothing() {
    let mut results = campaign();
    let all = cell(&mut results, "", "parallel -j 0", None);
    run(&mut results, all, (2.115, 4.962, 2.695));
    let four = cell(&mut results, "", "parallel -j 400%", None);
    run(&mut results, four, (1.669, 4.955, 2.705));
    let found = analyse(&results);
    assert_eq!(found.comparisons.len(), 1);
    assert_eq!(found.comparisons[0].ratio.claim, SpeedClaim::Unclear);
    let verdict = said(&results, &found, Language::English).verdict;
    assert!(verdict[0].contains("too few runs"), "{verdict:?}");
}

/// cp, rsync and rsync with a rate limit, one file of 4 GiB.
#[test]
fn e_cp_costs_a_fifth_of_the_cpu() {
    let mut results = campaign();
    let data = &mut results.header.data[0];
    (data.files, data.bytes) = (1, 4 << 30);
    for (series, times) in [
        ("cp", (34.131, 0.076, 13.528)),
        ("rsync", (48.429, 41.772, 24.264)),
        ("rsync --bwlimit", (210.003, 44.960, 25.376)),
    ] {
        let id = cell(&mut results, "", series, None);
        run(&mut results, id, times);
    }
    let found = analyse(&results);
    let cost: Vec<f64> = found.cells.iter().map(|of| of.cpu_s_per_gb.unwrap()).collect();
    assert!(near(cost[0], 3.167, 1e-3) && near(cost[1], 15.375, 1e-3), "{cost:?}");
    let ratios: Vec<f64> = found.comparisons.iter().map(|of| of.ratio.ratio.mid).collect();
    assert!(near(1.0 / ratios[0], 1.419, 1e-3) && near(1.0 / ratios[1], 6.153, 1e-3));
}
