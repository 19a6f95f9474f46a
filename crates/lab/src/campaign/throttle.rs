//! Limits the disks of source and target by control groups: version 1 (`blkio.throttle.*`, kernel
//! documentation, blkio-controller) and version 2 (`io.max`, cgroups(7)). Commands of the plan set them
//! before a run and remove them after it, so that runs without limits are unaffected.

use crate::campaign::files::nearest_existing;
use crate::campaign::template::quoted;
use hakobu_core::error::PathError;
use hakobu_sys::{cgroup, disk};
use std::fmt;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// Files of version 1: operations and bytes, read and written.
const IOPS_FILES: [&str; 2] =
    ["blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"];
const BYTES_FILES: [&str; 2] =
    ["blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"];
/// Group of version 2 that is created for a run.
const GROUP: &str = "hakobu-campaign";

/// A way to limit the disks of two folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskThrottle {
    /// Disks as `major:minor`.
    devices: Vec<String>,
    mechanism: ThrottleMechanism,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ThrottleMechanism {
    /// Version 1: the files of these groups. Writeback is charged to the root group, so that is one of them;
    /// the limit therefore affects the whole machine.
    Charged(Vec<PathBuf>),
    /// Version 2: the command joins this group.
    Joined(PathBuf),
}

/// Why the disks of two folders cannot be limited.
#[derive(Debug)]
pub enum ThrottleError {
    /// A file of control groups cannot be read or written.
    Path(PathError),
    /// The folder is not on a disk of its own.
    NoDisk(PathBuf),
    /// The file has a limit of the disk, which is left.
    Limited { device: String, file: PathBuf },
    /// The groups at this mount have no io controller.
    NoController(PathBuf),
    /// There are no control groups.
    NoGroups,
}

impl fmt::Display for ThrottleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThrottleError::Path(error) => error.fmt(out),
            ThrottleError::NoDisk(folder) => {
                let folder = folder.display();
                write!(out, "'{folder}' is not on a disk that control groups can limit")
            }
            ThrottleError::Limited { device, file } => {
                let file = file.display();
                write!(out, "the disk has a limit already; echo '{device} 0' > {file} removes it")
            }
            ThrottleError::NoController(mount) => {
                write!(out, "control groups at '{}' have no io controller", mount.display())
            }
            ThrottleError::NoGroups => out.write_str("there are no control groups"),
        }
    }
}

error_type!(ThrottleError: Path(PathError); );

impl DiskThrottle {
    /// Finds the way to limit the disk of the target's folder (which need not exist yet), and that of the
    /// source if it is another one.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn find(target: &Path, source: Option<&Path>) -> Result<DiskThrottle, ThrottleError> {
        let disk = |folder: &Path| {
            let there = nearest_existing(folder);
            let (major, minor) =
                disk::below_path(there).ok_or_else(|| ThrottleError::NoDisk(there.to_owned()))?.dev;
            Ok::<_, ThrottleError>(format!("{major}:{minor}"))
        };
        let mut devices = vec![disk(target)?];
        // A source in memory has no disk to limit.
        let other = source.and_then(|source| disk(source).ok());
        devices.extend(other.filter(|other| !devices.contains(other)));
        let hierarchies = cgroup::hierarchies();
        if let Some(charged) = hierarchies.iter().find(|each| each.controls("blkio")) {
            let mut groups = vec![charged.mount.clone()];
            if charged.own != charged.mount {
                groups.push(charged.own.clone());
            }
            return DiskThrottle::charged(devices, groups);
        }
        match hierarchies.iter().find(|each| each.controllers.is_none()) {
            Some(unified) => DiskThrottle::joined(devices, &unified.mount),
            None => Err(ThrottleError::NoGroups),
        }
    }

    fn charged(devices: Vec<String>, groups: Vec<PathBuf>) -> Result<DiskThrottle, ThrottleError> {
        for group in &groups {
            for file in IOPS_FILES.iter().chain(&BYTES_FILES) {
                let file = group.join(file);
                writable(&file)?;
                let text = std::fs::read_to_string(&file).map_err(PathError::of("read", &file))?;
                let mut limited = text.lines().filter_map(|line| line.split(' ').next());
                if let Some(device) =
                    limited.find(|limited| devices.iter().any(|own| own == limited))
                {
                    let device = device.to_owned();
                    return Err(ThrottleError::Limited { device, file });
                }
            }
        }
        Ok(DiskThrottle { devices, mechanism: ThrottleMechanism::Charged(groups) })
    }

    fn joined(devices: Vec<String>, mount: &Path) -> Result<DiskThrottle, ThrottleError> {
        let controls = std::fs::read_to_string(mount.join("cgroup.subtree_control"));
        if !controls.is_ok_and(|list| list.split_whitespace().any(|name| name == "io")) {
            return Err(ThrottleError::NoController(mount.to_owned()));
        }
        writable(&mount.join("cgroup.procs"))?;
        Ok(DiskThrottle { devices, mechanism: ThrottleMechanism::Joined(mount.join(GROUP)) })
    }

    /// For tests: version 1 with one group.
    #[cfg(test)]
    pub(in crate::campaign) fn of_group(device: &str, group: &str) -> DiskThrottle {
        DiskThrottle {
            devices: vec![device.into()],
            mechanism: ThrottleMechanism::Charged(vec![group.into()]),
        }
    }

    /// Commands that set limits: operations and bytes per second of each disk, for reads and writes each.
    pub fn begin(&self, iops: Option<u64>, bytes_per_s: Option<u64>) -> Vec<String> {
        match &self.mechanism {
            ThrottleMechanism::Charged(groups) => {
                let wanted = [(IOPS_FILES, iops), (BYTES_FILES, bytes_per_s)];
                let wanted = wanted.into_iter().filter_map(|(files, rate)| Some((files, rate?)));
                wanted.flat_map(|(files, rate)| self.set(groups, files, rate)).collect()
            }
            ThrottleMechanism::Joined(group) => {
                let folder = quoted(&group.to_string_lossy());
                let file = quoted(&group.join("io.max").to_string_lossy());
                let mut command = format!("mkdir -p {folder}");
                for device in &self.devices {
                    let mut line = device.clone();
                    let rates = [(["riops", "wiops"], iops), (["rbps", "wbps"], bytes_per_s)];
                    for (names, rate) in rates {
                        if let Some(rate) = rate {
                            names.iter().for_each(|name| line.push_str(&format!(" {name}={rate}")));
                        }
                    }
                    command.push_str(&format!(" && echo {} > {file}", quoted(&line)));
                }
                vec![command]
            }
        }
    }

    /// Commands that remove the limits; harmless if there are none.
    pub fn end(&self) -> Vec<String> {
        match &self.mechanism {
            ThrottleMechanism::Charged(groups) => {
                let files = [IOPS_FILES, BYTES_FILES];
                files.into_iter().flat_map(|files| self.set(groups, files, 0)).collect()
            }
            ThrottleMechanism::Joined(group) => {
                let folder = quoted(&group.to_string_lossy());
                vec![format!("test ! -d {folder} || rmdir {folder}")]
            }
        }
    }

    /// Commands that write a rate of every disk to these files of all groups.
    fn set(&self, groups: &[PathBuf], files: [&str; 2], rate: u64) -> Vec<String> {
        let mut commands = Vec::new();
        for device in &self.devices {
            for group in groups {
                for file in files {
                    let file = quoted(&group.join(file).to_string_lossy());
                    let line = quoted(&format!("{device} {rate}"));
                    commands.push(format!("echo {line} > {file}"));
                }
            }
        }
        commands
    }

    /// Arguments that run a command inside the limited group.
    pub fn wrap(&self, argv: Vec<String>) -> Vec<String> {
        match &self.mechanism {
            ThrottleMechanism::Charged(_) => argv,
            ThrottleMechanism::Joined(group) => {
                // Writing 0 moves the writing process: the shell, which then executes the command.
                let script = "echo 0 > \"$0\"/cgroup.procs && exec \"$@\"";
                let mut words = vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()];
                words.push(group.to_string_lossy().into_owned());
                words.extend(argv);
                words
            }
        }
    }
}

fn writable(file: &Path) -> Result<(), PathError> {
    OpenOptions::new().write(true).open(file).map(drop).map_err(PathError::of("write", file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_limits_all_groups_that_are_charged() {
        let groups = vec![PathBuf::from("/g"), PathBuf::from("/g/own")];
        let throttle = DiskThrottle {
            devices: vec!["8:0".into()],
            mechanism: ThrottleMechanism::Charged(groups),
        };
        let begin = throttle.begin(Some(3000), None);
        assert_eq!(begin.len(), 4, "{begin:?}");
        assert_eq!(begin[0], "echo '8:0 3000' > /g/blkio.throttle.read_iops_device");
        assert_eq!(begin[3], "echo '8:0 3000' > /g/own/blkio.throttle.write_iops_device");
        assert_eq!(throttle.begin(Some(1), Some(2)).len(), 8);
        let end = throttle.end();
        assert_eq!(end.len(), 8);
        assert!(end.iter().all(|command| command.starts_with("echo '8:0 0' > /g")), "{end:?}");
        assert_eq!(throttle.wrap(vec!["cp".into()]), ["cp"]);
    }

    #[test]
    fn version_2_has_a_group_that_the_command_joins() {
        let group = PathBuf::from("/c g/hakobu-campaign");
        let throttle = DiskThrottle {
            devices: vec!["8:0".into()],
            mechanism: ThrottleMechanism::Joined(group),
        };
        let begin = throttle.begin(Some(3000), Some(125_000_000));
        let line = "8:0 riops=3000 wiops=3000 rbps=125000000 wbps=125000000";
        let wanted = format!(
            "mkdir -p '/c g/hakobu-campaign' && echo '{line}' > '/c g/hakobu-campaign/io.max'"
        );
        assert_eq!(begin, [wanted]);
        let wrapped = throttle.wrap(vec!["cp".into(), "a b".into()]);
        assert_eq!(wrapped[3..], ["/c g/hakobu-campaign", "cp", "a b"]);
        assert!(throttle.end()[0].contains("rmdir"), "{:?}", throttle.end());
    }

    #[test]
    fn source_and_target_on_two_disks_have_the_same_limits() {
        let devices = vec!["8:0".to_owned(), "8:16".to_owned()];
        let charged = ThrottleMechanism::Charged(vec![PathBuf::from("/g")]);
        let throttle = DiskThrottle { devices: devices.clone(), mechanism: charged };
        let begin = throttle.begin(Some(3000), Some(125_000_000));
        assert_eq!((begin.len(), throttle.end().len()), (8, 8));
        for line in ["'8:0 3000' > /g/blkio.throttle.read_iops", "'8:16 125000000' > /g/blkio."] {
            assert!(begin.iter().any(|command| command.contains(line)), "{line}: {begin:?}");
        }
        let joined = DiskThrottle {
            devices,
            mechanism: ThrottleMechanism::Joined("/c/hakobu-campaign".into()),
        };
        let file = "/c/hakobu-campaign/io.max";
        let wanted = format!(
            "mkdir -p /c/hakobu-campaign && echo '8:0 riops=5 wiops=5' > {file} \
             && echo '8:16 riops=5 wiops=5' > {file}"
        );
        assert_eq!(joined.begin(Some(5), None), [wanted]);
    }

    #[test]
    fn files_that_are_there_are_written_and_limits_that_are_there_are_left() {
        let folder = tempfile::tempdir().unwrap();
        for file in IOPS_FILES.iter().chain(&BYTES_FILES) {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let groups = vec![folder.path().to_owned()];
        let throttle = DiskThrottle::charged(vec!["7:1".into()], groups.clone()).unwrap();
        for command in throttle.begin(Some(100), None) {
            let status = std::process::Command::new("sh").arg("-c").arg(&command).status().unwrap();
            assert!(status.success(), "{command}");
        }
        let read = |file| std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert_eq!(read(IOPS_FILES[1]), "7:1 100\n");
        assert_eq!(read(BYTES_FILES[0]), "");
        let refused = DiskThrottle::charged(vec!["7:1".into()], groups).unwrap_err();
        assert!(refused.to_string().contains("has a limit already"), "{refused}");
        let elsewhere = DiskThrottle::charged(vec!["7:1".into()], vec![folder.path().join("none")]);
        let why = elsewhere.unwrap_err().to_string();
        assert!(
            why.starts_with("cannot write '") && why.ends_with("No such file or directory"),
            "{why}"
        );
    }
}
