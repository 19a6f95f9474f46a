//! Runs a script in an environment with everything that the documentation mentions: files, volumes, a store
//! with buckets, results. It has its own namespaces, so that fixed ports, `/mnt` and `/srv` are free.

use super::reader::Script;
use crate::common::area::Area;
use crate::common::program;
use std::process::{Command, Stdio};

/// Runs a script; the error says what went wrong.
pub fn run(script: &Script) -> Result<(), String> {
    let area = Area::tmpfs();
    std::fs::write(area.join("stage.sh"), include_str!("stage.sh")).unwrap();
    std::fs::write(area.join("script.sh"), &script.text).unwrap();
    let output = Command::new("timeout")
        .args(["-s", "KILL", "300", "unshare", "--mount", "--net", "--pid", "--fork"])
        .args(["--kill-child", "--mount-proc", "setsid", "bash", "-euo"])
        .args(["pipefail"])
        .arg(area.join("stage.sh"))
        .arg(area.path())
        .arg(program())
        .arg(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = std::fs::read_to_string(area.join("printed")).unwrap_or_default();
    let told = || {
        format!(
            "{}\n{}--- {}\n{printed}{}{}",
            script.place,
            script.text,
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    };
    if !output.status.success() {
        return Err(told());
    }
    match &script.output {
        Some(expected) if *expected != printed => {
            Err(format!("{}\n--- not as documented:\n{expected}", told()))
        }
        _ => Ok(()),
    }
}
