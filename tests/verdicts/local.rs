//! Limits of transfers from tmpfs to tmpfs: one CPU, one directory, a slow source, an option.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::fuse;
use crate::rig::{Trial, bytes_per_s, files_per_s, inside, names, real_s, run, tool};

/// Copies files of one folder for some seconds; their number is found by trying.
fn long_enough(before: &[&str], options: &[&str]) -> Result<Run, String> {
    const FIRST: usize = 50_000;
    // 4 GiB of tmpfs at a page and an inode each.
    const MOST: usize = 800_000;
    let mut count = FIRST;
    loop {
        let area = Area::tmpfs();
        let source = names(&area.join("src"), count, 1_000);
        let places = [inside(&source), inside(&area.join("dst"))];
        let words = ["sync", "-rt", "--no-memory"].iter().chain(options).map(|w| (*w).to_owned());
        let words: Vec<String> = words.chain(places).collect();
        let run = run(before, &area, &words);
        let took_s = real_s(&run.summary());
        if took_s >= 4.0 {
            return Ok(run);
        }
        if count == MOST {
            return Err(format!("{count} files take only {took_s:.1} s"));
        }
        count = ((count as f64 * 6.0 / took_s) as usize).min(MOST);
    }
}

/// One CPU by affinity.
pub fn one_cpu() -> Result<Trial, String> {
    tool("taskset -c 0 true")?;
    let run = long_enough(&["taskset", "-c", "0"], &[])?;
    let summary = run.summary();
    let cpu_s = summary["user_s"].as_f64().unwrap() + summary["sys_s"].as_f64().unwrap();
    Trial::at(&run, 100.0 * cpu_s / real_s(&summary), 100.0, "% of a CPU")
}

/// Many workers that create files in one directory.
pub fn one_directory() -> Result<Trial, String> {
    let run = long_enough(&[], &["-j", "16"])?;
    let rate = files_per_s(&run);
    Trial::at(&run, rate, rate, "files/s")
}

/// `--bwlimit`.
pub fn bwlimit() -> Result<Trial, String> {
    const RATE: usize = 40_000_000;
    let area = Area::tmpfs();
    let source = names(&area.join("src"), 5 * RATE / 1_000_000, 1_000_000);
    let limit = format!("--bwlimit={}MB", RATE / 1_000_000);
    let words = ["sync".to_owned(), "-rt".to_owned(), "--no-memory".to_owned(), limit];
    let places = [inside(&source), inside(&area.join("dst"))];
    let run = run(&[], &area, &[&words[..], &places].concat());
    Trial::at(&run, bytes_per_s(&run), RATE as f64, "bytes/s")
}

/// A file system with a fixed read rate.
pub fn slow_source() -> Result<Trial, String> {
    const RATE: u64 = 40_000_000;
    let area = Area::tmpfs();
    let shape = fuse::Shape { files: 50, size_bytes: 4_000_000, bytes_per_s: RATE };
    let slow = fuse::mount(area.join("slow"), shape)?;
    let words = ["sync", "-rt", "--no-memory"].map(str::to_owned);
    let places = [inside(slow.path()), inside(&area.join("dst"))];
    let run = run(&[], &area, &[&words[..], &places].concat());
    Trial::at(&run, bytes_per_s(&run), RATE as f64, "bytes/s")
}
