//! `-` with an `s3://` argument: standard input or standard output, handled by `pipe` and `cat` with their options.

use crate::commands::{cat, pipe};
use crate::objects::{is_s3, url};
use crate::options::{Table, Typed};
use hakobu_transfer::object::list::Pattern;
use std::ffi::OsString;

/// One object and a standard stream, as the command line of `pipe` or `cat`.
#[derive(Debug)]
pub enum Dash {
    /// To standard output: arguments of `cat`.
    Out(Typed),
    /// From standard input: arguments of `pipe`.
    In(Typed),
}

/// Parses a command line of `cp`; `None` if it has no standard stream.
///
/// # Errors
/// Options that are incompatible with a standard stream.
pub fn of(typed: &Typed) -> Result<Option<Dash>, String> {
    let is_dash = |path: &OsString| path == "-";
    if !typed.paths.iter().any(is_dash) || !typed.paths.iter().any(is_s3) {
        return Ok(None);
    }
    Ok(Some(match typed.paths.as_slice() {
        [object, dash] if is_dash(dash) && is_s3(object) => {
            let raw = typed.options.iter().any(|arg| arg.name == "raw");
            if !raw && Pattern::parse(&url(object)?.key).is_some() {
                let message = "a wildcard does not go with '-' (standard output): give one object";
                return Err(message.to_owned());
            }
            Dash::Out(converted(&cat::TABLE, object, typed)?)
        }
        [dash, object] if is_dash(dash) && is_s3(object) => {
            Dash::In(converted(&pipe::TABLE, object, typed)?)
        }
        _ => {
            let message = "'-' (standard input or output) goes with one object on the other side; \
                           a file of that name is ./-";
            return Err(message.to_owned());
        }
    }))
}

/// Converts the options of `cp` to those of the other command.
fn converted<S>(table: &Table<S>, object: &OsString, typed: &Typed) -> Result<Typed, String> {
    let (paths, notes) = (vec![object.clone()], typed.notes.clone());
    let mut converted = Typed { options: Vec::new(), paths, noted: Vec::new(), notes };
    for arg in &typed.options {
        if table.rows().any(|row| row.name == arg.name) {
            converted.options.push(arg.clone());
            continue;
        }
        let (name, dashes) = (arg.name, if arg.name.len() == 1 { "-" } else { "--" });
        return Err(format!("{dashes}{name} does not go with '-' (standard input or output)"));
    }
    Ok(converted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cp::TABLE;

    fn dash(line: &str) -> Result<Option<Dash>, String> {
        of(&TABLE.parse_line(line)?)
    }

    #[test]
    fn standard_streams_beside_one_object() {
        for line in ["a -", "- a", "- -", "s3://abc/k a", "s3://abc/k ./-"] {
            assert!(matches!(dash(line), Ok(None)), "{line}");
        }
        assert!(matches!(dash("s3://abc/k -"), Ok(Some(Dash::Out(_)))));
        assert!(matches!(dash("--raw s3://abc/k* -"), Ok(Some(Dash::Out(_)))));
        let Ok(Some(Dash::In(typed))) = dash("-n --part-size=5MiB - s3://abc/k") else { panic!() };
        let options: Vec<_> = typed.options.iter().map(|arg| arg.name).collect();
        assert_eq!(options, ["no-clobber", "part-size"]);
        for line in [
            "s3://abc/k s3://abc/l -",
            "- a s3://abc/k",
            "-r s3://abc/k -",
            "-v s3://abc/k -",
            "-n s3://abc/k -",
            "-p - s3://abc/k",
            "s3://abc/k* -",
        ] {
            assert!(dash(line).is_err(), "{line}");
        }
    }
}
