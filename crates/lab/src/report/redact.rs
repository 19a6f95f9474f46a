//! Replaces the names of machines, users and paths in results by placeholders, for pages that leave the house. The same
//! name has the same placeholder in all results of a report, and names are numbered in order of appearance.

use crate::results::Results;

/// Folders with the same content on every machine: their paths stay.
const SYSTEM: [&str; 7] = ["bin", "lib", "lib64", "proc", "sbin", "sys", "usr"];
/// Folders whose name says nothing, but whose content does.
const COMMON: [&str; 14] = [
    "dev", "home", "media", "mnt", "null", "opt", "root", "run", "shm", "srv", "tmp", "var",
    "zero", "data",
];
/// Hosts that are everywhere.
const HERE: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Placeholders given so far.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    hosts: Vec<String>,
    users: Vec<String>,
    folders: Vec<String>,
}

/// The placeholder of a name.
fn placeholder(known: &mut Vec<String>, name: &str, kind: &str) -> String {
    let at = known.iter().position(|of| of == name).unwrap_or_else(|| {
        known.push(name.to_owned());
        known.len() - 1
    });
    format!("{kind}{}", at + 1)
}

impl Redaction {
    /// Starts with names that are replaced wherever they stand as a word: those of this machine and its user.
    pub fn new(hosts: &[String], users: &[String]) -> Redaction {
        let names = |of: &[String]| of.iter().filter(|name| name.len() > 1).cloned().collect();
        Redaction { hosts: names(hosts), users: names(users), folders: Vec::new() }
    }

    /// Replaces names in everything that a report shows.
    pub fn apply(&mut self, results: &mut Results) {
        let header = &mut results.header;
        let machine = &mut header.machine;
        if !machine.name.is_empty() && machine.instance_type.as_ref() != Some(&machine.name) {
            machine.name = placeholder(&mut self.hosts, &machine.name, "host");
        }
        let texts = machine.volumes.values_mut().chain(&mut machine.limits);
        texts.for_each(|text| *text = self.text(text));
        for tool in &mut header.tools {
            tool.path = self.text(&tool.path);
        }
        for data in &mut header.data {
            data.about = self.text(&data.about);
        }
        for cell in &mut header.cells {
            // A command that has no other name is its own name.
            (cell.group, cell.series) = (self.text(&cell.group), self.text(&cell.series));
            cell.command = self.text(&cell.command);
            let values = cell.parameters.values_mut().chain(cell.conditions.values_mut());
            values.for_each(|text| *text = self.text(text));
        }
        for figure in &mut header.published {
            figure.series = self.text(&figure.series);
            figure.group = figure.group.as_deref().map(|group| self.text(group));
        }
        for text in [
            &mut header.title,
            &mut header.question,
            &mut header.title_ja,
            &mut header.question_ja,
            &mut header.text,
        ] {
            *text = self.text(text);
        }
        header.left_out.iter_mut().for_each(|text| *text = self.text(text));
        for problem in results.runs.iter_mut().filter_map(|run| run.problem.as_mut()) {
            *problem = self.text(problem);
        }
        results.experiments.iter_mut().for_each(|of| of.about = self.text(&of.about));
    }

    /// Replaces names in a text, word by word; what stands between words stays.
    fn text(&mut self, text: &str) -> String {
        let is_between = |c: char| c.is_whitespace() || "'\"`=,;()<>|&{}[]".contains(c);
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(begin) = rest.find(|c: char| !is_between(c)) {
            let (between, behind) = rest.split_at(begin);
            let end = behind.find(is_between).unwrap_or(behind.len());
            let (word, behind) = behind.split_at(end);
            out.push_str(between);
            out.push_str(&self.word(word));
            rest = behind;
        }
        out + rest
    }

    fn word(&mut self, word: &str) -> String {
        if let Some((scheme, rest)) = word.split_once("://") {
            let (host, path) = rest.split_once('/').map_or((rest, None), |(h, p)| (h, Some(p)));
            // A bucket is the first folder of a path.
            let host = if scheme == "s3" { self.folder(host) } else { self.host(host) };
            let path = path.map_or(String::new(), |path| format!("/{}", self.path(path)));
            return format!("{scheme}://{host}{path}");
        }
        // `alice@host:/path`, `host:/path`.
        if let Some((host, path)) = word.split_once(':')
            && (host.contains('@') || path.starts_with('/'))
            && !host.contains('/')
        {
            return format!("{}:{}", self.host(host), self.path(path));
        }
        if let Some(name) = word.strip_suffix(':') {
            return self.word(name) + ":";
        }
        if word.contains('@') && !word.contains('/') {
            return self.host(word);
        }
        let is_path = word.contains('/') && !is_ratio(word);
        if is_path { self.path(word) } else { self.name(word) }
    }

    /// A host with its user and port.
    fn host(&mut self, text: &str) -> String {
        let (user, host) = text.split_once('@').map_or((None, text), |(u, h)| (Some(u), h));
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) => (host, Some(port)),
            _ => (host, None),
        };
        let host = match HERE.contains(&host) || host.is_empty() {
            true => host.to_owned(),
            false => placeholder(&mut self.hosts, host, "host"),
        };
        let user = user.map(|user| placeholder(&mut self.users, user, "user") + "@");
        let port = port.map(|port| format!(":{port}"));
        format!("{}{host}{}", user.unwrap_or_default(), port.unwrap_or_default())
    }

    /// A path, component by component.
    fn path(&mut self, path: &str) -> String {
        let first = path.strip_prefix('/').and_then(|rest| rest.split('/').next());
        if first.is_some_and(|first| SYSTEM.contains(&first)) {
            return path.to_owned();
        }
        let parts: Vec<String> = path.split('/').map(|part| self.folder(part)).collect();
        parts.join("/")
    }

    fn folder(&mut self, part: &str) -> String {
        let is_plain = matches!(part, "" | "." | ".." | "~" | "*") || COMMON.contains(&part);
        if is_plain { part.to_owned() } else { placeholder(&mut self.folders, part, "dir") }
    }

    /// A word that is the name of a machine, a user or a folder seen before.
    fn name(&mut self, word: &str) -> String {
        let lists = [(&self.hosts, "host"), (&self.users, "user")];
        let found = lists.iter().find_map(|(list, kind)| {
            Some(format!("{kind}{}", list.iter().position(|of| of == word)? + 1))
        });
        found.unwrap_or_else(|| word.to_owned())
    }
}

/// True for `MB/s`, `1/2`, `N/A`: no path.
fn is_ratio(word: &str) -> bool {
    match word.split_once('/') {
        Some((_, "s" | "h" | "min" | "A")) => true,
        Some((a, b)) => !a.is_empty() && [a, b].iter().all(|of| of.parse::<f64>().is_ok()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_placeholders() {
        let mut of = Redaction::new(&["buildbox".into()], &["alice".into()]);
        for (text, wanted) in [
            ("rsync -a /home/alice/photos/ /mnt/backup/", "rsync -a /home/dir1/dir2/ /mnt/dir3/"),
            ("cp photos/x.jpg '/mnt/backup/x.jpg'", "cp dir2/dir4 '/mnt/dir3/dir4'"),
            ("--source=/home/alice", "--source=/home/dir1"),
            ("/usr/bin/rsync -j 8", "/usr/bin/rsync -j 8"),
            ("dd of=/dev/null bs=1M", "dd of=/dev/null bs=1M"),
            ("bob@nas.corp:/vol/a and nas.corp:/vol", "user2@host2:/dir5/dir6 and host2:/dir5"),
            (
                "s3://secret/2024/ http://store.corp:9000/b",
                "s3://dir7/dir8/ http://host3:9000/dir9",
            ),
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
            ("alice on buildbox: 125 MB/s, 1/2", "user1 on host1: 125 MB/s, 1/2"),
            ("on buildbox by alice", "on host1 by user1"),
        ] {
            assert_eq!(of.text(text), wanted);
        }
    }

    #[test]
    fn nothing_of_the_house_is_left() {
        let mut results = Results::default();
        results.header.machine.name = "db-primary".to_owned();
        let cell = crate::results::Cell {
            series: "rsync -a /srv/customers/ /mnt/x/".to_owned(),
            command: "rsync -a /srv/customers/ /mnt/x/".to_owned(),
            ..Default::default()
        };
        results.header.cells = vec![cell.clone(), cell];
        let run = crate::results::Run {
            problem: Some("cannot read '/srv/customers/list'".to_owned()),
            ..Default::default()
        };
        results.runs = vec![run];
        Redaction::new(&[], &[]).apply(&mut results);
        let text = format!("{results:?}");
        for name in ["db-primary", "customers", "/mnt/x"] {
            assert!(!text.contains(name), "{name}: {text}");
        }
        // The same name stays the same name: lines and charts still have one tool.
        assert_eq!(results.header.cells[0].series, results.header.cells[1].series);
        assert_eq!(results.runs[0].problem.as_deref(), Some("cannot read '/srv/dir1/dir3'"));
    }
}
