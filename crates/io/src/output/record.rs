//! Records of fio's JSON: their names are its keys, their order is its order.

use hakobu_core::machine::Machine;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A table whose keys keep their order.
pub(super) struct Named<V>(pub(super) Vec<(String, V)>);

impl<V: Serialize> Serialize for Named<V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<V: Copy> Named<V> {
    pub(super) fn of<const N: usize>(names: [&str; N], values: [V; N]) -> Named<V> {
        Named(names.into_iter().map(str::to_owned).zip(values).collect())
    }
}

#[derive(Serialize)]
pub(super) struct Document<'a> {
    #[serde(rename = "fio version")]
    pub(super) version: &'a str,
    pub(super) timestamp: u64,
    pub(super) timestamp_ms: u64,
    pub(super) time: &'a str,
    #[serde(rename = "global options", skip_serializing_if = "Option::is_none")]
    pub(super) globals: Option<Named<&'a str>>,
    pub(super) jobs: Vec<Entry<'a>>,
    pub(super) disk_util: Vec<Util<'a>>,
    pub(super) hakobu: Own<'a>,
}

/// Fields that fio does not have.
#[derive(Serialize)]
pub(super) struct Own<'a> {
    pub(super) version: &'a str,
    pub(super) stopped: bool,
    pub(super) warnings: &'a [String],
    pub(super) errors: Vec<Wrong<'a>>,
    pub(super) engines: Vec<Engine<'a>>,
    pub(super) machine: &'a Machine,
}

#[derive(Serialize)]
pub(super) struct Wrong<'a> {
    pub(super) jobname: &'a str,
    pub(super) clone: u32,
    pub(super) errno: i32,
    pub(super) message: &'a str,
}

/// Settings that a job really ran with.
#[derive(Serialize)]
pub(super) struct Engine<'a> {
    pub(super) jobname: &'a str,
    pub(super) ioengine: &'static str,
    pub(super) iodepth: u32,
    pub(super) numjobs: u32,
    pub(super) verified: u64,
    pub(super) verify_errors: u64,
}

#[derive(Serialize)]
pub(super) struct Entry<'a> {
    pub(super) jobname: &'a str,
    pub(super) groupid: usize,
    pub(super) error: i32,
    pub(super) eta: u64,
    pub(super) elapsed: u64,
    #[serde(rename = "job options")]
    pub(super) options: Named<&'a str>,
    pub(super) read: Side,
    pub(super) write: Side,
    pub(super) trim: Side,
    pub(super) sync: Flush,
    pub(super) job_runtime: u64,
    pub(super) usr_cpu: f64,
    pub(super) sys_cpu: f64,
    pub(super) ctx: u64,
    pub(super) majf: u64,
    pub(super) minf: u64,
    pub(super) iodepth_level: Named<f64>,
    pub(super) iodepth_submit: Named<f64>,
    pub(super) iodepth_complete: Named<f64>,
    pub(super) latency_ns: Named<f64>,
    pub(super) latency_us: Named<f64>,
    pub(super) latency_ms: Named<f64>,
    pub(super) latency_depth: u32,
    pub(super) latency_target: u64,
    pub(super) latency_percentile: f64,
    pub(super) latency_window: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_err: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_error: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) steadystate: Option<SteadyState>,
}

/// Names are fio's.
#[derive(Serialize)]
pub(super) struct SteadyState {
    pub(super) ss: String,
    pub(super) duration: u32,
    pub(super) attained: u8,
    pub(super) criterion: String,
    pub(super) mean: f64,
}

#[derive(Serialize)]
pub(super) struct Side {
    pub(super) io_bytes: u64,
    pub(super) io_kbytes: u64,
    pub(super) bw_bytes: u64,
    pub(super) bw: u64,
    pub(super) iops: f64,
    pub(super) runtime: u64,
    pub(super) total_ios: u64,
    pub(super) short_ios: u64,
    pub(super) drop_ios: u64,
    pub(super) slat_ns: Latency,
    pub(super) clat_ns: Latency,
    pub(super) lat_ns: Latency,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) prios: Vec<Priority>,
    pub(super) bw_min: u64,
    pub(super) bw_max: u64,
    pub(super) bw_agg: f64,
    pub(super) bw_mean: f64,
    pub(super) bw_dev: f64,
    pub(super) bw_samples: u64,
    pub(super) iops_min: u64,
    pub(super) iops_max: u64,
    pub(super) iops_mean: f64,
    pub(super) iops_stddev: f64,
    pub(super) iops_samples: u64,
}

/// Latencies of the blocks of one priority, where there are several.
#[derive(Serialize)]
pub(super) struct Priority {
    pub(super) prioclass: u8,
    pub(super) prio: u8,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) priohint: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clat_ns: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lat_ns: Option<Latency>,
}

fn is_zero(hint: &u16) -> bool {
    *hint == 0
}

#[derive(Serialize)]
pub(super) struct Flush {
    pub(super) total_ios: u64,
    pub(super) lat_ns: Latency,
}

#[derive(Serialize)]
pub(super) struct Latency {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) mean: f64,
    pub(super) stddev: f64,
    #[serde(rename = "N")]
    pub(super) count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) percentile: Option<Named<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bins: Option<Named<u64>>,
}

#[derive(Serialize)]
pub(super) struct Util<'a> {
    pub(super) name: &'a str,
    pub(super) read_ios: u64,
    pub(super) write_ios: u64,
    pub(super) read_merges: u64,
    pub(super) write_merges: u64,
    pub(super) read_ticks: u64,
    pub(super) write_ticks: u64,
    pub(super) in_queue: u64,
    pub(super) util: f64,
}
