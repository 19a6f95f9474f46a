//! Values as fio writes them, and what is none.

use super::*;

#[test]
fn sizes() {
    for (text, binary, decimal) in [
        ("0", Some(0), Some(0)),
        ("4096", Some(4096), Some(4096)),
        ("4096b", Some(4096), Some(4096)),
        ("4096B", Some(4096), Some(4096)),
        ("4k", Some(4096), Some(4000)),
        ("4K", Some(4096), Some(4000)),
        ("4kb", Some(4096), Some(4000)),
        ("4kB", Some(4096), Some(4000)),
        ("4ki", Some(4096), Some(4000)),
        ("4kib", Some(4000), Some(4096)),
        ("1KiB", Some(1000), Some(1024)),
        ("1m", Some(1 << 20), Some(1_000_000)),
        ("1mi", Some(1 << 20), Some(1_000_000)),
        ("1mib", Some(1_000_000), Some(1 << 20)),
        ("2g", Some(2 << 30), Some(2_000_000_000)),
        ("3t", Some(3 << 40), Some(3_000_000_000_000)),
        ("1p", Some(1 << 50), Some(1_000_000_000_000_000)),
        ("0x10", Some(16), Some(16)),
        ("0X1f", Some(31), Some(31)),
        ("0x1fk", None, None),
        (" 7 ", Some(7), Some(7)),
        ("9223372036854775807", Some(i64::MAX as u64), Some(i64::MAX as u64)),
        ("9223372036854775808", None, None),
        ("99999999999999999999", None, None),
        ("8192p", None, Some(8_192_000_000_000_000_000)),
        ("16384p", None, None),
        ("", None, None),
        ("k", None, None),
        ("-1", None, None),
        ("+1", None, None),
        ("1.5g", None, None),
        ("4x", None, None),
        ("4kk", None, None),
        ("4bk", None, None),
        ("4z", None, None),
        ("4 k", None, None),
        ("(4k)", Some(4096), Some(4000)),
        ("2*1024", Some(2048), Some(2048)),
        ("0x", None, None),
        ("20%", None, None),
        ("é", None, None),
    ] {
        assert_eq!(size(text, Base::Binary).ok(), binary, "{text:?}");
        assert_eq!(size(text, Base::Decimal).ok(), decimal, "{text:?} with kb_base=1000");
    }
    assert!(size("3z", Base::Binary).is_err_and(|why| why.contains("zones")));
}

#[test]
fn amounts_and_counts() {
    for (text, expected) in [
        ("1m", Some(Amount::Bytes(1 << 20))),
        ("20%", Some(Amount::Percent(20))),
        ("100%", Some(Amount::Percent(100))),
        ("0%", Some(Amount::Percent(0))),
        ("101%", None),
        ("1.5%", None),
        ("%", None),
    ] {
        assert_eq!(amount(text, Base::Binary).ok(), expected, "{text}");
    }
    for (text, least, expected) in [
        ("1", 1, Some(1)),
        ("1k", 1, Some(1024)),
        ("0", 1, None),
        ("0", 0, Some(0)),
        ("4294967295", 0, Some(u32::MAX)),
        ("4294967296", 0, None),
        ("-1", 0, None),
        ("two", 0, None),
    ] {
        assert_eq!(count(text, Base::Binary, least).ok(), expected, "{text}");
    }
}

#[test]
fn times() {
    for (text, of_seconds, of_micros) in [
        ("30", Some(30_000_000), Some(30)),
        ("0", Some(0), Some(0)),
        ("30s", Some(30_000_000), Some(30_000_000)),
        ("30sec", Some(30_000_000), Some(30_000_000)),
        ("500ms", Some(500_000), Some(500_000)),
        ("500msec", Some(500_000), Some(500_000)),
        ("7us", Some(7), Some(7)),
        ("7usec", Some(7), Some(7)),
        ("2m", Some(120_000_000), Some(120_000_000)),
        ("2M", Some(120_000_000), Some(120_000_000)),
        ("1h", Some(3_600_000_000), Some(3_600_000_000)),
        ("1d", Some(86_400_000_000), Some(86_400_000_000)),
        ("0x10", Some(16_000_000), Some(16)),
        ("99999999999999d", None, None),
        ("1w", None, None),
        ("1.5s", None, None),
        ("s", None, None),
        ("", None, None),
        ("(1)", None, None),
    ] {
        assert_eq!(time_us(text, Bare::Seconds).ok(), of_seconds, "{text:?}");
        assert_eq!(time_us(text, Bare::Micros).ok(), of_micros, "{text:?} of microseconds");
    }
}

#[test]
fn values_for_sides() {
    for (text, expected) in [
        ("4k", Some([Some(4096), Some(4096)])),
        ("4k,8k", Some([Some(4096), Some(8192)])),
        ("4k,8k,16k", Some([Some(4096), Some(8192)])),
        ("4k,8k,", Some([Some(4096), Some(8192)])),
        ("4k,", Some([Some(4096), None])),
        (",8k", Some([None, Some(8192)])),
        (",8k,", Some([None, Some(8192)])),
        (",,8k", Some([None, None])),
        ("", None),
        (",", None),
        (",,", None),
        ("1,2,3,4", None),
        ("4k,x", None),
        ("4k,8k,x", None),
    ] {
        let found = sides(text, |one| size(one, Base::Binary));
        assert_eq!(found.ok(), expected, "{text:?}");
    }
}

#[test]
fn lists_of_cpus_percentiles_and_names() {
    for (text, expected) in [
        ("0", Some(vec![0])),
        ("0-3,5", Some(vec![0, 1, 2, 3, 5])),
        ("5,0-1,1", Some(vec![0, 1, 5])),
        ("2-2", Some(vec![2])),
        ("3-1", None),
        ("1-", None),
        ("-1", None),
        ("all", None),
        ("", None),
        ("70000", None),
    ] {
        assert_eq!(cpus(text).ok(), expected, "{text:?}");
    }
    for (text, expected) in [
        ("99", Some(vec![99.0])),
        ("99.9:50:100", Some(vec![50.0, 99.9, 100.0])),
        ("0", None),
        ("100.1", None),
        ("50,99", None),
        ("nan", None),
        ("", None),
        ("1:", None),
    ] {
        assert_eq!(percentiles(text).ok(), expected, "{text:?}");
    }
    assert!(percentiles(&["1"; 21].join(":")).is_err());
    for (text, expected) in [
        ("a", Some(vec!["a"])),
        ("/a:/b", Some(vec!["/a", "/b"])),
        (r"/dev/foo@3\:c:b", Some(vec!["/dev/foo@3:c", "b"])),
        (r"a\b", Some(vec![r"a\b"])),
        (r"a\", Some(vec![r"a\"])),
        ("a::b", None),
        ("a:", None),
        ("", None),
    ] {
        let found = names(text).ok();
        let found = found.as_ref().map(|names| names.iter().map(String::as_str).collect());
        assert_eq!(found, expected, "{text:?}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_a_value_or_none(text in "\\PC{0,12}|[0-9a-fx.,:%()kmgtpibszud-]{0,12}") {
        for base in [Base::Binary, Base::Decimal] {
            if let Ok(bytes) = size(&text, base) {
                proptest::prop_assert!(bytes <= i64::MAX as u64);
            }
            let _ = (amount(&text, base), count(&text, base, 1));
        }
        for bare in [Bare::Seconds, Bare::Micros] {
            if let Ok(us) = time_us(&text, bare) {
                proptest::prop_assert!(us <= 1 << 53);
            }
        }
        let _ = (percent(&text), truth(&text), percentiles(&text));
        if let Ok(cpus) = cpus(&text) {
            proptest::prop_assert!(cpus.is_sorted());
        }
        if let Ok(names) = names(&text) {
            let escaped: Vec<String> = names.iter().map(|name| name.replace(':', "\\:")).collect();
            proptest::prop_assert_eq!(escaped.join(":"), text);
        }
    }

    #[test]
    fn sizes_scale(n in 0u64..1 << 20) {
        for (unit, bytes) in [("k", 1u64 << 10), ("m", 1 << 20), ("g", 1 << 30), ("kib", 1000), ("", 1)] {
            proptest::prop_assert_eq!(size(&format!("{n}{unit}"), Base::Binary), Ok(n * bytes));
        }
        proptest::prop_assert_eq!(size(&format!("{n:#x}"), Base::Binary), Ok(n));
    }
}
