//! Shared by commands: from a parsed command line to its execution and exit code; opening a store, failures, and the end of
//! the output.

use crate::cli::{Refused, Typed};
use crate::exit;
use crate::objects::ObjectArgs;
use crate::show::escape::Escape;
use crate::show::json::{failure, operation_word};
use crate::show::output::{self, Output};
use crate::show::screen;
use crate::textfile;
use hakobu_core::error::{Cause, Operation, quoted};
use hakobu_s3::{Client, Error, RequestCounts, S3Session, with_session};
use hakobu_sys::host;
use hakobu_transfer::location::{S3Url, s3_path};
use hakobu_transfer::object::list::Choice;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Last line of the help of small commands.
pub const EXIT: &str = "Exit codes: 0 done, 1 something failed, 2 usage.";

/// Carries out a command line: makes its plan and runs it. An error of `plan` is one of usage, an error of `work` a
/// failure; both are messages.
pub fn carry_out<P>(
    typed: Result<Typed, Refused>,
    plan: impl FnOnce(Typed) -> Result<P, String>,
    work: impl FnOnce(P) -> Result<u8, String>,
) -> ExitCode {
    let planned = typed.and_then(|typed| {
        let note = typed.note();
        let plan = plan(typed).map_err(Refused::Usage)?;
        note.iter().for_each(|note| output::message(note));
        Ok(plan)
    });
    let code = match planned {
        Ok(plan) => work(plan).unwrap_or_else(|message| end_with(exit::FAILURE, &message)),
        Err(refused) => refuse(refused, exit::USAGE),
    };
    textfile::settle(code);
    code.into()
}

/// Prints the reason that a command does not start, and returns its exit code.
pub fn refuse(refused: Refused, usage_code: u8) -> u8 {
    match refused {
        Refused::Help(text) => {
            output::text(&text);
            exit::OK
        }
        Refused::Usage(message) => end_with(usage_code, &message),
        Refused::Failed { code, message } => end_with(code, &message),
    }
}

/// Prints the message that a command ends with; returns its exit code.
pub fn end_with(code: u8, message: &str) -> u8 {
    output::message(message);
    code
}

/// Returns bytes as a path.
pub fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Reports a failed operation on a path or a location in S3; with `json` also as a line on this output.
pub fn fail(
    json: Option<&Output>,
    operation: &str,
    typed: impl AsRef<OsStr>,
    why: &dyn std::fmt::Display,
) {
    let (typed, cause) = (typed.as_ref(), why.to_string());
    let message = format!("cannot {} {}: {cause}", in_messages(operation), quoted(typed));
    output::message(&message);
    if let Some(out) = json {
        out.write(&failure(operation, Path::new(typed), &cause, &message));
    }
}

/// Returns the verb of an operation for people. JSON lines keep the names that they have always had.
fn in_messages(operation: &str) -> &str {
    match operation {
        "look at" => "access",
        "look at versioning of" => "read the versioning of",
        "make bucket" => "create bucket",
        same => same,
    }
}

/// Reports a failed operation on a local path; with `json` also as a line on this output.
pub fn fail_at(
    json: Option<&Output>,
    escape: Escape,
    operation: Operation,
    bytes: &[u8],
    cause: &Cause,
) {
    let message = format!("cannot {} '{}': {cause}", operation.words(), escape.path(path(bytes)));
    output::message(&message);
    if let Some(out) = json {
        let (word, cause) = (operation_word(operation), cause.to_string());
        screen::beside(|| out.write(&failure(word, path(bytes), &cause, &message)));
    }
}

/// Prints a note if rules left out everything that a listing found.
pub fn note_left_out(url: &S3Url, choice: &mut Choice) {
    if let Some(why) = choice.all_left_out() {
        let shown = s3_path(&url.bucket, &[&url.key]);
        output::message(&format!("note: {}: {why}", quoted(&shown)));
    }
}

/// Prints the request counts of a store (`--stat`).
pub fn print_requests(store: &S3Session) {
    let requests = RequestCounts::of(store);
    output::message(&format!(
        "{} requests, {} retried, {} slowed down, {} connections",
        requests.succeeded, requests.retries, requests.throttled, requests.connections
    ));
}

/// Opens the store that the options of a small command name.
///
/// # Errors
/// The cause.
pub fn open(args: &ObjectArgs) -> Result<Arc<S3Session>, String> {
    S3Session::open(&args.settings()).map_err(|error| error.to_string())
}

/// Does `work` for each place, typed and parsed, in one store, and prints the text that it returns. Failures are reported
/// with the operation's name, with `json` also as lines. Returns the exit code.
pub fn each<T>(
    store: &Arc<S3Session>,
    json: bool,
    operation: &str,
    places: &[(OsString, T)],
    work: impl AsyncFn(&Client, &OsStr, &T) -> Result<Vec<u8>, Error>,
) -> u8 {
    let out = Output::stdout();
    let done = with_session(store, async |client| {
        let mut code = exit::OK;
        for (typed, place) in places {
            match work(&client, typed, place).await {
                Ok(text) => out.write(&text),
                Err(error) => {
                    fail(json.then_some(&out), operation, typed, &error);
                    code = exit::FAILURE;
                }
            }
        }
        Ok::<_, Error>(code)
    });
    let code = done.unwrap_or_else(|error| {
        fail(json.then_some(&out), operation, "s3://", &error);
        exit::FAILURE
    });
    close(&out, code)
}

/// Returns a storage class by its name; servers without classes name none.
pub fn class(given: &str) -> &str {
    if given.is_empty() { "STANDARD" } else { given }
}

/// Ends a command: writes the buffer; returns the exit code, which is that of a failure if that fails.
pub fn close(out: &Output, code: u8) -> u8 {
    close_with(out, code, exit::FAILURE)
}

/// As [`close`], with the exit code of a failure.
pub fn close_with(out: &Output, code: u8, failure: u8) -> u8 {
    out.finish().map_or(code, |error| {
        let cause = Cause::System(error);
        end_with(failure, &format!("cannot write standard output: {cause}"))
    })
}

/// Returns twenty random characters: the default secret key of a server.
///
/// # Errors
/// The system has no random numbers.
pub fn random_key() -> std::io::Result<String> {
    let bytes = host::random::<20>()?;
    Ok(bytes.iter().map(|byte| char::from(b'A' + byte % 26)).collect())
}

/// Parses a duration in seconds: a plain number, or numbers with `s`, `m`, `h`, `d`, `w` (`1h30m`), as in s5cmd.
pub fn seconds(text: &OsStr) -> Option<u64> {
    let text = text.to_str()?;
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let (mut sum, mut number) = (0u64, String::new());
    for letter in text.chars() {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        let unit = match letter {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        let count: u64 = number.parse().ok()?;
        sum = count.checked_mul(unit)?.checked_add(sum)?;
        number.clear();
    }
    (number.is_empty() && !text.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_of_time() {
        for (text, s) in [
            ("0", Some(0)),
            ("3600", Some(3600)),
            ("90m", Some(5400)),
            ("1h30m", Some(5400)),
            ("7d", Some(604_800)),
            ("2w1s", Some(1_209_601)),
            ("", None),
            ("1h30", None),
            ("h", None),
            ("-1", None),
            ("1.5h", None),
            ("99999999999999999999w", None),
        ] {
            assert_eq!(seconds(OsStr::new(text)), s, "{text}");
        }
    }
}
