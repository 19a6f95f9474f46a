//! `--chown=USER:GROUP`: names or numbers.

use hakobu_sys::process;
use hakobu_transfer::policy::IdMap;
use std::ffi::OsStr;

/// Owner of everything; `None` keeps that half of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
}

/// Splits the value of `--chown` into its halves; an empty one keeps that half of the source.
///
/// # Errors
/// A sentence for the user.
pub fn halves(text: &OsStr) -> Result<(&str, &str), String> {
    let text = text.to_str().ok_or("--chown: names of users and groups are text")?;
    Ok(text.split_once(':').unwrap_or((text, "")))
}

/// Parses the value of `--chown` and looks names up in the system's databases.
///
/// # Errors
/// A sentence for the user.
pub fn parse(text: &OsStr) -> Result<Owner, String> {
    let (user, group) = halves(text)?;
    let find = |name: &str, names: &Names| match name {
        "" => Ok(None),
        name => match names.id(name) {
            None => Err(format!("--chown={}: there is no {} '{name}'", text.display(), names.what)),
            id => Ok(id),
        },
    };
    Ok(Owner { uid: find(user, &USERS)?, gid: find(group, &GROUPS)? })
}

/// A database of users or of groups.
pub struct Names {
    /// "user" or "group".
    pub what: &'static str,
    /// Looks up an ID by its name.
    pub id_of: fn(&str) -> Option<u32>,
    /// Looks up the name of an ID.
    pub name_of: fn(u32) -> Option<String>,
}

impl Names {
    /// Returns the ID that a number or a name means.
    fn id(&self, name: &str) -> Option<u32> {
        let number = name.bytes().all(|byte| byte.is_ascii_digit()).then(|| name.parse().ok());
        number.flatten().or_else(|| (self.id_of)(name))
    }
}

/// The users of the system.
pub const USERS: Names =
    Names { what: "user", id_of: process::uid_of, name_of: process::user_name };
/// The groups of the system.
pub const GROUPS: Names =
    Names { what: "group", id_of: process::gid_of, name_of: process::group_name };

/// Parses the value of `--usermap` or `--groupmap`: comma-separated `FROM:TO`, where FROM is a name, a number, a
/// range of numbers, `*`, or nothing for the numbers without a name. `is_far`: names are those of another machine.
///
/// # Errors
/// A sentence for the user.
pub fn map(option: &str, text: &OsStr, names: &Names, is_far: bool) -> Result<IdMap, String> {
    let text = text.to_str().ok_or_else(|| format!("--{option}: names are text"))?;
    let mut map = IdMap::default();
    for pair in text.split(',') {
        let wrong = |why: &str| format!("--{option}={text}: '{pair}' {why}");
        let (from, to) = pair.split_once(':').ok_or_else(|| wrong("is not FROM:TO"))?;
        let id = |name: &str| {
            let missing = || format!("--{option}={text}: there is no {} '{name}'", names.what);
            names.id(name).ok_or_else(missing)
        };
        let range = from
            .split_once('-')
            .and_then(|(low, high)| Some(low.parse::<u32>().ok()?..=high.parse::<u32>().ok()?));
        let range = match (from, range) {
            ("", _) => {
                map.add_nameless(names.name_of, id(to)?);
                continue;
            }
            ("*", _) => 0..=u32::MAX,
            (_, Some(range)) => range,
            (from, None) if from.contains(['*', '?', '[']) => {
                return Err(wrong(
                    "has a wildcard in a name, which is not supported; '*' alone is",
                ));
            }
            (from, None) if is_far && !from.bytes().all(|byte| byte.is_ascii_digit()) => {
                map.add_named(from, id(to)?);
                continue;
            }
            (from, None) => {
                let id = id(from)?;
                id..=id
            }
        };
        map.add(range, id(to)?);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let owner = |uid, gid| Some(Owner { uid, gid });
        for (text, expected) in [
            ("5:6", owner(Some(5), Some(6))),
            ("5", owner(Some(5), None)),
            ("5:", owner(Some(5), None)),
            (":6", owner(None, Some(6))),
            ("root:root", owner(Some(0), Some(0))),
            ("", owner(None, None)),
            (":", owner(None, None)),
            ("no-such-user-here", None),
            (":no-such-group-here", None),
            ("*:root", None),
            ("1-5:3", None),
            ("5:6:7", None),
            ("99999999999", None),
        ] {
            assert_eq!(parse(OsStr::new(text)).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn maps() {
        let read = |text: &str| map("usermap", OsStr::new(text), &USERS, false);
        let found = read("root:7,10-20:root,*:5").unwrap();
        assert_eq!([found.of(0), found.of(10), found.of(20), found.of(21)], [7, 0, 0, 5]);
        let found = read("0:3,:4").unwrap();
        assert_eq!([found.of(0), found.of(3_999_999_999)], [3, 4]);
        for text in ["x", ":no-such-user", "a*:5", "no-such-user:5", "0:no-such-user"] {
            assert!(read(text).unwrap_err().starts_with("--usermap="), "{text}");
        }
        let far = map("usermap", OsStr::new("no-such-user:5,3:6,:7"), &USERS, true).unwrap();
        let of = |id, name: &str| far.of_far(id, name.as_bytes());
        assert_eq!([of(3, "no-such-user"), of(3, "x"), of(4, "x")], [Some(5), Some(6), None]);
        assert_eq!(of(4, ""), Some(7));
    }
}
