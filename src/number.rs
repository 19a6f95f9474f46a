//! Number formats: rsync's levels of `-h`, and the sizes of coreutils' `-h`.

pub use hakobu_core::number::{bytes, grouped, things};

/// Format of numbers: rsync(1), `--human-readable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Digits {
    /// Digits alone (`--no-h`).
    Plain,
    /// A comma after each three (rsync's default).
    #[default]
    Grouped,
    /// Units of 1000 (`-h`).
    Thousands,
    /// Units of 1024 (`-hh`).
    Kibi,
}

impl Digits {
    /// Returns the format for a number of `-h`.
    pub fn of_level(level: u8) -> Digits {
        match level {
            0 => Digits::Grouped,
            1 => Digits::Thousands,
            _ => Digits::Kibi,
        }
    }

    /// Formats a size in bytes.
    pub fn size(self, bytes: u64) -> String {
        let base = match self {
            Digits::Plain => return bytes.to_string(),
            Digits::Grouped => return grouped(bytes),
            Digits::Thousands => 1000.0,
            Digits::Kibi => 1024.0,
        };
        let (mut rest, mut unit) = (bytes as f64, None);
        for letter in ['K', 'M', 'G', 'T', 'P'] {
            if rest < base {
                break;
            }
            rest /= base;
            unit = Some(letter);
        }
        match unit {
            Some(letter) => format!("{rest:.2}{letter}"),
            None => grouped(bytes),
        }
    }

    /// Formats a rate or a ratio, with two decimals.
    pub fn decimal(self, value: f64) -> String {
        let whole = value as u64;
        match self {
            Digits::Plain => format!("{value:.2}"),
            Digits::Thousands if whole >= 1000 => self.size(whole),
            Digits::Kibi if whole >= 1024 => self.size(whole),
            _ => {
                let hundredths = (value * 100.0).round() as u64;
                format!("{}.{:02}", grouped(hundredths / 100), hundredths % 100)
            }
        }
    }

    /// Formats a count, never with a unit.
    pub fn count(self, n: u64) -> String {
        if self == Digits::Plain { n.to_string() } else { grouped(n) }
    }
}

/// Formats bytes like coreutils' `--si`: units of 1000, rounded up, one decimal below ten.
pub fn ceiled_si(bytes: u64) -> String {
    in_units(bytes, 1000, ["", "k", "M", "G", "T", "P", "E"])
}

/// Formats bytes like coreutils' `-h`: units of 1024, rounded up, one decimal below ten.
pub fn ceiled(bytes: u64) -> String {
    in_units(bytes, 1024, ["", "K", "M", "G", "T", "P", "E"])
}

fn in_units(bytes: u64, base: u64, letters: [&str; 7]) -> String {
    let mut unit = 1u64;
    for letter in letters {
        if bytes.div_ceil(unit) < base || letter == "E" {
            let tenths = (u128::from(bytes) * 10).div_ceil(u128::from(unit));
            return if tenths < 100 && !letter.is_empty() {
                format!("{}.{}{letter}", tenths / 10, tenths % 10)
            } else {
                format!("{}{letter}", bytes.div_ceil(unit))
            };
        }
        unit *= base;
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_rsync() {
        for (n, grouped, thousands, kibi) in [
            (0, "0", "0", "0"),
            (999, "999", "999", "999"),
            (1000, "1,000", "1.00K", "1,000"),
            (1023, "1,023", "1.02K", "1,023"),
            (1024, "1,024", "1.02K", "1.00K"),
            (9999, "9,999", "10.00K", "9.76K"),
            (10_000, "10,000", "10.00K", "9.77K"),
            (999_499, "999,499", "999.50K", "976.07K"),
            (1_000_000, "1,000,000", "1.00M", "976.56K"),
            (1_048_575, "1,048,575", "1.05M", "1024.00K"),
            (1_265_648, "1,265,648", "1.27M", "1.21M"),
        ] {
            assert_eq!(Digits::Plain.size(n), n.to_string());
            assert_eq!(Digits::Grouped.size(n), grouped);
            assert_eq!(Digits::Thousands.size(n), thousands);
            assert_eq!(Digits::Kibi.size(n), kibi);
            assert_eq!(Digits::Kibi.count(n), grouped);
        }
    }

    #[test]
    fn decimals() {
        for (value, plain, grouped, thousands, kibi) in [
            (0.0, "0.00", "0.00", "0.00", "0.00"),
            (616.0, "616.00", "616.00", "616.00", "616.00"),
            (0.026, "0.03", "0.03", "0.03", "0.03"),
            (1000.5, "1000.50", "1,000.50", "1.00K", "1,000.50"),
            (6_917_142.0, "6917142.00", "6,917,142.00", "6.92M", "6.60M"),
        ] {
            assert_eq!(Digits::Plain.decimal(value), plain);
            assert_eq!(Digits::Grouped.decimal(value), grouped);
            assert_eq!(Digits::Thousands.decimal(value), thousands);
            assert_eq!(Digits::Kibi.decimal(value), kibi);
        }
    }

    #[test]
    fn as_coreutils() {
        for (n, text) in [
            (0, "0"),
            (1, "1"),
            (1023, "1023"),
            (1024, "1.0K"),
            (1025, "1.1K"),
            (4096, "4.0K"),
            (10_137, "9.9K"),
            (10_138, "10K"),
            (1_047_552, "1023K"),
            (1_047_553, "1.0M"),
            (u64::MAX, "16E"),
        ] {
            assert_eq!(ceiled(n), text, "{n}");
        }
    }

    #[test]
    fn in_sentences() {
        assert_eq!((things(1, "job"), things(2000, "job")), ("1 job".into(), "2,000 jobs".into()));
        assert_eq!(bytes(3), "3 bytes");
        assert_eq!(bytes(81_920_000), "81.92 MB");
    }
}
