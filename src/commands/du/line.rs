//! Sums of paths and of objects, and their lines.

use super::options::Plan;
use crate::commands::tool;
use crate::show::escape::Escape;
use crate::show::json::{self, Paths};
use crate::show::output::Output;
use crate::show::screen;
use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes, and of what is in S3 objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub bytes: u64,
    pub objects: u64,
}

impl Sum {
    pub fn add(&mut self, other: Sum) {
        self.bytes += other.bytes;
        self.objects += other.objects;
    }
}

/// Sums by storage class; `None` if they are not grouped, and for delete markers, which have none.
#[derive(Debug, Default)]
pub struct Sums(BTreeMap<Option<String>, Sum>);

impl Sums {
    /// Adds a sum to a class.
    pub fn add(&mut self, class: Option<&str>, sum: Sum) {
        match self.0.iter_mut().find(|(known, _)| known.as_deref() == class) {
            Some((_, of)) => of.add(sum),
            None => drop(self.0.insert(class.map(str::to_owned), sum)),
        }
    }

    /// Adds other sums class by class.
    pub fn add_all(&mut self, others: &Sums) {
        for (class, sum) in &others.0 {
            self.add(class.as_deref(), *sum);
        }
    }

    /// Writes a line for each class; one of 0 bytes if there is none.
    pub fn write(&self, lines: &Lines<'_>, name: Option<&[u8]>) {
        for (class, sum) in &self.0 {
            lines.write(name, class.as_deref(), *sum);
        }
        if self.0.is_empty() {
            lines.write(name, None, Sum::default());
        }
    }
}

/// The lines on standard output.
pub struct Lines<'a> {
    /// The plan.
    pub plan: &'a Plan,
    out: &'a Output,
    escape: Option<Escape>,
}

impl<'a> Lines<'a> {
    /// Makes the lines of a plan.
    pub fn new(plan: &'a Plan, out: &'a Output) -> Lines<'a> {
        let escape = (out.is_terminal() && !plan.nul).then(Escape::of_locale);
        Lines { plan, out, escape }
    }

    /// Writes the line of a name, or without one that of the total.
    pub fn write(&self, name: Option<&[u8]>, class: Option<&str>, sum: Sum) {
        let line = self.line(name, class, sum);
        screen::beside(|| self.out.write(&line));
    }

    /// Returns the line.
    pub(super) fn line(
        &self,
        name: Option<&[u8]>,
        storage_class: Option<&str>,
        sum: Sum,
    ) -> Vec<u8> {
        #[derive(Serialize)]
        struct Line<'a> {
            event: &'static str,
            #[serde(flatten)]
            paths: Paths<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            storage_class: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            bytes: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            inodes: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            objects: Option<u64>,
        }
        let (plan, Sum { bytes, objects }) = (self.plan, sum);
        if plan.json {
            let event = if name.is_some() { "usage" } else { "total" };
            let paths = Paths(&[("path", name.map(tool::path))]);
            let objects = (!plan.places.is_empty()).then_some(objects);
            let counts = plan.options.inodes;
            let (inodes, bytes) = (counts.then_some(bytes), (!counts).then_some(bytes));
            return json::line(&Line { event, paths, storage_class, bytes, inodes, objects });
        }
        let number = match plan.options.inodes {
            true => plan.unit.count(bytes),
            false => plan.unit.size(bytes),
        };
        let mut text = number.into_bytes();
        text.push(b'\t');
        if plan.counts {
            text.extend_from_slice(format!("{objects}\t").as_bytes());
        }
        let mut push = |part: &[u8]| match self.escape {
            Some(escape) => escape.push(part, &mut text),
            None => text.extend_from_slice(part),
        };
        push(name.unwrap_or(b"total"));
        if let Some(class) = storage_class {
            push(format!(" [{class}]").as_bytes());
        }
        text.push(if plan.nul { 0 } else { b'\n' });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::du::objects::tests::planned;

    #[test]
    fn lines() {
        let out = Output::stdout();
        let sum = Sum { bytes: 1500, objects: 2 };
        let text = |options: &str, class: Option<&str>| {
            let plan = planned(options).unwrap();
            String::from_utf8_lossy(&Lines::new(&plan, &out).line(Some(b"x"), class, sum))
                .into_owned()
        };
        for (options, expected) in [
            ("s3://abc", "2\tx\n"),
            ("-h s3://abc", "1.5K\tx\n"),
            ("-b --objects s3://abc", "1500\t2\tx\n"),
            ("-b0 s3://abc", "1500\tx\0"),
            (
                "--json s3://abc",
                "{\"event\":\"usage\",\"path\":\"x\",\"bytes\":1500,\"objects\":2}\n",
            ),
        ] {
            assert_eq!(text(options, None), expected, "{options}");
        }
        assert_eq!(text("-b --group s3://abc", Some("GLACIER")), "1500\tx [GLACIER]\n");
        let json = text("--json --group s3://abc", Some("GLACIER"));
        assert!(json.contains("\"storage_class\":\"GLACIER\",\"bytes\":1500"), "{json}");
    }

    #[test]
    fn classes_are_summed() {
        let one = Sum { bytes: 5, objects: 1 };
        let (mut sums, mut all) = (Sums::default(), Sums::default());
        for class in [Some("GLACIER"), None, Some("STANDARD"), Some("GLACIER")] {
            sums.add(class, one);
        }
        all.add_all(&sums);
        all.add_all(&sums);
        let found: Vec<_> =
            all.0.iter().map(|(class, sum)| (class.as_deref(), sum.bytes)).collect();
        assert_eq!(found, [(None, 10), (Some("GLACIER"), 20), (Some("STANDARD"), 10)]);
    }
}
