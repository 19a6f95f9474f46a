//! `hakobu demo`: a whole workflow on generated files: upload to an embedded server, repeated upload, download, and
//! verification of both copies, with the functions of `sync` and `verify`.

mod area;
mod options;
mod table;

use super::session::outcome_of_fatal;
use super::sync::read::read;
use super::tool;
use super::tool::carry_out;
use super::verify::verify_trees;
use crate::commands::session::stop_on_signals;
use crate::options::{Refused, Typed};
use crate::show::output;
use crate::show::{Show, Wanted};
use crate::{exit, number};
use area::{Area, Data};
use hakobu_core::error::Fatal;
use hakobu_core::limit::Limits;
use hakobu_core::unit::Totals;
use hakobu_s3::ops::create_bucket;
use hakobu_s3::with_client;
use hakobu_s3::{Addressing, Credentials, Settings};
use hakobu_testserver::{Conditions, ServerConfig, ServerKind, TestServer};
use hakobu_transfer::location::Location;

use hakobu_transfer::run::{Control, Outcome, transfer};
use hakobu_transfer::verify::{self, Aspect, Aspects, Counts, ObjectSpec, Times};
use options::Reading;
pub(super) use options::TABLE;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The bucket, and the prefix in it.
const BUCKET: &str = "demo";
const STORED: &str = "s3://demo/files/";
/// Access key of the embedded server; its secret is random.
const ACCESS_KEY: &str = "hakobu-demo";

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let plan = |typed| plan(&typed);
    carry_out(TABLE.parse(&arguments), plan, |(data, keep)| demonstrate(data, keep))
}

/// Returns the data to generate, and whether to keep it.
fn plan(typed: &Typed) -> Result<(Data, bool), String> {
    if let Some(path) = typed.paths.first() {
        return Err(format!("'{}': demo makes its own files", path.display()));
    }
    let Reading { data, keep } = TABLE.read(typed, Reading::default())?;
    if data.count() == 0 {
        return Err("--files=0 --large=0: there is nothing to carry".into());
    }
    data.bytes().ok_or("the total size is too large")?;
    Ok((data, keep))
}

/// Runs all steps; returns the exit code.
fn demonstrate(data: Data, keep: bool) -> Result<u8, String> {
    let control = Arc::new(Control::default());
    stop_on_signals(&control, exit::FAILURE, "this run");
    let area = Area::make()?;
    let done = Demo::run(&area, data, &control);
    if control.is_stopped() {
        output::message("interrupted");
    } else if let Err(why) = &done {
        output::message(why);
    }
    let mut code = if done.is_ok() && !control.is_stopped() { exit::OK } else { exit::FAILURE };
    if keep {
        output::text(&format!("kept: {}\n", area.keep().display()));
    } else if let Err(why) = area.remove() {
        output::message(&why);
        code = exit::FAILURE;
    }
    Ok(code)
}

/// A running demonstration.
struct Demo<'a> {
    area: &'a Area,
    data: Data,
    control: &'a Arc<Control>,
    settings: Settings,
}

impl Demo<'_> {
    /// Runs all steps, each with its row. Succeeds only if every step is right.
    ///
    /// # Errors
    /// A sentence: the step that is wrong.
    fn run(area: &Area, data: Data, control: &Arc<Control>) -> Result<(), String> {
        area.has_room(&data)?;
        let secret = tool::random_key().map_err(|e| format!("cannot make up a key: {e}"))?;
        let store = area.store();
        let server = TestServer::start(ServerConfig {
            kind: ServerKind::Folder {
                dir: store.clone(),
                access_key: ACCESS_KEY.into(),
                secret_key: secret.clone(),
            },
            listen: "127.0.0.1:0".into(),
            threads: 0,
            conditions: Conditions::default(),
            log: None,
        });
        let server = server.map_err(|e| format!("cannot serve {}: {e}", store.display()))?;
        let credentials =
            Credentials { access_key: ACCESS_KEY.into(), secret_key: secret, session_token: None };
        let settings = Settings {
            endpoint_url: Some(server.url()),
            region: Some("us-east-1".into()),
            credentials: Some(credentials),
            addressing: Addressing::Path,
            ..Settings::default()
        };
        let demo = Demo { area, data, control, settings };
        output::text(&format!(
            "{STORED} on {} is {}; {}\n{}",
            server.url(),
            store.display(),
            number::things(hakobu_sys::process::cpus() as u64, "core"),
            table::HEAD
        ));
        let done = demo.steps();
        server.stop();
        done
    }

    fn steps(&self) -> Result<(), String> {
        let start = Instant::now();
        self.data.make(&self.area.files(), &self.control.flag())?;
        let (files, bytes) = (self.data.count(), self.data.bytes().unwrap_or(u64::MAX));
        print_row("make the files", files, bytes, start.elapsed(), None);
        with_client(&self.settings, async |client| create_bucket(&client, BUCKET).await)
            .map_err(|error| format!("cannot make the bucket: {error}"))?;
        let (source, copy) = (slashed(self.area.files()), slashed(self.area.copy()));
        let stored = OsStr::new(STORED);
        self.sync("sync up", &source, stored, files, bytes)?;
        self.sync("sync up again", &source, stored, 0, 0)?;
        self.sync("sync down", stored, &copy, files, bytes)?;
        let mut differences = self.verify_stored("verify up", &source)?;
        differences += self.verify_copy("verify down")?;
        let text = format!(
            "verified: {}, {}, {}\n",
            number::things(files, "file"),
            number::things(bytes, "byte"),
            number::things(differences, "difference")
        );
        output::text(&text);
        if differences > 0 { Err("the copies differ from the files".into()) } else { Ok(()) }
    }

    /// Runs `hakobu sync -a --no-memory FROM TO`, which must move this many files and bytes. Nothing stays in the
    /// state folder.
    fn sync(
        &self,
        step: &str,
        from: &OsStr,
        to: &OsStr,
        files: u64,
        bytes: u64,
    ) -> Result<(), String> {
        let (mut spec, ..) = read(&["-a".into(), "--no-memory".into(), from.into(), to.into()])
            .map_err(|refused| format!("{step}: {}", said(refused)))?;
        spec.objects.source = self.settings.clone();
        spec.objects.target = self.settings.clone();
        let show = self.show()?;
        let start = Instant::now();
        let outcome = transfer(&spec, self.control, &show)
            .unwrap_or_else(|fatal| outcome_of_fatal(fatal, start.elapsed()));
        let code = exit::of_sync(&outcome);
        // The interruption is reported once, at the end.
        let outcome = Outcome { stopped: false, ..outcome };
        let shown = show.finish(&outcome, code);
        let totals = &outcome.totals;
        print_row(step, totals.files, totals.bytes, outcome.took, Some(outcome.requests.succeeded));
        if code != exit::OK || !shown {
            return Err(format!("{step}: it did not succeed"));
        }
        moved(step, totals, files, bytes)
    }

    fn verify_stored(&self, step: &str, source: &OsStr) -> Result<u64, String> {
        let place = |path| Location::parse(path).map_err(|fatal| fatal.message);
        let spec = ObjectSpec {
            source: place(source)?,
            target: place(OsStr::new(STORED))?,
            source_settings: self.settings.clone(),
            target_settings: self.settings.clone(),
            aspects: aspects(),
            times: times(),
            follow: false,
            encode_names: false,
            one_way: false,
            filter: None,
            limits: Limits::default(),
        };
        let show = self.show()?;
        let compared = verify::verify_objects(
            &spec,
            &|difference| print_difference(difference),
            self.control,
            &show,
        );
        self.compared(step, &show, compared)
    }

    fn verify_copy(&self, step: &str) -> Result<u64, String> {
        let mut spec = verify::Spec {
            source: self.area.files(),
            target: self.area.copy(),
            aspects: aspects(),
            times: times(),
            one_way: false,
            filter: None,
            open_dirs_max: 0,
        };
        let show = self.show()?;
        let report = |difference: &verify::Difference<'_>| print_difference(difference);
        let compared = verify_trees(&mut spec, Limits::default(), &report, &show);
        self.compared(step, &show, compared)
    }

    /// Reports the result of a comparison; returns the number of differences. Incomplete comparisons are errors.
    fn compared(
        &self,
        step: &str,
        show: &Show,
        compared: Result<verify::Outcome, Fatal>,
    ) -> Result<u64, String> {
        let (outcome, fatal) = match compared {
            Ok(outcome) => (outcome, None),
            Err(fatal) => (verify::Outcome::default(), Some(fatal)),
        };
        let counts = &outcome.counts;
        let totals = Totals { failed: counts.failed, ..Totals::default() };
        let is_fatal = fatal.is_some();
        let shown = Outcome { totals, took: outcome.took, fatal, ..Outcome::default() };
        if !show.finish(&shown, exit::FAILURE) || is_fatal {
            return Err(format!("{step}: it did not succeed"));
        }
        let requests = Some(outcome.requests.succeeded).filter(|requests| *requests > 0);
        print_row(step, counts.files, counts.bytes, outcome.took, requests);
        if self.control.is_stopped() {
            return Err(format!("{step}: it was not finished"));
        }
        proven(step, counts, self.data.count(), self.data.bytes().unwrap_or(u64::MAX))?;
        Ok(counts.differences)
    }

    fn show(&self) -> Result<Show, String> {
        let wanted = Wanted {
            command: "demo",
            quiet: true,
            own_end: true,
            progress: Some(false),
            ..Wanted::default()
        };
        Show::new(wanted, Arc::clone(self.control))
    }
}

/// Returns the attributes that `sync -a` keeps between volumes and stores.
fn aspects() -> Aspects {
    [Aspect::Type, Aspect::Size, Aspect::Content, Aspect::Mode, Aspect::Time]
        .into_iter()
        .fold(Aspects::NONE, Aspects::with)
}

/// Folders are ignored: a store has none with times.
fn times() -> Times {
    Times { omit_dirs: true, ..Times::default() }
}

/// Checks that a step moved the expected amount.
fn moved(step: &str, totals: &Totals, files: u64, bytes: u64) -> Result<(), String> {
    if (totals.files, totals.bytes) == (files, bytes) {
        return Ok(());
    }
    Err(format!(
        "{step}: {} and {} were to be moved",
        number::things(files, "file"),
        number::things(bytes, "byte")
    ))
}

/// Checks that a comparison was complete. Contents of files that differ are not read to the end.
fn proven(step: &str, counts: &Counts, files: u64, bytes: u64) -> Result<(), String> {
    let seen = (counts.files, counts.bytes) == (files, bytes) || counts.differences > 0;
    if seen && counts.failed == 0 {
        return Ok(());
    }
    Err(format!("{step}: {} were to be compared", number::things(files, "file")))
}

fn print_row(step: &str, files: u64, bytes: u64, took: Duration, requests: Option<u64>) {
    output::text(&table::line(step, files, bytes, took, requests));
}

fn print_difference(difference: &verify::Difference<'_>) {
    output::message(&format!("differs: {}", String::from_utf8_lossy(difference.path)));
}

fn slashed(path: std::path::PathBuf) -> OsString {
    let mut path = path.into_os_string();
    path.push("/");
    path
}

fn said(refused: Refused) -> String {
    match refused {
        Refused::Help(text) | Refused::Usage(text) => text,
        Refused::Failed { message, .. } => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> Result<(Data, bool), String> {
        plan(&TABLE.parse_line(line)?)
    }

    #[test]
    fn usage() {
        for (line, why) in [
            ("x", "'x': demo makes its own files"),
            ("--files=-1", "--files=-1: give a number up to 1,000,000"),
            ("--files=1000001", "give a number"),
            ("--size=x", "--size=x: is not a size"),
            ("--files=0 --large=0", "nothing to carry"),
            ("--files=1000000 --size=8000000000G", "the total size is too large"),
        ] {
            let message = planned(line).err().unwrap_or_default();
            assert!(message.contains(why), "{line}: {message}");
        }
        let (data, keep) = planned("--files=3 --size=1K --large=2KB --keep").unwrap();
        assert_eq!((data.count(), data.bytes(), keep), (4, Some(3072 + 2000), true));
        let (data, keep) = planned("").unwrap();
        assert_eq!((data.count(), keep), (2001, false));
    }

    #[test]
    fn a_step_that_moved_something_else_is_told() {
        let totals = Totals { files: 2, bytes: 10, ..Totals::default() };
        assert_eq!(moved("s", &totals, 2, 10), Ok(()));
        assert!(moved("s", &totals, 3, 10).is_err() && moved("s", &totals, 2, 11).is_err());
        assert!(moved("again", &totals, 0, 0).is_err());
    }

    #[test]
    fn incomplete_comparisons_are_no_proof() {
        let counts = Counts { files: 2, bytes: 10, ..Counts::default() };
        assert_eq!(proven("s", &counts, 2, 10), Ok(()));
        assert!(proven("s", &counts, 3, 10).is_err() && proven("s", &counts, 2, 11).is_err());
        let failed = Counts { failed: 1, ..counts };
        assert!(proven("s", &failed, 2, 10).is_err());
        // Differences are counted and reported; the error is made elsewhere.
        let different = Counts { bytes: 3, differences: 1, ..counts };
        assert_eq!(proven("s", &different, 2, 10), Ok(()));
    }
}
