//! A place as tools see it: the value of `{dst}`, how to empty it, where to check the result, and the
//! environment to reach it.

use crate::campaign::own_folder::CONTENT;
use crate::campaign::spec::place::{PlaceLocation, PlaceSpec};
use crate::campaign::spec::rules::MachineCondition;
use crate::campaign::template::{PlaceholderValue, PlaceholderValues, line, quoted};
use crate::campaign::tools::StoreAccess;
use crate::campaign::{RunAction, ServerPlan};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Region of embedded servers; they accept any.
const REGION: &str = "us-east-1";

/// A place, ready to be written to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanTarget {
    /// Name.
    pub name: String,
    /// Value of `{dst}`.
    pub dst: String,
    /// Folder in which the written files can be checked, if any.
    pub seen: Option<PathBuf>,
    /// The folder itself, if the place is one.
    pub folder: Option<PathBuf>,
    /// Bucket and prefix.
    pub bucket: Option<(String, String)>,
    /// Endpoint and keys; no keys if the user's own are used.
    pub access: Option<StoreAccess>,
    /// Server to start for it.
    pub server: Option<ServerPlan>,
    /// The campaign's own folder that contains everything.
    pub own: Option<PathBuf>,
    /// Shell command that fails if objects of others would be removed.
    pub guard: Option<String>,
    /// Actions that empty it.
    pub empty: Vec<RunAction>,
}

/// Inputs of a target.
pub struct TargetContext<'a> {
    /// Work folder.
    pub work: &'a Path,
    /// Path of this program.
    pub program: &'a Path,
    /// Secret key of embedded servers.
    pub secret_key: &'a str,
    /// Name of the campaign: seed of ports.
    pub campaign: &'a str,
    /// True if a port can be listened on.
    pub is_free: &'a dyn Fn(u16) -> bool,
}

impl TargetContext<'_> {
    /// Creates the target of a place under a condition. `taken` lists ports already used by the plan. `None` if no port
    /// is free.
    pub fn target(
        &self,
        place: &PlaceSpec,
        condition: &MachineCondition,
        taken: &mut Vec<u16>,
    ) -> Option<PlanTarget> {
        match &place.at {
            PlaceLocation::Path(path) => {
                let (own, folder) = (self.own(path), self.folder(path));
                Some(PlanTarget {
                    name: place.name.clone(),
                    dst: folder.to_string_lossy().into_owned(),
                    seen: Some(folder.clone()),
                    empty: vec![RunAction::Empty { own: own.clone(), below: CONTENT.into() }],
                    own: Some(own),
                    folder: Some(folder),
                    ..PlanTarget::default()
                })
            }
            PlaceLocation::Url { bucket, prefix, endpoint, region } => {
                let prefix = match prefix.is_empty() {
                    true => self.mark(),
                    false => format!("{prefix}/{}", self.mark()),
                };
                let dst = format!("s3://{bucket}/{prefix}");
                let region_name = region.clone().unwrap_or_else(|| REGION.to_owned());
                let access = StoreAccess {
                    endpoint: endpoint
                        .clone()
                        .unwrap_or_else(|| format!("https://s3.{region_name}.amazonaws.com")),
                    region: region_name,
                    ..StoreAccess::default()
                };
                let program = self.program.to_string_lossy();
                let reach = [
                    format!("--endpoint-url={}", access.endpoint),
                    format!("--region={}", access.region),
                ];
                let command = |words: &[&str], end: &str| {
                    let reach = reach.iter().map(String::as_str);
                    line(
                        [&*program]
                            .into_iter()
                            .chain(words.iter().copied())
                            .chain(reach)
                            .chain([end]),
                    )
                };
                let empty = command(&["rm", "-r", "-f"], &format!("{dst}/"));
                let mark = format!("{dst}.made");
                // Fails without permission to list, and then sets no mark.
                let guard = format!(
                    "{} >/dev/null 2>&1 || {{ there=$({}) && if test -n \"$there\"; then echo {} >&2; \
                     exit 1; fi && printf hakobu | {}; }}",
                    command(&["head"], &mark),
                    command(&["rm", "-r", "-f", "-n"], &format!("{dst}/")),
                    quoted(&format!(
                        "{dst}/ holds objects and was not created by hakobu: it is left alone"
                    )),
                    command(&["pipe"], &mark),
                );
                Some(PlanTarget {
                    name: place.name.clone(),
                    dst,
                    guard: Some(guard),
                    bucket: Some((bucket.clone(), prefix)),
                    access: Some(access),
                    empty: vec![RunAction::Shell(empty)],
                    ..PlanTarget::default()
                })
            }
            PlaceLocation::Server {
                null,
                latency,
                bandwidth_bytes_per_s,
                in_flight_max,
                bucket,
                prefix,
            } => {
                let latency = condition.latency.unwrap_or(*latency);
                let bandwidth_bytes_per_s =
                    condition.bandwidth_bytes_per_s.or(*bandwidth_bytes_per_s);
                let label = format!(
                    "{}-{}us-{}",
                    place.name,
                    latency.as_micros(),
                    bandwidth_bytes_per_s.map_or("free".to_owned(), |rate| rate.to_string())
                );
                let port = port(&format!("{} {label}", self.campaign), taken, self.is_free)?;
                let own = (!null).then(|| self.work.join("served").join(&label));
                let below = Path::new(CONTENT).join(bucket).join(prefix);
                let seen = own.as_ref().map(|own| own.join(&below));
                let folder = own.as_ref().map(|own| own.join(CONTENT));
                let access = StoreAccess {
                    endpoint: format!("http://127.0.0.1:{port}"),
                    access_key: "HAKOBUCAMPAIGN".into(),
                    secret_key: self.secret_key.to_owned(),
                    region: REGION.into(),
                };
                let server = ServerPlan {
                    label,
                    listen: format!("127.0.0.1:{port}"),
                    folder,
                    null: (0, 0),
                    latency,
                    bandwidth_bytes_per_s,
                    in_flight_max: *in_flight_max,
                    access_key: access.access_key.clone(),
                    secret_key: access.secret_key.clone(),
                    buckets: vec![bucket.clone()],
                };
                Some(PlanTarget {
                    name: place.name.clone(),
                    dst: format!("s3://{bucket}/{prefix}"),
                    empty: own
                        .iter()
                        .map(|own| RunAction::Empty { own: own.clone(), below: below.clone() })
                        .collect(),
                    own,
                    seen,
                    bucket: Some((bucket.clone(), prefix.clone())),
                    access: Some(access),
                    server: Some(server),
                    ..PlanTarget::default()
                })
            }
        }
    }

    /// Folder that is written to and emptied before each run.
    pub fn folder(&self, path: &Path) -> PathBuf {
        self.own(path).join(CONTENT)
    }

    /// The marked folder around it.
    fn own(&self, path: &Path) -> PathBuf {
        match path.is_absolute() {
            true => path.join(self.mark()),
            false => self.work.join("places").join(path),
        }
    }

    /// Name of the campaign's own part of a foreign place.
    fn mark(&self) -> String {
        format!("hakobu-{}", self.campaign)
    }
}

impl PlanTarget {
    /// Placeholders of the target in commands.
    pub fn values(&self) -> PlaceholderValues {
        let mut values =
            PlaceholderValues::from([("dst".to_owned(), PlaceholderValue::from(self.dst.clone()))]);
        if let Some((bucket, prefix)) = &self.bucket {
            values.insert("bucket".into(), PlaceholderValue::from(bucket.clone()));
            values.insert("prefix".into(), PlaceholderValue::from(prefix.clone()));
        }
        if let Some(access) = &self.access {
            values.insert("endpoint".into(), PlaceholderValue::from(access.endpoint.clone()));
        }
        values
    }

    /// Environment of commands that write there: keys only for embedded servers, whose keys are random.
    pub fn environment(&self) -> BTreeMap<String, String> {
        match (&self.server, &self.access) {
            (Some(_), Some(access)) => access.environment(),
            (None, Some(access)) => access.place(),
            _ => BTreeMap::new(),
        }
    }
}

/// Port derived from a text, so that a resumed campaign uses the same one unless it is in use.
fn port(text: &str, taken: &mut Vec<u16>, is_free: &dyn Fn(u16) -> bool) -> Option<u16> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 10_000;
    // FNV-1a (Fowler, Noll, Vo): any spread is good enough.
    let hash = text
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let start = (hash % u32::from(COUNT)) as u16;
    let mut all = (0..200).map(|step| FIRST + (start + step * 7) % COUNT);
    let port = all.find(|port| !taken.contains(port) && is_free(*port))?;
    taken.push(port);
    Some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_follow_from_the_text_and_are_never_given_twice() {
        let all = |_| true;
        let first = |text| port(text, &mut Vec::new(), &all).unwrap();
        assert_eq!(first("a"), first("a"));
        assert_ne!(first("a"), first("b"));
        let mut taken = Vec::new();
        for _ in 0..50 {
            port("a", &mut taken, &all).unwrap();
        }
        let mut sorted = taken.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 50);
        assert!(taken.iter().all(|port| (20_000..30_000).contains(port)));
        assert_eq!(port("a", &mut Vec::new(), &|_| false), None);
        let odd = port("a", &mut Vec::new(), &|port| port % 2 == 1).unwrap();
        assert_eq!(odd % 2, 1);
    }
}
