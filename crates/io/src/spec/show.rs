//! Jobs as fio's command line (`--showcmd`).

use super::super::job::Job;
use super::section::Section;

/// Options for all jobs, then each job with its own. Options that hold only for some of the jobs
/// (from a second `[global]` on) stand with each of those.
pub fn command_line(sections: &[Section], globals: &[(String, String)], jobs: &[Job]) -> String {
    let mut words: Vec<String> = Vec::new();
    let is_job = |section: &Section| section.job.is_some();
    let mut after = sections.iter().skip_while(|section| !is_job(section));
    let at_front = !after.any(|section| !is_job(section) && !section.settings.is_empty());
    if at_front {
        words.extend(globals.iter().map(word));
    }
    let mut held: Vec<(String, String)> = Vec::new();
    let mut jobs = jobs.iter();
    for section in sections {
        if !is_job(section) {
            for setting in section.settings.iter().filter(|_| !at_front) {
                let pair = setting.pair();
                held.retain(|(known, _)| *known != pair.0);
                held.push(pair);
            }
            continue;
        }
        let Some(job) = jobs.next() else { break };
        words.push(word(&("name".to_owned(), job.name.clone())));
        let says = |held: &str| job.given.iter().any(|(name, _)| name == held);
        let holds = held.iter().filter(|(name, _)| !says(name));
        let own = job.given.iter().filter(|(name, _)| name != "name");
        words.extend(holds.chain(own).map(word));
    }
    words.join(" ")
}

/// `--NAME=VALUE` or `--NAME`, quoted for a shell where it has to be.
fn word((name, value): &(String, String)) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=.,:/%@".contains(c);
    if value.is_empty() {
        format!("--{name}")
    } else if value.chars().all(plain) {
        format!("--{name}={value}")
    } else {
        format!("--{name}='{}'", value.replace('\'', "'\\''"))
    }
}
