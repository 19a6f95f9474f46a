//! `hakobu presign`: URLs that let anybody read an object for a while.

use super::{refuse, tool};
use crate::exit;
use crate::objects::{self, Asked};
use crate::options::tools::PRESIGN;
use crate::options::{Refused, Typed};
use crate::show::output::Output;
use hakobu_transfer::location::S3Url;
use hakobu_transfer::s3::blocking::with_store;
use hakobu_transfer::s3::{Request, presign};
use http::Method;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// aws's default.
const EXPIRES_S: u64 = 3600;

struct Plan {
    asked: Asked,
    expires_s: u64,
    places: Vec<(OsString, S3Url)>,
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = PRESIGN.parse(&arguments);
    match typed.and_then(|typed| plan(&typed).map_err(Refused::Usage)) {
        Ok(plan) => show(&plan).into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

fn plan(typed: &Typed) -> Result<Plan, String> {
    let mut plan = Plan { asked: Asked::default(), expires_s: EXPIRES_S, places: Vec::new() };
    for given in &typed.options {
        if plan.asked.take(given)? {
            continue;
        }
        match given.name {
            "expires-in" => {
                plan.expires_s = tool::seconds(&given.value).ok_or_else(|| {
                    format!("--expires-in={} is no time such as 3600 or 12h", given.value.display())
                })?;
            }
            name => return Err(format!("--{name} is not known to presign")),
        }
    }
    plan.places =
        objects::all(&typed.paths, objects::object_url, "give an object: s3://BUCKET/KEY")?;
    Ok(plan)
}

fn show(plan: &Plan) -> u8 {
    let store = match tool::open(&plan.asked) {
        Ok(store) => store,
        Err(code) => return code,
    };
    let out = Output::stdout();
    let mut code = exit::OK;
    for (typed, url) in &plan.places {
        let mut request = Request::new("GetObject", Method::GET, Some(&url.bucket)).key(&url.key);
        if let Some(version) = plan.asked.version() {
            request = request.query("versionId", version);
        }
        let expires = Duration::from_secs(plan.expires_s);
        match with_store(&store, async |_| presign(&store, &request, expires).await) {
            Ok(url) => out.write(format!("{url}\n").as_bytes()),
            Err(error) => {
                tool::fail("presign", typed, &error);
                code = exit::FAILURE;
            }
        }
    }
    tool::close(&out, code)
}
