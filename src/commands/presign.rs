//! `hakobu presign`: URLs that grant temporary read access to an object.

use super::tool;
use super::tool::carry_out;
use crate::cli::{Opt, Table, Typed, flag, parts, put, value};
use crate::exit;
use crate::objects::{self, ObjectArgs};
use crate::show::json::{Paths, line};
use crate::show::output::Output;
use hakobu_s3::{Request, presign, with_session};
use hakobu_transfer::location::S3Url;
use http::Method;
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// aws's default.
const EXPIRES_S: u64 = 3600;

/// The command line of `presign`.
pub static TABLE: Table<PresignOptions> = Table {
    command: "presign",
    about: "Create URLs that give temporary read access to an object",
    description: "The URL is computed on this machine from its credentials; no request is sent.",
    usage: "hakobu presign [OPTIONS] s3://BUCKET/KEY...",
    examples: &[
        ("hakobu presign s3://data/notes.txt", "Create a URL that is valid for an hour."),
        (
            "hakobu presign --expires-in 12h s3://data/notes.txt",
            "Create one that is valid for twelve hours.",
        ),
    ],
    common: &[],
    after: tool::EXIT,
    options: &[&OPTIONS, &objects::ONE],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

#[derive(Default)]
pub struct PresignOptions {
    objects: ObjectArgs,
    expires_s: u64,
    json: bool,
    places: Vec<(OsString, S3Url)>,
}

parts!(PresignOptions { objects: ObjectArgs });

const OPTIONS: &[Opt<PresignOptions>] = &[
    flag("json", None, "JSON lines on standard output").sets(|plan, on| plan.json = on),
    value("expires-in", None, "TIME", "seconds, or 90m, 12h, 7d; default: one hour")
        .alias(&["expire"])
        .reads(|plan, arg| {
            let seconds = tool::seconds(&arg.value);
            put(
                &mut plan.expires_s,
                seconds.ok_or_else(|| arg.refuse("not a time such as 3600 or 12h"))?,
            )
        }),
];

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed), |plan| show(&plan))
}

fn plan(typed: &Typed) -> Result<PresignOptions, String> {
    let mut plan =
        TABLE.read(typed, PresignOptions { expires_s: EXPIRES_S, ..PresignOptions::default() })?;
    plan.places =
        objects::all(&typed.paths, objects::object_url, "missing object: s3://BUCKET/KEY")?;
    Ok(plan)
}

#[derive(Serialize)]
struct PresignLine<'a> {
    event: &'static str,
    #[serde(flatten)]
    paths: Paths<'a>,
    url: &'a str,
    expires_s: u64,
}

fn show(plan: &PresignOptions) -> Result<u8, String> {
    let store = tool::open(&plan.objects)?;
    let out = Output::stdout();
    let mut code = exit::OK;
    for (typed, url) in &plan.places {
        let mut request = Request::new("GetObject", Method::GET, Some(&url.bucket)).key(&url.key);
        if let Some(version) = plan.objects.version() {
            request = request.query("versionId", version);
        }
        let expires_s = plan.expires_s;
        let expires = Duration::from_secs(expires_s);
        match with_session(&store, async |_| presign(&store, &request, expires).await) {
            Ok(url) if plan.json => {
                let paths = Paths(&[("object", Some(Path::new(typed)))]);
                out.write(&line(&PresignLine { event: "url", paths, url: &url, expires_s }));
            }
            Ok(url) => out.write(format!("{url}\n").as_bytes()),
            Err(error) => {
                tool::fail(plan.json.then_some(&out), "presign", typed, &error);
                code = exit::FAILURE;
            }
        }
    }
    Ok(tool::close(&out, code))
}
