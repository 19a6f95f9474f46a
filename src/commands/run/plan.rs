//! The parsed command line of `run`, and the state that its lines share.

use crate::commands::Command;
use crate::limits::LimitArgs;
use crate::objects::ObjectArgs;
use crate::options::parts;
use crate::show::output;
use hakobu_transfer::run::Control;
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The parsed command line.
#[derive(Default)]
pub struct Plan {
    pub(super) file: OsString,
    pub(super) limits: LimitArgs,
    pub(super) exit_on_error: bool,
    pub(super) dry_run: bool,
    pub(super) json: bool,
    pub(super) stat: bool,
    /// Parsed here, so that a mistake is reported once and not for every line.
    pub(super) objects: ObjectArgs,
    /// Options prepended to every line with `s3://`.
    pub(super) defaults: Vec<OsString>,
}

parts!(Plan { objects: ObjectArgs, limits: LimitArgs });

/// State shared by all lines.
#[derive(Default)]
pub struct Running {
    pub(super) control: Arc<Control>,
    pub(super) failed: AtomicBool,
    /// Spellings of options whose value may be the next word, by command.
    values: Mutex<HashMap<&'static str, Vec<String>>>,
    /// Failures are printed as JSON, too.
    json: bool,
    /// Whether a line reads standard input.
    pub(super) input: AtomicBool,
}

#[derive(Serialize)]
struct Failed<'a> {
    event: &'static str,
    line: usize,
    message: &'a str,
}

impl Running {
    /// Begins; `json`: failures are printed as JSON, too.
    pub fn new(json: bool) -> Running {
        Running { json, ..Running::default() }
    }

    /// Reports a line that failed; with `--json` also as an event.
    pub fn fail(&self, number: usize, why: &str) {
        self.fail_text(number, why);
        if self.json {
            output::line(&Failed { event: "error", line: number, message: why });
        }
    }

    /// Reports a line that failed, of which an event tells already.
    pub fn fail_text(&self, number: usize, why: &str) {
        output::message(&format!("line {number}: {why}"));
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Returns whether the value of this word, an option, may be the next word.
    pub fn is_before_value(&self, command: &Command, word: &str) -> bool {
        let mut values = self.values.lock();
        let spellings = values.entry(command.name);
        spellings.or_insert_with(|| command.spellings_before_values()).iter().any(|it| it == word)
    }

    pub fn ends(&self, plan: &Plan) -> bool {
        self.control.is_stopped() || (plan.exit_on_error && self.failed.load(Ordering::Relaxed))
    }
}
