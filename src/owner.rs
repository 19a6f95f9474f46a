//! `--chown=USER:GROUP`: names or numbers.

use std::ffi::OsStr;

/// Who shall own everything; `None` leaves that half as the source has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
}

/// What was typed, before names are looked up.
#[derive(Debug, PartialEq, Eq)]
struct Typed<'a> {
    user: Option<&'a str>,
    group: Option<&'a str>,
}

fn split(text: &str) -> Typed<'_> {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    Typed { user: (!user.is_empty()).then_some(user), group: (!group.is_empty()).then_some(group) }
}

/// Reads the value of `--chown` and looks names up in the system's databases.
///
/// # Errors
/// A sentence for the user.
pub fn parse(text: &OsStr) -> Result<Owner, String> {
    let text = text.to_str().ok_or("--chown: names of users and groups are text")?;
    let typed = split(text);
    let number = |name: &str| {
        if name.bytes().all(|b| b.is_ascii_digit()) { name.parse().ok() } else { None }
    };
    let find = |name: Option<&str>, what: &str, look: fn(&str) -> Option<u32>| match name {
        None => Ok(None),
        Some(name) => number(name)
            .or_else(|| look(name))
            .map(Some)
            .ok_or_else(|| format!("--chown={text}: there is no {what} '{name}'")),
    };
    Ok(Owner {
        uid: find(typed.user, "user", hakobu_sys::user::uid_of)?,
        gid: find(typed.group, "group", hakobu_sys::user::gid_of)?,
    })
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
}
