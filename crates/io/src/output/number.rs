//! Numbers in fio's human-readable form: four or six characters and a unit, `12.3k`, `48.1MiB`.

/// Units of a thousand.
const SI: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
/// Units of 1024 bytes.
const BINARY: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
/// Units of 1000 bytes.
const DECIMAL: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

/// A number in units of `step`: in as large a unit as it takes for `chars` digits to be enough, with
/// as many digits after the point as fit.
fn scaled(number: f64, chars: usize, step: f64, units: &[&str; 7]) -> String {
    let limit = 10f64.powi(i32::try_from(chars).unwrap_or(i32::MAX));
    let (mut value, mut power) = (number.max(0.0), 0);
    while value.round() >= limit && power + 1 < units.len() {
        value /= step;
        power += 1;
    }
    let whole = format!("{:.0}", value.trunc()).len();
    let digits = if power == 0 { 0 } else { chars.saturating_sub(whole + 1) };
    format!("{value:.digits$}{}", units[power])
}

/// A count: `4801`, `12.3k`.
pub fn count(number: f64) -> String {
    scaled(number, 4, 1e3, &SI)
}

/// A time in six characters: `99212`, `1044.5k`.
pub fn time(number: u64) -> String {
    scaled(number as f64, 6, 1e3, &SI)
}

/// Bytes in units of 1024: `4096B`, `48.1MiB`.
pub fn binary(bytes: f64) -> String {
    scaled(bytes, 4, 1024.0, &BINARY)
}

/// Bytes in units of 1000: `50.4MB`.
pub fn decimal(bytes: f64) -> String {
    scaled(bytes, 4, 1e3, &DECIMAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs that fio has printed in published results.
    #[test]
    fn as_fio_has_them() {
        assert_eq!([count(4801.0), count(12_345.6), count(0.0)], ["4801", "12.3k", "0"]);
        assert_eq!([count(1_134_000.0), count(9999.4)], ["1134k", "9999"]);
        assert_eq!(
            [binary(4096.0), binary(131_072.0), binary(65_536.0)],
            ["4096B", "128KiB", "64.0KiB"]
        );
        assert_eq!([binary(19_686_276.0), decimal(19_686_276.0)], ["18.8MiB", "19.7MB"]);
        assert_eq!([binary(104_857_600.0), decimal(104_857_600.0)], ["100MiB", "105MB"]);
        assert_eq!([binary(2_147_483_648.0), decimal(2_147_483_648.0)], ["2048MiB", "2147MB"]);
        assert_eq!([binary(10_737_418_240.0), decimal(10_737_418_240.0)], ["10.0GiB", "10.7GB"]);
        assert_eq!([time(390), time(99_212), time(1_044_512)], ["390", "99212", "1044.5k"]);
    }

    #[test]
    fn no_number_is_too_large() {
        assert_eq!(time(u64::MAX), "18447P");
        assert_eq!(binary(u64::MAX as f64), "16.0EiB");
    }
}
