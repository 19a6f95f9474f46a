//! Exit codes of all commands, and the function that chooses rsync's.

use hakobu_transfer::run::Outcome;

/// Success.
pub const OK: u8 = 0;

/// `sync`: invalid command line.
pub const SYNC_USAGE: u8 = 1;
/// The other end does not allow it.
pub const SYNC_UNSUPPORTED: u8 = 4;
/// `sync`: reading or writing failed so that continuing is pointless (disk full).
pub const SYNC_IO: u8 = 11;
/// `sync`: interrupted by a signal (a second Ctrl-C, or a signal 5 s later, ends it at once, with the same code).
pub const SYNC_INTERRUPTED: u8 = 20;
/// `sync`: some entries were not, or not completely, transferred.
pub const SYNC_PARTIAL: u8 = 23;
/// `sync`: some sources vanished while it ran; everything else was transferred.
pub const SYNC_VANISHED: u8 = 24;
/// `sync`: `--max-delete` prevented removals.
pub const SYNC_MAX_DELETE: u8 = 25;

/// `sync`: the time limit was reached (`--stop-after`, `--stop-at`).
pub const SYNC_EXPIRED: u8 = 30;

/// `cp`, `mv`, `rm`, `ls`, `du`: something failed, or a signal ended it. `bench`: a run failed.
pub const FAILURE: u8 = 1;
/// `cp`, `mv`, `rm`, `ls`, `du` and the program itself: invalid command line.
pub const USAGE: u8 = 2;

/// `bench`: interrupted by a signal; earlier measurements are kept.
pub const BENCH_INTERRUPTED: u8 = 130;

/// `io`: interrupted by a signal; earlier measurements are reported.
pub const IO_INTERRUPTED: u8 = 130;

/// `verify`: the trees are equal.
pub const VERIFY_SAME: u8 = 0;
/// `verify`: they differ.
pub const VERIFY_DIFFERENT: u8 = 1;
/// `verify`: something could not be compared, or the command line is invalid.
pub const VERIFY_TROUBLE: u8 = 2;

/// Returns rsync's exit code for a run that began: the first error that stopped it, otherwise the most severe
/// failure.
pub fn of_sync(outcome: &Outcome) -> u8 {
    let totals = &outcome.totals;
    if let Some(fatal) = &outcome.fatal {
        // A fatal error never counts as success, whatever its code is.
        if fatal.code == OK { SYNC_IO } else { fatal.code }
    } else if outcome.stopped {
        SYNC_INTERRUPTED
    } else if totals.failed > 0 {
        SYNC_PARTIAL
    } else if totals.vanished > 0 {
        SYNC_VANISHED
    } else if totals.deletes_held > 0 {
        SYNC_MAX_DELETE
    } else {
        OK
    }
}

/// Returns the exit code of `cp` and `mv` for a run that began: there is only one kind of failure.
pub fn of_copy(outcome: &Outcome) -> u8 {
    if of_sync(outcome) == OK { OK } else { FAILURE }
}

/// Returns the exit code of a command that did its work, but could not print all of what it had to say.
pub fn of_lost_output(command: &str) -> u8 {
    match command {
        "sync" => SYNC_IO,
        "verify" => VERIFY_TROUBLE,
        // As in ls(1).
        "ls" => USAGE,
        _ => FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::error::Fatal;
    use hakobu_core::unit::Totals;

    fn outcome(totals: Totals, stopped: bool, fatal: Option<u8>) -> Outcome {
        Outcome {
            totals,
            jobs: 1,
            stopped,
            fatal: fatal.map(|code| Fatal::new(code, "why")),
            ..Outcome::default()
        }
    }

    #[test]
    fn the_worst_counts() {
        let clean = Totals { files: 3, skipped: 2, unprivileged: 5, ..Totals::default() };
        let held = Totals { deletes_held: 1, ..clean };
        let vanished = Totals { vanished: 1, ..held };
        let failed = Totals { failed: 1, ..vanished };
        for (totals, stopped, fatal, sync, copy) in [
            (clean, false, None, OK, OK),
            (held, false, None, SYNC_MAX_DELETE, FAILURE),
            (vanished, false, None, SYNC_VANISHED, FAILURE),
            (failed, false, None, SYNC_PARTIAL, FAILURE),
            (failed, true, None, SYNC_INTERRUPTED, FAILURE),
            (failed, true, Some(11), SYNC_IO, FAILURE),
            (clean, false, Some(3), 3, FAILURE),
            (clean, false, Some(0), SYNC_IO, FAILURE),
        ] {
            let outcome = outcome(totals, stopped, fatal);
            assert_eq!((of_sync(&outcome), of_copy(&outcome)), (sync, copy), "{outcome:?}");
        }
    }
}
