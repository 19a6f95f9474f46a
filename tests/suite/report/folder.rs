//! Results folders as written by a campaign.

use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Parameters of a folder.
pub struct Recipe {
    /// Name of the machine.
    pub machine: &'static str,
    /// Factor by which all runs are slower.
    pub slower: f64,
    /// Runs of each setting.
    pub runs: u32,
    /// Samples of each run, ten per second.
    pub samples: u32,
}

pub const USUAL: Recipe = Recipe { machine: "m5.large", slower: 1.0, runs: 4, samples: 20 };
/// 500 runs of ten seconds.
pub const LARGE: Recipe = Recipe { runs: 20, samples: 100, ..USUAL };

const TOOLS: [(&str, f64, f64); 5] = [
    ("hakobu", 4.0, 0.9),
    ("rsync", 112.0, 17.1),
    ("cp", 60.0, 50.0),
    ("fpsync", 100.0, 20.0),
    ("a <b> & \"c\"", 9.0, 2.0),
];
const JOBS: [u32; 5] = [1, 4, 8, 16, 32];

/// Writes the folder.
pub fn make(dir: &Path, recipe: &Recipe) {
    std::fs::create_dir(dir).unwrap();
    let (mut runs, mut samples) = (String::new(), String::new());
    line(&mut runs, &header(recipe));
    let mut at_s = 0.0;
    for block in 0..recipe.runs {
        for (tool, (_, one, least)) in TOOLS.iter().enumerate() {
            for (place, jobs) in JOBS.iter().enumerate() {
                let cell = tool * JOBS.len() + place;
                let noise = 0.98 + 0.04 * f64::from((block * 7 + cell as u32 * 3) % 5) / 5.0;
                let wall_s = (one / f64::from(*jobs)).max(*least) * noise * recipe.slower;
                line(&mut runs, &run(cell, block, at_s, wall_s));
                line(&mut samples, &curves(cell, block, recipe.samples));
                at_s += wall_s;
            }
        }
    }
    let end = json!({"line": "end", "reason": "done", "took_s": at_s, "overhead": 0.003});
    line(&mut runs, &end);
    std::fs::write(dir.join("results.jsonl"), runs).unwrap();
    std::fs::write(dir.join("samples.jsonl"), samples).unwrap();
}

fn line(out: &mut String, value: &Value) {
    writeln!(out, "{value}").unwrap();
}

fn header(recipe: &Recipe) -> Value {
    let cells = TOOLS.iter().enumerate().flat_map(|(tool, (name, _, _))| {
        JOBS.iter().enumerate().map(move |(place, jobs)| {
            json!({
                "id": tool * JOBS.len() + place, "group": "small files", "series": name,
                "x": jobs, "parameters": {"jobs": jobs.to_string()}, "conditions": {},
                "command": format!("{name} -j {jobs} src/ dst/"), "data": "files",
                "control_of": null, "own": tool == 0,
            })
        })
    });
    json!({
        "line": "header", "schema": 1, "name": "small-files",
        "title": "Small files between two volumes", "question": "How many jobs are enough?",
        "program": "hakobu 0.1.0", "start": "2026-01-02T03:04:05Z", "seed": 7, "scale": 1.0,
        "x_name": "jobs", "metric": "wall_s", "more_is_better": false,
        "machine": {
            "name": recipe.machine, "kernel": "6.12.1", "arch": "x86_64",
            "cpu_model": "Some CPU", "cpus": 2.0, "cpus_online": 2,
            "memory_bytes": 8_000_000_000_u64, "instance_type": null,
            "volumes": {"dst": "ext4, SSD"}, "limits": [],
        },
        "tools": [{"name": "rsync", "version": "3.4", "path": "/usr/bin/rsync", "sha256": "ab"}],
        "data": [{"name": "files", "files": 2000, "bytes": 8_000_000, "about": "2,000 of 4 KiB"}],
        "cells": cells.collect::<Vec<_>>(),
        "left_out": ["cpz: not installed: cargo install cpz"],
        "published": [
            {"machine": "m5.2xlarge", "series": "rsync", "x": 1.0, "value": 110.453},
            {"machine": "m5.2xlarge", "series": "rsync", "x": 8.0, "value": 12.57},
        ],
        "text": "name = \"small-files\"\n",
    })
}

fn run(cell: usize, block: u32, at_s: f64, wall_s: f64) -> Value {
    json!({
        "line": "run", "cell": cell, "block": block, "place": cell, "warmup": false,
        "at_s": at_s, "ok": true, "problem": null, "exit_code": 0, "wall_s": wall_s,
        "user_s": wall_s * 0.5, "sys_s": wall_s * 0.3, "rss_bytes_max": 12_000_000,
        "read_bytes": 0, "write_bytes": 8_000_000, "voluntary_switches": 9,
        "involuntary_switches": 1, "started": 3, "cached": 1.0,
        "checked": {"files": 2000, "bytes": 8_000_000, "compared": 50},
        "metrics": {}, "load": {"cpu_percent": 80.0}, "verdict": null,
    })
}

fn curves(cell: usize, block: u32, samples: u32) -> Value {
    let wave = |scale: f64, phase: u32| -> Vec<f64> {
        (0..samples).map(|i| scale * (1.0 + f64::from((i * 7 + phase) % 10)) / 10.0).collect()
    };
    let t_s: Vec<f64> = (1..=samples).map(|i| f64::from(i) * 0.1).collect();
    json!({
        "cell": cell, "block": block, "t_s": t_s,
        "values": {
            "own_user": wave(35.0, 0), "own_system": wave(25.0, 3),
            "user": wave(40.0, 0), "system": wave(30.0, 3), "iowait": wave(20.0, 5),
            "steal": wave(0.0, 0), "busiest": wave(100.0, 1), "read": wave(1e8, 2),
            "write": wave(2e8, 4), "iops": wave(3000.0, 6), "net": wave(1e6, 8),
        },
    })
}
