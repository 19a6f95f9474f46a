//! Limits on the disk of a place, by control groups: version 1 (`blkio.throttle.*`, kernel
//! documentation, blkio-controller) and version 2 (`io.max`, cgroups(7)). They are put on before a
//! run and taken off after it by commands of the plan, so that a run without them meets none.

use crate::campaign::tools::quoted;
use hakobu_sys::{cgroup, disk};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// The files of version 1: operations and bytes, read and written.
const IOPS_FILES: [&str; 2] =
    ["blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"];
const BYTES_FILES: [&str; 2] =
    ["blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"];
/// The group of version 2 that is made for a run.
const GROUP: &str = "hakobu-campaign";

/// A way to limit the disk below a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// The disk, `major:minor`.
    device: String,
    way: Way,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// Version 1: these groups' files. What goes to the disk later is charged to the topmost group,
    /// so that one is among them; hence the limit holds for the whole machine.
    Charged(Vec<PathBuf>),
    /// Version 2: this group, which the command joins.
    Joined(PathBuf),
}

impl Throttle {
    /// The way for the disk below a folder (or below where it will be).
    ///
    /// # Errors
    /// Why there is none, as the end of a sentence.
    pub fn find(folder: &Path) -> Result<Throttle, String> {
        let there = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
        let disk = disk::below_path(there).ok_or_else(|| {
            format!("'{}' lies on no disk that a control group could limit", there.display())
        })?;
        let device = format!("{}:{}", disk.dev.0, disk.dev.1);
        let hierarchies = cgroup::hierarchies();
        if let Some(charged) = hierarchies.iter().find(|each| each.controls("blkio")) {
            let mut groups = vec![charged.mount.clone()];
            if charged.own != charged.mount {
                groups.push(charged.own.clone());
            }
            return Throttle::charged(device, groups);
        }
        match hierarchies.iter().find(|each| each.controllers.is_none()) {
            Some(unified) => Throttle::joined(device, &unified.mount),
            None => Err("there are no control groups".into()),
        }
    }

    fn charged(device: String, groups: Vec<PathBuf>) -> Result<Throttle, String> {
        for group in &groups {
            for file in IOPS_FILES.iter().chain(&BYTES_FILES) {
                let path = group.join(file);
                if OpenOptions::new().write(true).open(&path).is_err() {
                    return Err(format!("'{}' cannot be written", path.display()));
                }
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                if text.lines().any(|line| line.split(' ').next() == Some(&device)) {
                    let shown = path.display();
                    return Err(format!(
                        "the disk has a limit already; echo '{device} 0' > {shown} removes it"
                    ));
                }
            }
        }
        Ok(Throttle { device, way: Way::Charged(groups) })
    }

    fn joined(device: String, mount: &Path) -> Result<Throttle, String> {
        let controls = std::fs::read_to_string(mount.join("cgroup.subtree_control"));
        if !controls.is_ok_and(|list| list.split_whitespace().any(|name| name == "io")) {
            return Err(format!("control groups at '{}' have no io controller", mount.display()));
        }
        let join = mount.join("cgroup.procs");
        if OpenOptions::new().write(true).open(&join).is_err() {
            return Err(format!("'{}' cannot be written", join.display()));
        }
        Ok(Throttle { device, way: Way::Joined(mount.join(GROUP)) })
    }

    /// One that only tests use: version 1, one group.
    #[cfg(test)]
    pub(in crate::campaign) fn of_group(device: &str, group: &str) -> Throttle {
        Throttle { device: device.into(), way: Way::Charged(vec![group.into()]) }
    }

    /// Commands that put limits on: operations and bytes a second, for reading and for writing each.
    pub fn begin(&self, iops: Option<u64>, bytes_per_s: Option<u64>) -> Vec<String> {
        let device = &self.device;
        match &self.way {
            Way::Charged(groups) => {
                let wanted = [(IOPS_FILES, iops), (BYTES_FILES, bytes_per_s)];
                let wanted = wanted.iter().filter_map(|(files, rate)| Some((files, (*rate)?)));
                let set = |(files, rate): (&[&str; 2], u64)| {
                    let commands = groups.iter().flat_map(move |group| {
                        files.iter().map(move |file| Throttle::set(device, group, file, rate))
                    });
                    commands.collect::<Vec<_>>()
                };
                wanted.flat_map(set).collect()
            }
            Way::Joined(group) => {
                let mut line = device.clone();
                for (names, rate) in [(["riops", "wiops"], iops), (["rbps", "wbps"], bytes_per_s)] {
                    if let Some(rate) = rate {
                        names.iter().for_each(|name| line.push_str(&format!(" {name}={rate}")));
                    }
                }
                let folder = quoted(&group.to_string_lossy());
                let file = quoted(&group.join("io.max").to_string_lossy());
                vec![format!("mkdir -p {folder} && echo {} > {file}", quoted(&line))]
            }
        }
    }

    /// Commands that take them off; they do no harm where there are none.
    pub fn end(&self) -> Vec<String> {
        match &self.way {
            Way::Charged(groups) => {
                let files = IOPS_FILES.iter().chain(&BYTES_FILES);
                let each = |file| groups.iter().map(move |group| (group, file));
                let off =
                    |(group, file): (&PathBuf, &&str)| Throttle::set(&self.device, group, file, 0);
                files.flat_map(each).map(off).collect()
            }
            Way::Joined(group) => {
                let folder = quoted(&group.to_string_lossy());
                vec![format!("test ! -d {folder} || rmdir {folder}")]
            }
        }
    }

    fn set(device: &str, group: &Path, file: &str, rate: u64) -> String {
        let file = quoted(&group.join(file).to_string_lossy());
        format!("echo {} > {file}", quoted(&format!("{device} {rate}")))
    }

    /// The words that run a command below the limits.
    pub fn wrap(&self, argv: Vec<String>) -> Vec<String> {
        match &self.way {
            Way::Charged(_) => argv,
            Way::Joined(group) => {
                // Writing 0 moves who writes: the shell, which then becomes the command.
                let script = "echo 0 > \"$0\"/cgroup.procs && exec \"$@\"";
                let mut words = vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()];
                words.push(group.to_string_lossy().into_owned());
                words.extend(argv);
                words
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_limits_all_groups_that_are_charged() {
        let groups = vec![PathBuf::from("/g"), PathBuf::from("/g/own")];
        let throttle = Throttle { device: "8:0".into(), way: Way::Charged(groups) };
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
        let throttle = Throttle { device: "8:0".into(), way: Way::Joined(group) };
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
    fn files_that_are_there_are_written_and_limits_that_are_there_are_left() {
        let folder = tempfile::tempdir().unwrap();
        for file in IOPS_FILES.iter().chain(&BYTES_FILES) {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let groups = vec![folder.path().to_owned()];
        let throttle = Throttle::charged("7:1".into(), groups.clone()).unwrap();
        for command in throttle.begin(Some(100), None) {
            let status = std::process::Command::new("sh").arg("-c").arg(&command).status().unwrap();
            assert!(status.success(), "{command}");
        }
        let read = |file| std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert_eq!(read(IOPS_FILES[1]), "7:1 100\n");
        assert_eq!(read(BYTES_FILES[0]), "");
        let refused = Throttle::charged("7:1".into(), groups).unwrap_err();
        assert!(refused.contains("has a limit already"), "{refused}");
        let elsewhere = Throttle::charged("7:1".into(), vec![folder.path().join("none")]);
        assert!(elsewhere.unwrap_err().contains("cannot be written"));
    }
}
