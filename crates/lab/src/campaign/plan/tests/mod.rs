//! Plans of the repository's campaigns and of small ones: exact commands, groups, controls, parts left out.

mod small;
mod studies;

use super::*;
use crate::campaign::tools::PROGRAMS;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn no_throttle(_: &Path, _: Option<&Path>) -> Result<DiskThrottle, String> {
    Err("control groups are not for us".into())
}

/// A machine with two CPUs and these programs, valid as long as the folder.
fn ground(programs: &[&str]) -> (tempfile::TempDir, PlanEnvironment) {
    let dir = tempfile::tempdir().unwrap();
    for name in programs {
        let path = dir.path().join(name);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = vec![dir.path().to_owned()];
    let ground = PlanEnvironment {
        path,
        cpus: 2,
        throttle: no_throttle,
        is_one_fs: |_, _| false,
        is_free: |_| true,
        is_memory: |_| false,
    };
    (dir, ground)
}

fn wishes() -> PlanOptions {
    PlanOptions {
        work: "/area".into(),
        cache: "/cache".into(),
        own: "/bin/hakobu".into(),
        secret_key: "S".into(),
        ..PlanOptions::default()
    }
}

fn all_programs() -> Vec<&'static str> {
    PROGRAMS.iter().map(|program| program.name).collect()
}

fn planned(text: &str, programs: &[&str]) -> Result<CampaignPlan, String> {
    let (_dir, ground) = ground(programs);
    make(
        &CampaignSpec::parse("t.toml", text).map_err(|error| error.to_string())?,
        &wishes(),
        &ground,
    )
}

/// Plans a campaign with these lines after its head.
fn small(lines: &str, programs: &[&str]) -> Result<CampaignPlan, String> {
    planned(&format!("name = \"t\"\ntitle = \"T\"\nquestion = \"?\"\n{lines}"), programs)
}

fn campaigns() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../campaigns");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<(String, String)> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (stem, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    found.sort();
    assert!(found.len() >= 5, "{found:?}");
    found
}

fn commands(plan: &CampaignPlan) -> Vec<&str> {
    plan.cells.iter().map(|planned| planned.cell.command.as_str()).collect()
}
