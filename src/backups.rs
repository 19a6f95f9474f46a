//! Backups that cp and mv keep of what they replace: `-b`, `--backup`, `--suffix`, and the variables VERSION_CONTROL and
//! SIMPLE_BACKUP_SUFFIX, with the meaning of coreutils.

use crate::cli::{Group, OptArg, Takes, flag, parts, put, titled, value};
use hakobu_transfer::plan::mv::Backup;
use hakobu_transfer::policy::Numbering;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The suffix without an option or a variable.
pub const SUFFIX: &[u8] = b"~";

/// Values of `--backup` and VERSION_CONTROL; `None` makes no backups.
const CONTROLS: [(&str, Option<Numbering>); 8] = [
    ("none", None),
    ("off", None),
    ("simple", Some(Numbering::Simple)),
    ("never", Some(Numbering::Simple)),
    ("existing", Some(Numbering::Existing)),
    ("nil", Some(Numbering::Existing)),
    ("numbered", Some(Numbering::Numbered)),
    ("t", Some(Numbering::Numbered)),
];

/// The options about backups read so far.
#[derive(Clone, Debug, Default)]
pub struct BackupArgs {
    /// One of them was given.
    on: bool,
    control: Option<Option<Numbering>>,
    suffix: Option<Vec<u8>>,
}

parts!(BackupArgs {});

/// Options about backups.
pub static OPTIONS: Group<BackupArgs> = titled("Backups").with(&[
    flag("b", Some('b'), "same as --backup without CONTROL")
        .short_only()
        .local("")
        .sets(|args, on| args.on = on),
    value(
        "backup",
        None,
        "CONTROL",
        "keep replaced files under other names: simple, numbered, existing, none",
    )
    .takes(Takes::Perhaps("CONTROL"))
    .words(&["simple", "numbered", "existing", "none"])
    .local("")
    .reads(BackupArgs::set_control),
    value("suffix", Some('S'), "SUFFIX", "suffix of simple backups (~); implies --backup")
        .local("")
        .reads(|args, arg| {
            let suffix = arg.value.as_bytes();
            if suffix.is_empty() || suffix.contains(&b'/') {
                return Err("a suffix is not empty and has no slash".into());
            }
            args.on = true;
            put(&mut args.suffix, Some(suffix.to_vec()))
        }),
]);

impl BackupArgs {
    fn set_control(&mut self, arg: &OptArg) -> Result<(), String> {
        self.on = true;
        if arg.value.is_empty() {
            return Ok(());
        }
        let control = control(&arg.value).ok_or_else(|| arg.refuse(ONE_OF))?;
        put(&mut self.control, Some(control))
    }

    /// Returns the names of backups; `None` if there are none. `keeps`: existing files are kept as they are.
    ///
    /// # Errors
    /// A contradiction, or a wrong variable.
    pub fn backup(self, keeps: bool) -> Result<Option<Backup>, String> {
        self.backup_with(keeps, |name| std::env::var_os(name))
    }

    fn backup_with(
        self,
        keeps: bool,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Backup>, String> {
        if !self.on {
            return Ok(None);
        }
        if keeps {
            return Err("-b and -n cannot be used together".into());
        }
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let numbering = match (self.control, variable("VERSION_CONTROL")) {
            (Some(control), _) => control,
            (None, None) => Some(Numbering::Existing),
            (None, Some(value)) => control(&value)
                .ok_or_else(|| format!("VERSION_CONTROL={}: {ONE_OF}", value.display()))?,
        };
        // As in coreutils, a wrong variable counts as absent.
        let of_variable = || {
            let value = variable("SIMPLE_BACKUP_SUFFIX")?.as_bytes().to_vec();
            (!value.contains(&b'/')).then_some(value)
        };
        let suffix = self.suffix.or_else(of_variable).unwrap_or_else(|| SUFFIX.to_vec());
        Ok(numbering.map(|numbering| Backup { suffix, numbering }))
    }
}

const ONE_OF: &str = "none of none, off, simple, never, existing, nil, numbered, t";

/// Returns the meaning of a value, which may be abbreviated.
fn control(value: &OsStr) -> Option<Option<Numbering>> {
    let value = value.to_str()?;
    if let Some((_, control)) = CONTROLS.iter().find(|(name, _)| *name == value) {
        return Some(*control);
    }
    let mut found = CONTROLS.iter().filter(|(name, _)| name.starts_with(value));
    let (_, first) = found.next()?;
    found.all(|(_, other)| other == first).then_some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_backups() {
        let read = |control: Option<&str>, suffix: Option<&str>, variables: [&str; 2]| {
            let args = BackupArgs {
                on: true,
                control: control.map(|text| super::control(OsStr::new(text)).unwrap()),
                suffix: suffix.map(|text| text.into()),
            };
            let variable = |name: &str| {
                let [control, suffix] = variables;
                Some(if name == "VERSION_CONTROL" { control } else { suffix }.into())
            };
            match args.backup_with(false, variable) {
                Ok(None) => "none".to_owned(),
                Ok(Some(Backup { suffix, numbering })) => {
                    format!("{numbering:?} {}", suffix.escape_ascii())
                }
                Err(message) => message,
            }
        };
        for (control, suffix, variables, expected) in [
            (None, None, ["", ""], "Existing ~"),
            (None, None, ["t", ".old"], "Numbered .old"),
            (None, Some(".s"), ["simple", ".old"], "Simple .s"),
            (Some("off"), None, ["t", ""], "none"),
            (Some("numbered"), None, ["simple", "a/b"], "Numbered ~"),
            (None, None, ["none", ""], "none"),
            (
                None,
                None,
                ["x", ""],
                "VERSION_CONTROL=x: none of none, off, simple, never, existing, nil, numbered, t",
            ),
        ] {
            assert_eq!(read(control, suffix, variables), expected);
        }
        assert_eq!(BackupArgs::default().backup_with(true, |_| Some("t".into())), Ok(None));
    }

    #[test]
    fn abbreviations() {
        for (value, expected) in [
            ("nu", Some(Some(Numbering::Numbered))),
            ("ne", Some(Some(Numbering::Simple))),
            ("ni", Some(Some(Numbering::Existing))),
            ("no", Some(None)),
            ("n", None),
            ("T", None),
            ("nevery", None),
        ] {
            assert_eq!(control(OsStr::new(value)), expected, "{value}");
        }
    }
}
