//! `hakobu mpu`: unfinished multipart uploads.

use super::tool;
use super::tool::carry_out;
use crate::cli::{JSON, Opt, Part, Table, Typed, flag, parts, put, value};
use crate::exit;
use crate::objects::{self, ObjectArgs};
use crate::show::json::{Paths, line};
use crate::show::output::Output;
use hakobu_s3::ops::{Upload, abort_upload, list_uploads};
use hakobu_s3::{Error, with_session};
use hakobu_transfer::location::S3Url;
use serde::Serialize;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// The command line of `mpu`.
pub static TABLE: Table<MpuOptions> = Table {
    command: "mpu",
    about: "List unfinished multipart uploads, or abort them and free their storage",
    description: "Parts of an upload that was never completed are stored, and charged, until it is \
            aborted.",
    usage: "hakobu mpu ls [OPTIONS] s3://BUCKET[/PREFIX]\n       \
            hakobu mpu abort [OPTIONS] s3://BUCKET[/PREFIX]",
    examples: &[
        ("hakobu mpu ls s3://data", "List unfinished uploads."),
        ("hakobu mpu abort --older-than 7d s3://data", "Abort those older than a week."),
    ],
    common: &[],
    after: "abort requires one of --upload-id, --older-than, --all.\n\
            Exit codes: 0 done, 1 something failed, 2 usage.",
    options: &[&OPTIONS, &objects::COMMON],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

/// The subcommands.
pub static PARTS: &[Part] = &[
    Part::new("ls", "list unfinished uploads")
        .with(|name| !["upload-id", "older-than", "all"].contains(&name)),
    Part::new("abort", "abort them and free their storage"),
];

const OPTIONS: &[Opt<MpuOptions>] = &[
    value("upload-id", None, "ID", "only this upload")
        .reads(|plan, arg| put(&mut plan.upload_id, Some(arg.value.clone()))),
    value("older-than", None, "TIME", "only uploads that are older: seconds, or 90m, 12h, 7d")
        .reads(|plan, arg| {
            let seconds = tool::seconds(&arg.value)
                .ok_or_else(|| arg.refuse("not a time such as 12h or 7d"))?;
            put(&mut plan.older_than_s, Some(seconds))
        }),
    flag("all", None, "abort: all uploads below the prefix").sets(|plan, on| plan.all = on),
    JSON.sets(|plan, on| plan.json = on),
];

/// The parsed command line.
pub struct MpuOptions {
    objects: ObjectArgs,
    abort: bool,
    upload_id: Option<OsString>,
    older_than_s: Option<u64>,
    all: bool,
    json: bool,
    typed: OsString,
    url: S3Url,
}

parts!(MpuOptions { objects: ObjectArgs });

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed), |plan| work(&plan))
}

fn plan(typed: &Typed) -> Result<MpuOptions, String> {
    let (verb, path) = match typed.paths.as_slice() {
        [verb, path] if verb == "ls" || verb == "abort" => (verb, path),
        _ => return Err("missing subcommand: ls or abort, then s3://BUCKET[/PREFIX]".into()),
    };
    let url = objects::place_url(path)?;
    let plan = MpuOptions {
        objects: ObjectArgs::default(),
        abort: verb == "abort",
        upload_id: None,
        older_than_s: None,
        all: false,
        json: false,
        typed: path.clone(),
        url,
    };
    let plan = TABLE.read(typed, plan)?;
    let selective = plan.upload_id.is_some() || plan.older_than_s.is_some();
    if plan.abort && !selective && !plan.all {
        return Err("missing uploads to abort: --upload-id, --older-than or --all".into());
    }
    if plan.all && (selective || !plan.abort) {
        return Err("--all is for abort and excludes --upload-id and --older-than".into());
    }
    Ok(plan)
}

impl MpuOptions {
    fn concerns(&self, upload: &Upload, now_s: i64) -> bool {
        let old = |age_s: u64| now_s.saturating_sub(upload.begun.s) >= age_s as i64;
        self.upload_id.as_ref().is_none_or(|id| *id == *upload.id)
            && self.older_than_s.is_none_or(old)
    }
}

fn work(plan: &MpuOptions) -> Result<u8, String> {
    let store = tool::open(&plan.objects)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let now_s = i64::try_from(now).unwrap_or(i64::MAX);
    let out = Output::stdout();
    let done = with_session(&store, async |client| {
        let mut code = exit::OK;
        let uploads = list_uploads(&client, &plan.url.bucket, &plan.url.key).await?;
        // The start of uploads is by the server's clock.
        let now_s = now_s.saturating_add(store.clock_ahead_s());
        let mut found = 0;
        for upload in uploads.iter().filter(|upload| plan.concerns(upload, now_s)) {
            found += 1;
            if plan.abort
                && let Err(error) =
                    abort_upload(&client, &plan.url.bucket, &upload.key, &upload.id).await
            {
                let key = tool::path(&upload.key);
                tool::fail(plan.json.then_some(&out), "abort the upload of", key, &error);
                code = exit::FAILURE;
                continue;
            }
            out.write(&text(plan, upload));
        }
        if found == 0 && plan.upload_id.is_some() {
            tool::fail(
                plan.json.then_some(&out),
                "find the upload in",
                &plan.typed,
                &"there is none of that id",
            );
            code = exit::FAILURE;
        }
        Ok::<_, Error>(code)
    });
    let code = done.unwrap_or_else(|error| {
        tool::fail(plan.json.then_some(&out), "list uploads of", &plan.typed, &error);
        exit::FAILURE
    });
    Ok(tool::close(&out, code))
}

fn text(plan: &MpuOptions, upload: &Upload) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        #[serde(flatten)]
        key: Paths<'a>,
        upload_id: &'a str,
        begun_s: i64,
    }
    if plan.json {
        let event = if plan.abort { "aborted" } else { "upload" };
        let key = Paths(&[("key", Some(tool::path(&upload.key)))]);
        return line(&Line { event, key, upload_id: &upload.id, begun_s: upload.begun.s });
    }
    let begun = jiff::Timestamp::from_second(upload.begun.s).map(|time| time.to_string());
    let (begun, what) = (begun.unwrap_or_default(), if plan.abort { "aborted " } else { "" });
    let mut out = format!("{what}{begun} {} s3://{}/", upload.id, plan.url.bucket).into_bytes();
    crate::show::escape::Escape::of_locale().push(&upload.key, &mut out);
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::unit::Time;

    fn planned(line: &str) -> Result<MpuOptions, String> {
        plan(&TABLE.parse_line(line)?)
    }

    #[test]
    fn abort_needs_to_be_told_which() {
        for line in [
            "",
            "ls",
            "rm s3://abc",
            "abort s3://abc",
            "ls --all s3://abc",
            "abort --all --older-than=1d s3://abc",
            "abort --older-than=x s3://abc",
            "ls s3://",
            "ls /tmp",
        ] {
            assert!(planned(line).is_err(), "{line}");
        }
        for line in ["ls s3://abc", "abort --all s3://abc/p", "abort --upload-id=x s3://abc"] {
            assert!(planned(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn old_ones_only() {
        let upload = Upload { key: b"k".to_vec(), id: "i".into(), begun: Time { s: 1000, ns: 0 } };
        let plan = planned("abort --older-than=1m s3://abc").unwrap();
        assert!(plan.concerns(&upload, 1060) && !plan.concerns(&upload, 1059));
        let plan = planned("abort --upload-id=j s3://abc").unwrap();
        assert!(!plan.concerns(&upload, 9999));
    }
}
