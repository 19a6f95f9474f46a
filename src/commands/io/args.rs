//! The parsed command line of `io`: options, job files, and the request that they make.

use super::options::{TABLE, Word};
use crate::files::is_stdout;
use crate::input;
use crate::options::Typed;
use hakobu_core::error::cannot;
use hakobu_core::lines;
use hakobu_io::spec::{self, Format, Request};

/// A command line of `io`.
pub struct Args {
    /// Options, in order.
    pub(super) words: Vec<Word>,
    /// Job files, as typed.
    pub(super) files: Vec<String>,
    /// Jobs and settings of the run.
    pub(super) request: Request,
}

impl Args {
    pub fn new(typed: &Typed) -> Result<Args, String> {
        let words = TABLE.read(typed, Vec::new())?;
        let mut files = Vec::new();
        for path in &typed.paths {
            let name =
                path.to_str().ok_or_else(|| format!("'{}' is not valid UTF-8", path.display()))?;
            files.push(name.to_owned());
        }
        let texts = files.iter().map(|name| Ok((name.clone(), text_of(name)?)));
        let texts: Vec<(String, String)> = texts.collect::<Result<_, String>>()?;
        let request = spec::read(&words, &texts, &spec::System)?;
        let args = Args { words, files, request };
        if args.is_sweep() {
            args.goes_with_sweeps()?;
        }
        Ok(args)
    }

    /// Several runs; one value for each list is one, and the request has its jobs.
    pub fn is_sweep(&self) -> bool {
        self.request.run.repeat > 1 || self.request.sweep.iter().any(|axis| axis.values.len() > 1)
    }

    /// Refuses what only one run can have.
    fn goes_with_sweeps(&self) -> Result<(), String> {
        if self.request.run.format != Format::Normal {
            return Err(
                "--output-format goes with one run: a sweep's results are a folder, of which \
                        hakobu report makes JSON, CSV, a page"
                    .into(),
            );
        }
        if self.request.run.output.as_deref().is_some_and(is_stdout) {
            return Err("--output=- goes with one run: a sweep's results are a folder".into());
        }
        if self.request.run.status_interval.is_some() {
            return Err("--status-interval goes with one run, not with a sweep".into());
        }
        Ok(())
    }
}

/// A job file; `-` is standard input.
fn text_of(name: &str) -> Result<String, String> {
    let read = || match name {
        "-" => lines::text(&mut *input::stdin()?),
        _ => lines::text(std::fs::File::open(name)?),
    };
    read().map_err(|error| cannot("read", name, error))
}
