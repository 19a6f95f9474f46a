//! What was typed after an option, read as what it stands for; and the message where it is not that.

use super::Given;
use std::str::FromStr;
use std::time::Duration;

/// Units of time and their seconds.
const UNITS_S: [(&str, f64); 5] =
    [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

impl Given {
    /// The value as text.
    ///
    /// # Errors
    /// It is no UTF-8.
    pub fn text(&self) -> Result<&str, String> {
        self.value.to_str().ok_or_else(|| self.wrong("is no text"))
    }

    /// The value as a number.
    ///
    /// # Errors
    /// It is none of this type.
    pub fn number<T: FromStr>(&self) -> Result<T, String> {
        self.text()?.parse().map_err(|_| self.wrong("is no number"))
    }

    /// The value as a number of at least 1.
    ///
    /// # Errors
    /// It is none of this type, or 0.
    pub fn positive<T: FromStr + From<u8> + PartialEq>(&self) -> Result<T, String> {
        match self.number()? {
            number if number == T::from(0) => Err(self.wrong("must be at least 1")),
            number => Ok(number),
        }
    }

    /// The value as a duration, in one of the units `us`, `ms`, `s`, `m`, `h` up to `longest`.
    ///
    /// # Errors
    /// It is none; the message shows `examples`.
    pub fn duration(&self, longest: &str, examples: &str) -> Result<Duration, String> {
        let text = self.text()?;
        let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, unit) = text.split_at(digits);
        let last = UNITS_S.iter().position(|(name, _)| *name == longest);
        let known = UNITS_S.iter().take(last.map_or(0, |last| last + 1));
        let Some((_, scale_s)) = known.into_iter().find(|(name, _)| *name == unit) else {
            return Err(self.wrong(&format!("is not a duration such as {examples}")));
        };
        let number: f64 = number.parse().map_err(|_| self.wrong("is no duration"))?;
        Duration::try_from_secs_f64(number * scale_s).map_err(|_| self.wrong("is too long"))
    }

    /// The message for a value that cannot be: `why` goes on after it.
    pub fn wrong(&self, why: &str) -> String {
        format!("--{}={}: {why}", self.name, self.value.display())
    }
}
