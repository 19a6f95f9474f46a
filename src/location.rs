//! Where an argument points: a local path, or something that only looks like one.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The target that discards everything; see `Spec::target`.
pub const NULL: &str = "null:";

/// Refuses an argument that names another machine or a store.
///
/// As in rsync a colon before the first slash names a host: `host:path`, `host::module`,
/// `rsync://host/module`; `./host:path` is a local file.
///
/// # Errors
/// A sentence for the user, with the way to write a local file of that name.
pub fn check_local(argument: &OsStr) -> Result<(), String> {
    let bytes = argument.as_bytes();
    if argument == NULL {
        return Ok(());
    }
    let shown = argument.display();
    if let Some(colon) = bytes.iter().position(|b| matches!(b, b':' | b'/'))
        && bytes.get(colon) == Some(&b':')
    {
        let scheme = &bytes[..colon];
        if bytes[colon..].starts_with(b"://") {
            return Err(match scheme {
                b"s3" => format!("'{shown}': s3:// locations are not built"),
                _ => format!("'{shown}': {}:// locations are not built", scheme.escape_ascii()),
            });
        }
        return Err(format!(
            "'{shown}': remote locations are not built; for a local file write './{shown}'"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_before_the_first_slash_is_a_host() {
        for local in ["a", "/a:b", "./a:b", "a/b:c", "", "null:", "../x:", ".:/a/.."] {
            let refused = check_local(OsStr::new(local)).is_err();
            assert_eq!(refused, local == ".:/a/..", "{local}");
        }
        for remote in ["host:path", "me@host:", "host::module", "[::1]:x", "rsync://h/m", "s3://b"]
        {
            assert!(check_local(OsStr::new(remote)).is_err(), "{remote}");
        }
        assert_eq!(
            check_local(OsStr::new("host:path")).err().as_deref(),
            Some(
                "'host:path': remote locations are not built; for a local file write './host:path'"
            )
        );
    }
}
