//! Extracts metrics from the standard output of a run: fio's JSON, and the summary line of a transfer with
//! `--json`.

use crate::campaign::run::LEFT_OUT;
use crate::campaign::tools::OutputFormat;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Result of an extraction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExtractedMetrics {
    /// Metrics by name.
    pub metrics: BTreeMap<String, f64>,
    /// Verdict of a transfer.
    pub verdict: Option<Value>,
    /// The document that they were extracted from, if other programs can parse it.
    pub document: Option<String>,
}

/// Why an output has no metrics: what follows the name of the command in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExtractError {
    /// It is not that of a transfer.
    NoSummary,
    /// It is not that of fio.
    NoJson,
    /// Its JSON is malformed.
    BadJson,
    /// Its JSON has no jobs.
    NoJobs,
    /// A job of fio failed with this errno.
    FailedJob(i64),
}

impl fmt::Display for ExtractError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ExtractError::NoSummary => "gave no summary line on standard output",
            ExtractError::NoJson => "gave no JSON on standard output",
            ExtractError::BadJson => "gave JSON on standard output that cannot be read",
            ExtractError::NoJobs => "gave JSON without jobs of fio",
            ExtractError::FailedJob(code) => {
                return write!(out, "says that a job failed with error {code}");
            }
        })
    }
}

error_type!(ExtractError: ; );

/// Extracts metrics from an output.
pub(crate) fn extract(how: OutputFormat, output: &[u8]) -> Result<ExtractedMetrics, ExtractError> {
    let text = String::from_utf8_lossy(output);
    match how {
        OutputFormat::Nothing => Ok(ExtractedMetrics::default()),
        OutputFormat::Fio => fio(&text),
        OutputFormat::Own => own(&text),
        OutputFormat::Joblog => Ok(joblog(&text)),
    }
}

/// Columns of a job log (parallel(1), "--joblog"), separated by tabs; the fourth is the time of a job in
/// seconds.
const JOBLOG: &str = "Seq\tHost\tStarttime\tJobRuntime\t";

/// Sums the times of a job log, which may be interleaved with output of jobs. Empty if there is no log, or if
/// part of the output was dropped.
fn joblog(text: &str) -> ExtractedMetrics {
    if !text.contains(JOBLOG) || text.contains(LEFT_OUT) {
        return ExtractedMetrics::default();
    }
    let time = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let is_row = columns.len() >= 9 && columns[0].parse::<u64>().is_ok();
        columns.get(3).filter(|_| is_row)?.trim().parse::<f64>().ok()
    };
    let items_s: f64 = text.lines().filter_map(time).filter(|time| time.is_finite()).sum();
    ExtractedMetrics {
        metrics: BTreeMap::from([("items_s".to_owned(), items_s)]),
        ..ExtractedMetrics::default()
    }
}

/// Uses the last line that is a summary.
fn own(text: &str) -> Result<ExtractedMetrics, ExtractError> {
    let summary = text.lines().rev().find_map(|line| {
        let value: Value = serde_json::from_str(line).ok()?;
        (value.get("event")? == "summary").then_some(value)
    });
    let summary = summary.ok_or(ExtractError::NoSummary)?;
    let mut metrics = BTreeMap::new();
    for name in ["bytes", "files", "jobs"] {
        if let Some(number) = summary.get(name).and_then(Value::as_f64) {
            metrics.insert(name.to_owned(), number);
        }
    }
    let verdict = summary.get("verdict").filter(|verdict| !verdict.is_null()).cloned();
    Ok(ExtractedMetrics { metrics, verdict, document: None })
}

/// Parses fio's JSON; warnings may precede it.
fn fio(text: &str) -> Result<ExtractedMetrics, ExtractError> {
    let start = text.find('{').ok_or(ExtractError::NoJson)?;
    let text = &text[start..];
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let document = documents.next().and_then(Result::ok);
    let document = document.ok_or(ExtractError::BadJson)?;
    let jobs = document.get("jobs").and_then(Value::as_array).filter(|jobs| !jobs.is_empty());
    let jobs = jobs.ok_or(ExtractError::NoJobs)?;
    let output = text.get(..documents.byte_offset()).map(str::to_owned);
    Ok(ExtractedMetrics { metrics: fio_jobs(jobs)?, verdict: None, document: output })
}

/// Percentiles to extract: the metric, and fio's name for it.
const PERCENTILES: [(&str, &str); 3] =
    [("clat_p50_ns", "50.000000"), ("clat_p99_ns", "99.000000"), ("clat_p999_ns", "99.900000")];

/// Mean weighted by operations.
#[derive(Default)]
struct WeightedMean {
    sum: f64,
    of: f64,
}

impl WeightedMean {
    fn add(&mut self, mean: Option<f64>, operations: f64) {
        if let Some(mean) = mean {
            self.sum += mean * operations;
            self.of += operations;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.of > 0.0).then(|| self.sum / self.of)
    }
}

/// Metrics over all jobs, reads and writes: operations and bytes per second are added, mean latencies are
/// weighted by operations; of percentiles the highest is taken, which is an upper bound.
pub(crate) fn fio_jobs(jobs: &[Value]) -> Result<BTreeMap<String, f64>, ExtractError> {
    let (mut iops, mut bytes_per_s) = (0.0, 0.0);
    let (mut clat, mut lat) = (WeightedMean::default(), WeightedMean::default());
    let mut metrics: BTreeMap<String, f64> = BTreeMap::new();
    for job in jobs {
        if let Some(code) = job.get("error").and_then(Value::as_i64).filter(|code| *code != 0) {
            return Err(ExtractError::FailedJob(code));
        }
        for way in ["read", "write"] {
            let Some(part) = job.get(way) else { continue };
            let number = |pointer: &str| part.pointer(pointer).and_then(Value::as_f64);
            iops += number("/iops").unwrap_or(0.0);
            // Up to version 2 in KiB only.
            let kib = number("/bw").map(|kib| kib * 1024.0);
            bytes_per_s += number("/bw_bytes").or(kib).unwrap_or(0.0);
            let operations = number("/total_ios").or_else(|| number("/iops")).unwrap_or(0.0);
            if operations <= 0.0 {
                continue;
            }
            // Version 2 has microseconds.
            let latency = |kind: &str, what: &str| {
                number(&format!("/{kind}_ns/{what}"))
                    .or(number(&format!("/{kind}/{what}")).map(|us| us * 1e3))
            };
            clat.add(latency("clat", "mean"), operations);
            lat.add(latency("lat", "mean"), operations);
            for (name, percent) in PERCENTILES {
                if let Some(here) = latency("clat", &format!("percentile/{percent}")) {
                    let highest = metrics.entry(name.to_owned()).or_insert(here);
                    *highest = highest.max(here);
                }
            }
        }
    }
    metrics.insert("iops".to_owned(), iops);
    metrics.insert("bw_bytes_per_s".to_owned(), bytes_per_s);
    metrics.extend(clat.mean().map(|mean| ("clat_mean_ns".to_owned(), mean)));
    // fio reports unmeasured values as zero.
    metrics
        .extend(lat.mean().filter(|mean| *mean > 0.0).map(|mean| ("lat_mean_ns".to_owned(), mean)));
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fio_of_both_ages() {
        let new = r#"fio: this platform does not support ...
{"fio version":"fio-3.36","jobs":[
 {"error":0,"read":{"iops":100.0,"bw_bytes":409600,"total_ios":300,
   "clat_ns":{"mean":1000.0,"percentile":{"50.000000":900,"99.000000":5000}},
   "lat_ns":{"mean":1100.0}},
  "write":{"iops":50.0,"bw_bytes":204800,"total_ios":100,
   "clat_ns":{"mean":3000.0,"percentile":{"50.000000":2900,"99.000000":4000}},
   "lat_ns":{"mean":3100.0}}},
 {"error":0,"read":{"iops":1.0,"bw_bytes":4096,"total_ios":0,"clat_ns":{"mean":0.0}},"write":{}}]}
and more"#;
        let found = extract(OutputFormat::Fio, new.as_bytes()).unwrap().metrics;
        assert_eq!(found["iops"], 151.0);
        assert_eq!(found["bw_bytes_per_s"], 618_496.0);
        assert_eq!((found["clat_mean_ns"], found["clat_p99_ns"]), (1500.0, 5000.0));
        assert_eq!((found["lat_mean_ns"], found["clat_p50_ns"]), (1600.0, 2900.0));
        assert_eq!(found.get("clat_p999_ns"), None);
        let old =
            r#"{"jobs":[{"read":{"iops":10,"bw":4,"clat":{"mean":2.5}},"write":{"iops":0}}]}"#;
        let found = extract(OutputFormat::Fio, old.as_bytes()).unwrap().metrics;
        assert_eq!((found["bw_bytes_per_s"], found["clat_mean_ns"]), (4096.0, 2500.0));
        assert_eq!(found.get("clat_p99_ns"), None);
        // Only the JSON document is kept, so that other programs can parse it.
        let text = format!("note: a word\n{old}\nmore\n");
        let document = extract(OutputFormat::Fio, text.as_bytes()).unwrap().document;
        assert_eq!(document.as_deref(), Some(old));
    }

    #[test]
    fn own_summaries() {
        let text = "{\"event\":\"item\"}\n{\"event\":\"summary\",\"files\":3,\"bytes\":12,\"jobs\":4,\
            \"verdict\":{\"limit\":\"cpu\"}}\nnoise\n";
        let found = extract(OutputFormat::Own, text.as_bytes()).unwrap();
        assert_eq!((found.metrics["files"], found.metrics["bytes"]), (3.0, 12.0));
        assert_eq!(found.verdict.unwrap()["limit"], "cpu");
    }

    #[test]
    fn what_is_not_there_is_said() {
        for (how, text, said) in [
            (OutputFormat::Own, "", "no summary line"),
            (OutputFormat::Fio, "", "no JSON"),
            (OutputFormat::Fio, "{\"jobs\":[", "cannot be read"),
            (OutputFormat::Fio, "{}", "without jobs"),
            (OutputFormat::Fio, "{\"jobs\":[{\"error\":5}]}", "failed with error 5"),
        ] {
            let why = extract(how, text.as_bytes()).unwrap_err().to_string();
            assert!(why.contains(said), "{why}");
        }
        assert_eq!(extract(OutputFormat::Nothing, b"x"), Ok(ExtractedMetrics::default()));
    }

    #[test]
    fn times_of_a_job_log_are_added() {
        let head = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
        let text = format!(
            "{head}x1\n1\t:\t1795388910.945\t     0.207\t0\t3\t0\t0\trsync a\nsent 3\tbytes\n\
             2\t:\t1795388910.949\t     1.500\t0\t3\t0\t0\trsync b\n"
        );
        let found = extract(OutputFormat::Joblog, text.as_bytes()).unwrap().metrics;
        assert!((found["items_s"] - 1.707).abs() < 1e-9, "{found:?}");
        // A missing or incomplete log gives nothing.
        for text in ["", "1\t:\t2\t3\t0\t3\t0\t0\tx\n", &format!("{text}\n[77{LEFT_OUT}\n")] {
            assert_eq!(
                extract(OutputFormat::Joblog, text.as_bytes()),
                Ok(ExtractedMetrics::default()),
                "{text}"
            );
        }
    }
}
