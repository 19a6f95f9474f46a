//! Formatting and parsing of numbers with units.

use crate::analysis::Lang;
use crate::analysis::quantity::quantity;
use crate::analysis::say::*;

#[test]
fn three_digits_that_count() {
    for (value, text) in [
        (0.0, "0"),
        (2.0, "2"),
        (1.967, "1.97"),
        (0.012_34, "0.0123"),
        (17.16, "17.2"),
        (99.96, "100"),
        (999.4, "999"),
        (999.6, "1,000"),
        (206_250.0, "206,250"),
        (-1_234_567.0, "-1,234,567"),
        (1e20, "1.00e20"),
        (2e-7, "2.00e-7"),
        (f64::NAN, "–"),
    ] {
        assert_eq!(number(value), text);
    }
    assert_eq!([percent(0.98), percent(0.007), percent(0.05)], ["98 %", "0.7 %", "5 %"]);
    assert_eq!(
        [times(1.0), times(3.123), times(17.34), times(250.2)],
        ["1.00", "3.12", "17.3", "250"]
    );
    assert_eq!(
        [seconds(0.0), seconds(2.5e-6), seconds(0.234), seconds(2.34), seconds(738.0)],
        ["0 s", "2.5 µs", "234 ms", "2.34 s", "12.3 min"]
    );
}

#[test]
fn metrics_have_their_units() {
    for (metric, value, text) in [
        ("wall_s", 2.5, "2.5 s"),
        ("", 2.5, "2.5 s"),
        ("clat_p99_ns", 1_234_567.0, "1.23 ms"),
        ("iops", 206_250.0, "206,250 IOPS"),
        ("bw_bytes_per_s", 1.25e8, "125 MB/s"),
        ("bw_bytes_per_s", 2.5e9, "2.5 GB/s"),
        ("score", 7.0, "7 score"),
    ] {
        assert_eq!(measured(metric, value), text);
    }
    assert_eq!([rate(1234.0, "files/s"), rate(1.5e4, "bytes/s")], ["1,234 files/s", "15 kB/s"]);
    let en = |x, name| of_x(x, name, Lang::En);
    assert_eq!([en(1.0, "jobs"), en(8.0, "jobs")], ["1 job", "8 jobs"]);
    assert_eq!([en(1.0, "processes"), en(1.0, "numjobs")], ["1 process", "numjobs 1"]);
    assert_eq!(of_x(8.0, "jobs", Lang::Ja), "8 ジョブ");
    assert_eq!(of_range(4.0, 1024.0, "requests", Lang::En), "4 to 1,024 requests");
    assert_eq!(of_range(4.0, 8.0, "numjobs", Lang::Ja), "numjobs 4〜8");
    assert_eq!([things(1, "run"), things(0, "run")], ["1 run", "0 runs"]);
    let words = ["a", "b", "c"].map(str::to_owned);
    let all =
        |lang| [listed(&words, Conjunction::And, lang), listed(&words[..2], Conjunction::Or, lang)];
    assert_eq!(all(Lang::En), ["a, b and c", "a or b"]);
    assert_eq!(all(Lang::Ja), ["a、b、c", "a または b"]);
    assert_eq!(sentences(&words, Lang::En), "a; b; c.");
    assert_eq!(sentences(&words, Lang::Ja), "a。b。c。");
    assert_eq!([capital("ä b"), capital("")], ["Ä b", ""]);
}

#[test]
fn quantities() {
    for (text, counts, value) in [
        ("3000", true, 3000.0),
        ("6k", true, 6000.0),
        ("1_000", true, 1000.0),
        ("125 MB/s", false, 125e6),
        ("125MiB/s", false, 125.0 * 1_048_576.0),
        ("64K", false, 65_536.0),
        ("500 KB/s", false, 5e5),
        ("7 bytes", false, 7.0),
        ("20 ms", false, 0.02),
        ("1.5 s", false, 1.5),
        ("50us", false, 5e-5),
    ] {
        let found = quantity(text, counts).unwrap();
        assert!((found - value).abs() <= 1e-12 * value, "{text}: {found}");
    }
    for text in ["", "many", "-1", "1..2", "3 parsecs", "1e999", "ms"] {
        assert_eq!(quantity(text, false), None, "{text}");
    }
}
