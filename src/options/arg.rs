//! Parsing of option values, with messages for invalid ones.

use super::OptArg;
use hakobu_core::number;
use hakobu_s3::without_secrets;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Units of time and their seconds.
const UNITS_S: [(&str, f64); 5] =
    [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

impl OptArg {
    /// Returns the value as text.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn text(&self) -> Result<&str, String> {
        self.value.to_str().ok_or_else(|| self.wrong("is not valid UTF-8"))
    }

    /// Returns the value parsed; `None` if it is invalid.
    pub fn parsed<T: FromStr>(&self) -> Option<T> {
        self.value.to_str()?.parse().ok()
    }

    /// Returns the value as a number.
    ///
    /// # Errors
    /// It is not a number of this type.
    pub fn number<T: FromStr>(&self) -> Result<T, String> {
        self.text()?.parse().map_err(|_| self.wrong("is not a number"))
    }

    /// Returns the value as a number of at least 1.
    ///
    /// # Errors
    /// It is not a number of this type, or 0.
    pub fn positive<T: FromStr + From<u8> + PartialEq>(&self) -> Result<T, String> {
        match self.number()? {
            number if number == T::from(0) => Err(self.wrong("must be at least 1")),
            number => Ok(number),
        }
    }

    /// Returns the value as a duration, in one of the units `us`, `ms`, `s`, `m`, `h` up to `longest`.
    ///
    /// # Errors
    /// It is not a duration; the message shows `examples`.
    pub fn duration(&self, longest: &str, examples: &str) -> Result<Duration, String> {
        let text = self.text()?;
        let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, unit) = text.split_at(digits);
        let last = UNITS_S.iter().position(|(name, _)| *name == longest);
        let known = UNITS_S.iter().take(last.map_or(0, |last| last + 1));
        let Some((_, scale_s)) = known.into_iter().find(|(name, _)| *name == unit) else {
            return Err(self.wrong(&format!("is not a duration such as {examples}")));
        };
        let number: f64 = number.parse().map_err(|_| self.wrong("is not a duration"))?;
        Duration::try_from_secs_f64(number * scale_s).map_err(|_| self.wrong("is too long"))
    }

    /// Returns the message for an invalid value: `why` follows a colon.
    pub fn wrong(&self, why: &str) -> String {
        format!("--{}={}: {why}", self.name, self.value.display())
    }

    /// Returns the message for an invalid value: `why` is the rest of the sentence. Passwords in URLs are not shown.
    pub fn refuse(&self, why: &str) -> String {
        let value = self.value.to_string_lossy();
        match self.name.ends_with("endpoint-url") {
            true => format!("--{}={} {why}", self.name, without_secrets(&value)),
            false => format!("--{}={value} {why}", self.name),
        }
    }

    /// Returns the value as a number of bytes.
    ///
    /// # Errors
    /// It is not a size.
    pub fn size(&self) -> Result<u64, String> {
        number::parse_size(&self.value, 1).map_err(|why| self.refuse(why))
    }

    /// Returns the value as a path.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(&self.value)
    }
}
