//! fio's job files.

use hakobu_io::spec::{self, Environment};
use std::io;

/// A world with two files to include, one of which includes itself, and one variable.
struct Made;

impl Environment for Made {
    fn include(&self, path: &str) -> io::Result<String> {
        match path {
            "x.inc" => Ok("bs=8k\niodepth=1\n".to_owned()),
            "self.inc" => Ok("include self.inc\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "SIZE").then(|| "4m".to_owned())
    }

    fn cpus(&self) -> u64 {
        2
    }

    fn page_bytes(&self) -> u64 {
        4096
    }

    fn memory_mib(&self) -> u64 {
        1024
    }
}

/// A job file is refused with a message, or read; read again it says the same, and each cell of a
/// sweep can be made of it.
pub fn check(data: &[u8]) {
    // Each cell of a sweep is made; more than a few only cost time.
    if data.iter().filter(|byte| **byte == b',').count() > 12 {
        return;
    }
    let text = String::from_utf8_lossy(data).into_owned();
    let read = || {
        let arguments = [("parse-only".to_owned(), None)];
        spec::read(&arguments, &[("dir/jobs.fio".to_owned(), text.clone())], &Made)
    };
    match (read(), read()) {
        (Ok(first), Ok(second)) => {
            assert_eq!(first.command_line, second.command_line);
            assert_eq!(first.jobs.len(), second.jobs.len());
            assert!(!first.jobs.is_empty());
            let values: Vec<_> = first
                .sweep
                .iter()
                .map(|axis| (axis.option.as_str(), axis.values.last().expect("a value").as_str()))
                .collect();
            assert!(spec::cell(&first, &values).is_ok());
        }
        (Err(first), Err(second)) => assert!(!first.is_empty() && first == second),
        _ => panic!("read twice, it says two things"),
    }
}
