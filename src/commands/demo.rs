//! `hakobu demo`: a whole workflow on generated files: upload to an embedded server, repeated upload, download, and
//! verification of both copies, with the functions of `sync` and `verify`. A terminal shows the progress of each step
//! and the bottleneck of the upload, which is made long enough for both.

use super::session::{outcome_of_fatal, stop_on_signals};
use super::sync::read;
use super::tool::{self, carry_out};
use super::verify::verify_trees;
use crate::cli::{Opt, OptArg, Refused, Table, Typed, flag, parts, put, value};
use crate::exit;
use crate::number::{self, grouped};
use crate::show::{Show, ShowOptions, output, screen, verdict};
use hakobu_core::error::{Cause, Fatal, quoted};
use hakobu_core::language::Language;
use hakobu_core::limit::Limits;
use hakobu_core::unit::Totals;
use hakobu_explain::verdict::Help;
use hakobu_lab::campaign::own_folder::{FolderMark, OwnFolder};
use hakobu_s3::ops::create_bucket;
use hakobu_s3::{Addressing, Credentials, Settings, with_client};
use hakobu_sys::{AsFd, disk};
use hakobu_testserver::{Conditions, ServerConfig, ServerKind, TestServer};
use hakobu_transfer::location::Location;
use hakobu_transfer::run::{Control, Outcome, transfer};
use hakobu_transfer::verify::{self, Aspect, Aspects, ObjectSpec, Times, VerifyCounts};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The command line of `demo`.
pub static TABLE: Table<DemoArgs> = Table {
    command: "demo",
    about: "Upload generated files to a local S3 server, download them, and verify both copies",
    description: "Creates a directory in TMPDIR (else /tmp) with incompressible files, starts an S3 \
            server on a free port of this machine, uploads, uploads again (which transfers \
            nothing), downloads, and compares both copies with the files. It says what the \
            bottleneck of the upload was, needs no settings and no credentials, and removes \
            the directory at the end. Without --files, --size and --large, a sample is uploaded \
            first, and there are as many files as this machine uploads in about three seconds, \
            at most three times the defaults.",
    usage: "hakobu demo [OPTIONS]",
    examples: &[
        ("hakobu demo", "Try it."),
        ("hakobu demo --files 200 --large 0", "Transfer a few small files only."),
    ],
    common: &[],
    after: "SIZE takes K, M, G (1024), KB, MB, GB (1000), and a fraction.\n\
            Exit codes: 0 all copies are complete, 1 something differs or failed, or a \
            signal ended it, 2 usage.",
    options: &[&OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

/// Maximum number of files of a demonstration.
const FILES_MAX: u64 = 1_000_000;

/// The options read so far.
#[derive(Default)]
pub struct DemoArgs {
    files: Option<u64>,
    file_bytes: Option<u64>,
    large_bytes: Option<u64>,
    keep: bool,
}

parts!(DemoArgs {});

const OPTIONS: &[Opt<DemoArgs>] = &[
    value("files", None, "N", "small files (default 2000)")
        .reads(|it, arg| put(&mut it.files, Some(files(arg)?))),
    value("size", None, "SIZE", "bytes of a small file (default 16K)")
        .reads(|it, arg| put(&mut it.file_bytes, Some(bytes(arg)?))),
    value("large", None, "SIZE", "bytes of the large file (default 64M; 0: none)")
        .reads(|it, arg| put(&mut it.large_bytes, Some(bytes(arg)?))),
    flag("keep", None, "keep the directory with files, store and copy").sets(|it, on| it.keep = on),
];

fn files(arg: &OptArg) -> Result<u64, String> {
    arg.parsed().filter(|files| *files <= FILES_MAX).ok_or_else(|| {
        let most = number::grouped(FILES_MAX);
        arg.refuse(&format!("give a number up to {most}"))
    })
}

fn bytes(arg: &OptArg) -> Result<u64, String> {
    hakobu_core::number::parse_size(&arg.value, 1).map_err(|why| arg.refuse(why))
}

/// The bucket, and the prefix in it.
const BUCKET: &str = "demo";
const STORED: &str = "s3://demo/files/";
/// Prefix of the sample.
const SAMPLED: &str = "s3://demo/sample/";
/// Access key of the embedded server; its secret is random.
const ACCESS_KEY: &str = "hakobu-demo";

/// A demonstration as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DemoPlan {
    data: DemoData,
    /// No size was given: `data` is scaled to the speed of this machine.
    by_speed: bool,
    keep: bool,
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed), demonstrate)
}

/// Reads the command line.
fn plan(typed: &Typed) -> Result<DemoPlan, String> {
    if let Some(path) = typed.paths.first() {
        return Err(format!("'{}': demo generates its own files", path.display()));
    }
    let DemoArgs { files, file_bytes, large_bytes, keep } =
        TABLE.read(typed, DemoArgs::default())?;
    let usual = DemoData::default();
    let data = DemoData {
        files: files.unwrap_or(usual.files),
        file_bytes: file_bytes.unwrap_or(usual.file_bytes),
        large_bytes: large_bytes.unwrap_or(usual.large_bytes),
    };
    if data.count() == 0 {
        return Err("--files=0 --large=0: nothing to upload".into());
    }
    data.bytes().ok_or("the total size is too large")?;
    let by_speed = [files, file_bytes, large_bytes] == [None; 3];
    Ok(DemoPlan { data, by_speed, keep })
}

/// Runs all steps; returns the exit code.
fn demonstrate(plan: DemoPlan) -> Result<u8, String> {
    let control = Arc::new(Control::default());
    stop_on_signals(&control, exit::FAILURE, "this run");
    let area = DemoFolder::make()?;
    let done = Demo::run(&area, plan, &control);
    if control.is_stopped() {
        output::message("interrupted");
    } else if let Err(why) = &done {
        output::message(why);
    }
    let mut code = if done.is_ok() && !control.is_stopped() { exit::OK } else { exit::FAILURE };
    if plan.keep {
        output::text(&format!("kept: {}\n", area.keep().display()));
    } else if let Err(why) = area.remove() {
        output::message(&why);
        code = exit::FAILURE;
    }
    Ok(code)
}

/// A running demonstration.
struct Demo<'a> {
    area: &'a DemoFolder,
    data: DemoData,
    control: &'a Arc<Control>,
    settings: Settings,
}

impl Demo<'_> {
    /// Runs all steps, each with its row. Succeeds only if every step is right.
    ///
    /// # Errors
    /// A sentence: the step that is wrong.
    fn run(area: &DemoFolder, plan: DemoPlan, control: &Arc<Control>) -> Result<(), String> {
        let DemoPlan { data, by_speed, .. } = plan;
        area.has_room(if by_speed { &DemoData::SAMPLE } else { &data })?;
        let secret = tool::random_key().map_err(|e| format!("cannot generate a key: {e}"))?;
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
        let server = server.map_err(|e| format!("cannot serve {}: {e}", quoted(&store)))?;
        let credentials =
            Credentials { access_key: ACCESS_KEY.into(), secret_key: secret, session_token: None };
        let settings = Settings {
            endpoint_url: Some(server.url()),
            region: Some("us-east-1".into()),
            credentials: Some(credentials),
            addressing: Addressing::Path,
            ..Settings::default()
        };
        let mut demo = Demo { area, data, control, settings };
        output::text(&format!(
            "S3 server on this machine: {}, {}, files in {}\n{TABLE_HEAD}",
            server.url(),
            number::things(hakobu_sys::process::cpus() as u64, "CPU"),
            area.dir.display(),
        ));
        let done = demo.steps(by_speed);
        server.stop();
        done
    }

    fn steps(&mut self, by_speed: bool) -> Result<(), String> {
        with_client(&self.settings, async |client| create_bucket(&client, BUCKET).await)
            .map_err(|error| format!("cannot create bucket '{BUCKET}': {error}"))?;
        if by_speed {
            self.data = self.sample()?;
        }
        let start = Instant::now();
        self.data.make(&self.area.files(), &self.control.flag())?;
        let (files, bytes) = (self.data.count(), self.data.bytes().unwrap_or(u64::MAX));
        print_row("make the files", files, bytes, start.elapsed(), None);
        let (source, copy) = (slashed(self.area.files()), slashed(self.area.copy()));
        let stored = OsStr::new(STORED);
        let upload = self.sync("sync up", &source, stored, files, bytes)?;
        self.sync("sync up again", &source, stored, 0, 0)?;
        self.sync("sync down", stored, &copy, files, bytes)?;
        let mut differences = self.verify_stored("verify up", &source)?;
        differences += self.verify_copy("verify down")?;
        if upload.findings.verdict.is_some() || io::stdout().is_terminal() {
            let mut found = verdict::of(&upload.findings);
            if let Help::Unknown { experiments } = &mut found.advice.help {
                // There is no --prove here.
                *experiments = false;
            }
            let found = verdict::sentence(&found, Language::English);
            output::text(&format!("sync up: {found}\n"));
        }
        let text = format!(
            "verified: {}, {}, {}\n",
            number::things(files, "file"),
            number::things(bytes, "byte"),
            number::things(differences, "difference")
        );
        output::text(&text);
        if differences > 0 { Err("the copies differ from the files".into()) } else { Ok(()) }
    }

    /// Uploads a sample; returns the files that take [`UPLOAD_S`], as far as there is room for them.
    fn sample(&self) -> Result<DemoData, String> {
        let sample = DemoData::SAMPLE;
        sample.make(&self.area.sample(), &self.control.flag())?;
        let (files, bytes) = (sample.count(), sample.bytes().unwrap_or(u64::MAX));
        let source = slashed(self.area.sample());
        let upload = self.sync("sync a sample", &source, OsStr::new(SAMPLED), files, bytes)?;
        let scaled = self.data.scaled(upload.took);
        let fitting = [scaled, self.data].into_iter().find(|data| self.area.has_room(data).is_ok());
        Ok(fitting.unwrap_or(sample))
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
    ) -> Result<Outcome, String> {
        let (mut spec, ..) = read(&["-a".into(), "--no-memory".into(), from.into(), to.into()])
            .map_err(|refused| format!("{step}: {}", message_of(refused)))?;
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
            return Err(format!("{step}: failed"));
        }
        moved(step, totals, files, bytes)?;
        Ok(outcome)
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
        let mut spec = verify::VerifySpec {
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
        compared: Result<verify::VerifyOutcome, Fatal>,
    ) -> Result<u64, String> {
        let (outcome, fatal) = match compared {
            Ok(outcome) => (outcome, None),
            Err(fatal) => (verify::VerifyOutcome::default(), Some(fatal)),
        };
        let counts = &outcome.counts;
        let totals = Totals { failed: counts.failed, ..Totals::default() };
        let is_fatal = fatal.is_some();
        let shown = Outcome { totals, took: outcome.took, fatal, ..Outcome::default() };
        if !show.finish(&shown, exit::FAILURE) || is_fatal {
            return Err(format!("{step}: failed"));
        }
        let requests = Some(outcome.requests.succeeded).filter(|requests| *requests > 0);
        print_row(step, counts.files, counts.bytes, outcome.took, requests);
        if self.control.is_stopped() {
            return Err(format!("{step}: not finished"));
        }
        proven(step, counts, self.data.count(), self.data.bytes().unwrap_or(u64::MAX))?;
        Ok(counts.differences)
    }

    fn show(&self) -> Result<Show, String> {
        let wanted = ShowOptions {
            command: "demo",
            quiet: true,
            own_end: true,
            progress: Some(screen::redraws()),
            ..ShowOptions::default()
        };
        Show::new(wanted, Arc::clone(self.control))
    }
}

/// Returns the attributes that `sync -a` keeps between file systems and S3.
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
        "{step}: expected {} and {} to be transferred",
        number::things(files, "file"),
        number::things(bytes, "byte")
    ))
}

/// Checks that a comparison was complete. Contents of files that differ are not read to the end.
fn proven(step: &str, counts: &VerifyCounts, files: u64, bytes: u64) -> Result<(), String> {
    let seen = (counts.files, counts.bytes) == (files, bytes) || counts.differences > 0;
    if seen && counts.failed == 0 {
        return Ok(());
    }
    Err(format!("{step}: expected {} to be compared", number::things(files, "file")))
}

fn print_row(step: &str, files: u64, bytes: u64, took: Duration, requests: Option<u64>) {
    output::text(&table_row(step, files, bytes, took, requests));
}

fn print_difference(difference: &verify::Difference<'_>) {
    output::message(&format!("differs: {}", String::from_utf8_lossy(difference.path)));
}

fn slashed(path: std::path::PathBuf) -> OsString {
    let mut path = path.into_os_string();
    path.push("/");
    path
}

fn message_of(refused: Refused) -> String {
    match refused {
        Refused::Help(text) | Refused::Usage(text) => text,
        Refused::Failed { message, .. } => message,
    }
}

/// Number of files per folder.
const FOLDER_FILES: u64 = 100;
/// Bytes generated and written at once.
const PIECE_BYTES: u64 = 256 << 10;
/// Number of copies on disk at once: files, store, copy.
const COPIES: u64 = 3;
/// Bytes that a small file and its entry may use in addition to its content.
const ENTRY_BYTES: u64 = 8192;

/// A private folder. Removed on drop, unless it is kept.
pub struct DemoFolder {
    dir: PathBuf,
    /// Removes the folder; `None` once it is removed or kept.
    own: Option<OwnFolder>,
}

impl DemoFolder {
    /// Creates the folder, in `TMPDIR` or `/tmp`.
    ///
    /// # Errors
    /// A sentence: it cannot be created.
    pub fn make() -> Result<DemoFolder, String> {
        let parent = std::env::temp_dir();
        let failed =
            |error| format!("cannot create a directory in {}: {}", quoted(&parent), why(error));
        // A name with a colon before its first slash would mean another machine.
        let parent = parent.canonicalize().map_err(failed)?;
        for attempt in 0.. {
            let dir = parent.join(format!("hakobu-demo-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => {
                    let own = Some(OwnFolder::claim(&dir, FolderMark::Inside)?);
                    let area = DemoFolder { dir, own };
                    fs::create_dir(area.files()).map_err(failed)?;
                    fs::create_dir(area.sample()).map_err(failed)?;
                    fs::create_dir(area.store()).map_err(failed)?;
                    return Ok(area);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// Returns the folder of generated files.
    pub fn files(&self) -> PathBuf {
        self.dir.join("files")
    }

    /// Returns the folder of the sample.
    pub fn sample(&self) -> PathBuf {
        self.dir.join("sample")
    }

    /// Returns the folder of the server.
    pub fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    /// Returns the folder of downloaded files.
    pub fn copy(&self) -> PathBuf {
        self.dir.join("copy")
    }

    /// Checks that everything will fit.
    ///
    /// # Errors
    /// A sentence, with a workaround.
    pub fn has_room(&self, data: &DemoData) -> Result<(), String> {
        let Ok(room) = File::open(&self.dir).and_then(|dir| disk::space(dir.as_fd())) else {
            return Ok(()); // a failure shows when writing
        };
        let one = data.bytes().unwrap_or(u64::MAX);
        let entries = data.count().saturating_mul(ENTRY_BYTES);
        let need = one.saturating_add(entries).saturating_mul(COPIES);
        if need <= room.free_bytes {
            return Ok(());
        }
        Err(format!(
            "not enough space in {}: {} needed, {} free\n\
             hint: fewer files (--files, --large), or another file system (TMPDIR)",
            quoted(&self.dir),
            number::bytes(need),
            number::bytes(room.free_bytes)
        ))
    }

    /// Keeps the folder and returns its path.
    pub fn keep(mut self) -> PathBuf {
        self.own = None;
        self.dir.clone()
    }

    /// Removes the folder.
    ///
    /// # Errors
    /// A sentence: the path that is left, and the cause.
    pub fn remove(mut self) -> Result<(), String> {
        Ok(self.own.take().map_or(Ok(()), OwnFolder::remove)?)
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        // A failure cannot be reported here.
        let _ = self.own.take().map(OwnFolder::remove);
    }
}

fn why(error: io::Error) -> Cause {
    Cause::System(error)
}

/// The files to generate: many small ones and one large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoData {
    /// Number of small files.
    pub files: u64,
    /// Bytes of each small file.
    pub file_bytes: u64,
    /// Bytes of the large file; 0: none.
    pub large_bytes: u64,
}

impl Default for DemoData {
    fn default() -> DemoData {
        DemoData { files: 2000, file_bytes: 16 << 10, large_bytes: 64 << 20 }
    }
}

/// Seconds that the upload takes if the size is chosen by speed: a verdict needs two.
const UPLOAD_S: f64 = 3.5;
/// Smallest and largest multiple of the default size: a slow machine ends soon, and a fast one does not fill the
/// memory behind a tmpfs.
const SCALES: (f64, f64) = (0.02, 3.0);

impl DemoData {
    /// A tenth of the default: the same mixture.
    const SAMPLE: DemoData =
        DemoData { files: 200, file_bytes: 16 << 10, large_bytes: (64 << 20) / 10 };

    /// Returns files that take [`UPLOAD_S`] where the sample took so long.
    fn scaled(self, sample_took: Duration) -> DemoData {
        let samples = DemoData::default().files as f64 / DemoData::SAMPLE.files as f64;
        let usual_s = (sample_took.as_secs_f64() * samples).max(1e-3);
        let scale = (UPLOAD_S / usual_s).clamp(SCALES.0, SCALES.1);
        DemoData {
            files: (self.files as f64 * scale).round() as u64,
            large_bytes: (self.large_bytes as f64 * scale).round() as u64,
            ..self
        }
    }

    /// Returns the number of files.
    pub fn count(&self) -> u64 {
        self.files + u64::from(self.large_bytes > 0)
    }

    /// Returns the total bytes; `None` on overflow.
    pub fn bytes(&self) -> Option<u64> {
        self.files.checked_mul(self.file_bytes)?.checked_add(self.large_bytes)
    }

    /// Generates them in an existing folder, until `stop` is set.
    ///
    /// # Errors
    /// A sentence: a file that cannot be written, or that it was stopped.
    pub fn make(&self, dir: &Path, stop: &AtomicBool) -> Result<(), String> {
        let failed = |path: &Path| {
            let path = quoted(path);
            move |error| format!("cannot write {path}: {}", why(error))
        };
        let mut folder = dir.to_owned();
        for number in 0..self.files {
            if number % FOLDER_FILES == 0 {
                folder = dir.join(format!("{:04}", number / FOLDER_FILES));
                fs::create_dir(&folder).map_err(failed(&folder))?;
            }
            let path = folder.join(format!("{number:06}.bin"));
            write(&path, number, self.file_bytes, stop).map_err(failed(&path))?;
        }
        if self.large_bytes > 0 {
            let path = dir.join("large.bin");
            write(&path, self.files, self.large_bytes, stop).map_err(failed(&path))?;
        }
        Ok(())
    }
}

fn write(path: &Path, seed: u64, bytes: u64, stop: &AtomicBool) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    // Streams of neighbouring seeds must not be the same stream shifted by a step.
    let mut state = mixed(seed.wrapping_add(1));
    let mut piece = vec![0; PIECE_BYTES.min(bytes) as usize];
    let mut left = bytes;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if left == 0 {
            return Ok(());
        }
        piece.truncate(left.min(PIECE_BYTES) as usize);
        fill(&mut piece, &mut state);
        file.write_all(&piece)?;
        left -= piece.len() as u64;
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
fn fill(piece: &mut [u8], state: &mut u64) {
    for word in piece.chunks_mut(8) {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        word.copy_from_slice(&mixed(*state).to_le_bytes()[..word.len()]);
    }
}

fn mixed(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The names of the columns.
pub const TABLE_HEAD: &str =
    "step                files            bytes  seconds      MB/s  requests\n";

/// Returns the totals of a step as a line: files made, moved or compared, their bytes, the wall time, and the requests
/// that the store answered, if the step made any. MB are 1,000,000 bytes; a step without duration or bytes has no rate.
pub fn table_row(
    step: &str,
    files: u64,
    bytes: u64,
    took: Duration,
    requests: Option<u64>,
) -> String {
    let seconds = took.as_secs_f64();
    let rate = match bytes > 0 && seconds > 0.0 {
        true => format!("{:.1}", bytes as f64 / 1e6 / seconds),
        false => "-".into(),
    };
    let requests = requests.map_or_else(|| "-".into(), grouped);
    format!(
        "{:<15} {:>9} {:>16} {seconds:>8.2} {rate:>9} {requests:>9}\n",
        step,
        grouped(files),
        grouped(bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> Result<DemoPlan, String> {
        plan(&TABLE.parse_line(line)?)
    }

    #[test]
    fn usage() {
        for (line, why) in [
            ("x", "'x': demo generates its own files"),
            ("--files=-1", "invalid --files '-1': give a number up to 1,000,000"),
            ("--files=1000001", "give a number"),
            ("--size=x", "invalid --size 'x': not a size"),
            ("--files=0 --large=0", "nothing to upload"),
            ("--files=1000000 --size=8000000000G", "the total size is too large"),
        ] {
            let message = planned(line).err().unwrap_or_default();
            assert!(message.contains(why), "{line}: {message}");
        }
        let plan = planned("--files=3 --size=1K --large=2KB --keep").unwrap();
        assert_eq!((plan.data.count(), plan.data.bytes()), (4, Some(3072 + 2000)));
        assert!(plan.keep && !plan.by_speed);
        let plan = planned("").unwrap();
        assert!(plan.data.count() == 2001 && plan.by_speed && !plan.keep);
        // One size that is given makes all of them certain.
        for line in ["--files=2000", "--size=16K", "--large=64M"] {
            assert_eq!(planned(line), Ok(DemoPlan { by_speed: false, ..plan }), "{line}");
        }
    }

    #[test]
    fn the_default_size_is_by_speed() {
        let usual = DemoData::default();
        let of = |ms| {
            let data = usual.scaled(Duration::from_millis(ms));
            (data.files, data.file_bytes, data.large_bytes)
        };
        assert_eq!(of(350), (usual.files, usual.file_bytes, usual.large_bytes));
        assert_eq!(of(700), (1000, 16 << 10, 32 << 20));
        // Bounded on fast and on slow machines.
        assert_eq!(of(0), (6000, 16 << 10, 192 << 20));
        assert_eq!((of(1_000_000).0, of(1_000_000).2), (40, 1_342_177));
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
        let counts = VerifyCounts { files: 2, bytes: 10, ..VerifyCounts::default() };
        assert_eq!(proven("s", &counts, 2, 10), Ok(()));
        assert!(proven("s", &counts, 3, 10).is_err() && proven("s", &counts, 2, 11).is_err());
        let failed = VerifyCounts { failed: 1, ..counts };
        assert!(proven("s", &failed, 2, 10).is_err());
        // Differences are counted and reported; the error is made elsewhere.
        let different = VerifyCounts { bytes: 3, differences: 1, ..counts };
        assert_eq!(proven("s", &different, 2, 10), Ok(()));
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // The first numbers of SplitMix64 from seed 0, by its reference implementation.
        let (mut piece, mut state) = ([0; 16], 0);
        fill(&mut piece, &mut state);
        assert_eq!(piece[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
        assert_eq!(piece[8..], 0x6e78_9e6a_a1b9_65f4_u64.to_le_bytes());
    }

    #[test]
    fn files_are_the_same_every_time_and_differ_from_each_other() {
        let data = DemoData { files: 101, file_bytes: 20, large_bytes: 300_001 };
        let go_on = AtomicBool::new(false);
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for dir in &dirs {
            data.make(dir.path(), &go_on).unwrap();
        }
        let read = |dir: usize, name: &str| fs::read(dirs[dir].path().join(name)).unwrap();
        for name in ["0000/000000.bin", "0000/000099.bin", "0001/000100.bin", "large.bin"] {
            assert_eq!(read(0, name), read(1, name), "{name}");
        }
        assert_eq!(read(0, "large.bin").len(), 300_001);
        assert_ne!(read(0, "0000/000000.bin"), read(0, "0000/000001.bin"));
        let stopped = tempfile::tempdir().unwrap();
        assert!(data.make(stopped.path(), &AtomicBool::new(true)).is_err());
    }

    #[test]
    fn rows_stand_below_their_heads() {
        let took = Duration::from_millis(1500);
        let up = table_row("sync up", 2001, 99_876_864, took, Some(2021));
        let again = table_row("sync up again", 0, 0, took, None);
        assert_eq!(
            format!("{TABLE_HEAD}{up}{again}"),
            "step                files            bytes  seconds      MB/s  requests\n\
             sync up             2,001       99,876,864     1.50      66.6     2,021\n\
             sync up again           0                0     1.50         -         -\n"
        );
    }
}
