//! `-j` in GNU parallel's syntax, and `auto`.

use hakobu_core::unit::Jobs;
use std::ffi::OsStr;

/// Number of jobs for `-j 0` (as many as possible); more threads would only wait for each other.
const MANY: usize = 256;
/// Upper bound of plausible values.
const JOBS_MAX: usize = 4096;

/// Parses the value of `-j` on a machine with `cpus` CPUs: `N` jobs, `+N` or `-N` relative to the CPUs (at least
/// one), `N%` of them, `0` for as many as possible, `auto`.
///
/// # Errors
/// A sentence for the user.
pub fn parse(text: &OsStr, cpus: usize) -> Result<Jobs, String> {
    let wrong = || {
        format!(
            "-j '{}': give a number of jobs up to {JOBS_MAX}, +N, -N, N%, 0 or auto",
            text.to_string_lossy()
        )
    };
    let text = text.to_str().ok_or_else(wrong)?;
    if text == "auto" {
        return Ok(Jobs::Auto);
    }
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if plain { digits.parse::<usize>().ok() } else { None }.ok_or_else(wrong)
    };
    let jobs = if let Some(more) = text.strip_prefix('+') {
        cpus.saturating_add(number(more)?)
    } else if let Some(less) = text.strip_prefix('-') {
        cpus.saturating_sub(number(less)?)
    } else if let Some(percent) = text.strip_suffix('%') {
        cpus.saturating_mul(number(percent)?) / 100
    } else {
        match number(text)? {
            0 => MANY,
            jobs => jobs,
        }
    };
    if jobs > JOBS_MAX { Err(wrong()) } else { Ok(Jobs::Fixed(jobs.max(1))) }
}

/// Parses the value of `--jobs-per-file`: the number of workers for the content of one file.
///
/// # Errors
/// A sentence for the user.
pub fn parse_per_file(text: &OsStr) -> Result<Jobs, String> {
    let number = text.to_str().and_then(|text| text.parse::<usize>().ok());
    match number {
        _ if text == "auto" => Ok(Jobs::Auto),
        Some(jobs) if (1..=JOBS_MAX).contains(&jobs) => Ok(Jobs::Fixed(jobs)),
        _ => Err(format!(
            "--jobs-per-file '{}': give a number of jobs from 1 to {JOBS_MAX}, or auto",
            text.to_string_lossy()
        )),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn jobs_of_one_file() {
        let parse = |text: &str| parse_per_file(OsStr::new(text));
        assert_eq!(parse("auto"), Ok(Jobs::Auto));
        assert_eq!(parse("1"), Ok(Jobs::Fixed(1)));
        assert_eq!(parse("32"), Ok(Jobs::Fixed(32)));
        for text in ["0", "-1", "1.5", "x", "", "50%", "4097"] {
            assert!(parse(text).unwrap_err().contains("from 1 to 4096"), "{text}");
        }
    }

    use super::*;

    #[test]
    fn table() {
        for (text, jobs) in [
            ("auto", Some(Jobs::Auto)),
            ("1", Some(Jobs::Fixed(1))),
            ("32", Some(Jobs::Fixed(32))),
            ("0", Some(Jobs::Fixed(MANY))),
            ("+0", Some(Jobs::Fixed(8))),
            ("+3", Some(Jobs::Fixed(11))),
            ("-3", Some(Jobs::Fixed(5))),
            ("-8", Some(Jobs::Fixed(1))),
            ("-100", Some(Jobs::Fixed(1))),
            ("100%", Some(Jobs::Fixed(8))),
            ("50%", Some(Jobs::Fixed(4))),
            ("1%", Some(Jobs::Fixed(1))),
            ("400%", Some(Jobs::Fixed(32))),
            ("4097", None),
            ("99999999999999999999", None),
            ("", None),
            ("+", None),
            ("%", None),
            ("1.5", None),
            ("--2", None),
            ("Auto", None),
            (" 4", None),
        ] {
            assert_eq!(parse(OsStr::new(text), 8).ok(), jobs, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn always_between_one_and_the_limit(text: String, cpus in 1usize..2000) {
            if let Ok(Jobs::Fixed(jobs)) = parse(OsStr::new(&text), cpus) {
                proptest::prop_assert!((1..=JOBS_MAX).contains(&jobs));
            }
        }

        #[test]
        fn relative_to_the_cpus(n in 0usize..500, cpus in 1usize..500) {
            let jobs = |text: String| parse(OsStr::new(&text), cpus);
            proptest::prop_assert_eq!(jobs(format!("+{n}")), Ok(Jobs::Fixed(cpus + n)));
            proptest::prop_assert_eq!(
                jobs(format!("-{n}")),
                Ok(Jobs::Fixed(cpus.saturating_sub(n).max(1)))
            );
            proptest::prop_assert_eq!(
                jobs(format!("{}00%", n / 100)),
                Ok(Jobs::Fixed((cpus * (n / 100)).max(1)))
            );
        }
    }
}
