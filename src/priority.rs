//! `--nice` as in nice(1) and `--ionice` as in ionice(1): CPU and I/O priority.

use hakobu_sys::process::{self, IoClass};
use std::ffi::OsStr;

/// Default level of a class with levels: ionice(1).
const LEVEL: u8 = 4;

/// An I/O priority: a class and a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoNice {
    /// The class.
    pub class: IoClass,
    /// 0 (first) to 7 (last); 0 in classes without levels.
    pub level: u8,
}

/// Parses the value of `--nice`.
///
/// # Errors
/// The reason, to be placed after the option and the text.
pub fn parse_nice(text: &OsStr) -> Result<i32, &'static str> {
    const WRONG: &str = "is not a niceness: give a whole number from -20 (first) to 19 (last)";
    let value: i32 = text.to_str().and_then(|text| text.parse().ok()).ok_or(WRONG)?;
    if (-20..=19).contains(&value) { Ok(value) } else { Err(WRONG) }
}

/// Parses the value of `--ionice`: `CLASS` or `CLASS:LEVEL`, with a class by name (case-insensitive) or number.
///
/// # Errors
/// The reason, to be placed after the option and the text.
pub fn parse_ionice(text: &OsStr) -> Result<IoNice, &'static str> {
    const CLASS: &str = "is not an I/O priority: give none, realtime, best-effort, idle or 0-3, \
                         perhaps with a level such as best-effort:7";
    const WITHOUT: &str = "gives a level, which only realtime and best-effort have";
    let text = text.to_str().ok_or(CLASS)?;
    let (class, level) = match text.split_once(':') {
        Some((class, level)) => (class, Some(level)),
        None => (text, None),
    };
    let class = match &*class.to_ascii_lowercase() {
        "none" | "0" => IoClass::None,
        "realtime" | "1" => IoClass::Realtime,
        "best-effort" | "2" => IoClass::BestEffort,
        "idle" | "3" => IoClass::Idle,
        _ => return Err(CLASS),
    };
    let has_levels = matches!(class, IoClass::Realtime | IoClass::BestEffort);
    let level = match level {
        Some(_) if !has_levels => return Err(WITHOUT),
        Some(level) => match level.as_bytes() {
            [digit @ b'0'..=b'7'] => digit - b'0',
            _ => return Err("has an invalid level: give 0 (first) to 7 (last)"),
        },
        None if has_levels => LEVEL,
        None => 0,
    };
    Ok(IoNice { class, level })
}

/// CPU and I/O priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priority {
    /// `--nice`.
    pub nice: Option<i32>,
    /// `--ionice`.
    pub ionice: Option<IoNice>,
}

impl Priority {
    /// Sets both, where they are given. They apply to the calling thread and to threads that it starts later, so this is
    /// called before any is started.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn apply(self) -> Result<(), String> {
        if let Some(value) = self.nice {
            process::set_nice(value)
                .map_err(|error| format!("cannot set --nice={value}: {error}"))?;
        }
        if let Some(IoNice { class, level }) = self.ionice {
            process::set_io_priority(class, level)
                .map_err(|error| format!("cannot set --ionice (class {class:?}): {error}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nice() {
        for (text, value) in [
            ("-20", Some(-20)),
            ("0", Some(0)),
            ("10", Some(10)),
            ("+10", Some(10)),
            ("19", Some(19)),
            ("20", None),
            ("-21", None),
            ("1.5", None),
            ("", None),
            ("ten", None),
            ("99999999999", None),
        ] {
            assert_eq!(parse_nice(OsStr::new(text)).ok(), value, "{text:?}");
        }
    }

    #[test]
    fn ionice() {
        use IoClass::*;
        for (text, value) in [
            ("none", Some((None, 0))),
            ("0", Some((None, 0))),
            ("realtime", Some((Realtime, 4))),
            ("1:0", Some((Realtime, 0))),
            ("best-effort", Some((BestEffort, 4))),
            ("Best-Effort:7", Some((BestEffort, 7))),
            ("2:3", Some((BestEffort, 3))),
            ("idle", Some((Idle, 0))),
            ("3", Some((Idle, 0))),
            ("idle:3", Option::None),
            ("none:0", Option::None),
            ("2:8", Option::None),
            ("2:-1", Option::None),
            ("2:77", Option::None),
            ("2:", Option::None),
            ("4", Option::None),
            (":3", Option::None),
            ("", Option::None),
            ("best", Option::None),
        ] {
            let value = value.map(|(class, level)| IoNice { class, level });
            assert_eq!(parse_ionice(OsStr::new(text)).ok(), value, "{text:?}");
        }
    }

    #[test]
    fn defaults_change_nothing() {
        assert_eq!(Priority::default().apply(), Ok(()));
    }

    #[test]
    fn priorities_are_applied() {
        // Priorities are per thread: other tests keep theirs.
        let ionice = parse_ionice(OsStr::new("idle")).ok();
        let last = Priority { nice: Some(19), ionice };
        let applied = std::thread::spawn(move || last.apply());
        assert_eq!(applied.join().unwrap(), Ok(()));
    }
}
