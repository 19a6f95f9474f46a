//! A place as tools see it: what `{dst}` is, how it is emptied, where what was written can be looked
//! at, and the environment that reaches it.

use crate::campaign::spec::{Condition, Place, Where};
use crate::campaign::tools::{Access, Fill, Values, line};
use crate::campaign::{Action, ServerPlan};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The region of servers of this program: any will do.
const REGION: &str = "us-east-1";

/// A place, ready to be written to.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// What `{dst}` is.
    pub dst: String,
    /// Where files are that were written there, as far as they can be looked at.
    pub seen: Option<PathBuf>,
    /// The folder that it is, for places that are one.
    pub folder: Option<PathBuf>,
    /// Bucket and prefix.
    pub bucket: Option<(String, String)>,
    /// Where, and who asks; no keys where these are the user's own.
    pub access: Option<Access>,
    /// The server that has to run for it.
    pub server: Option<ServerPlan>,
    /// What empties it.
    pub empty: Vec<Action>,
}

/// What a target is made from.
pub struct Making<'a> {
    /// The folder to work in.
    pub work: &'a Path,
    /// This program.
    pub own: &'a Path,
    /// The secret of embedded servers.
    pub secret_key: &'a str,
    /// Seed of ports: the campaign's name.
    pub campaign: &'a str,
    /// Whether a port can be listened on.
    pub is_free: &'a dyn Fn(u16) -> bool,
}

impl Making<'_> {
    /// A place under a condition. `taken` are ports that are spoken for.
    ///
    /// # Errors
    /// No port is free, a path cannot be made out.
    pub fn target(
        &self,
        place: &Place,
        condition: &Condition,
        taken: &mut Vec<u16>,
    ) -> Result<Target, String> {
        match &place.at {
            Where::Path(path) => {
                let folder = self.folder(path);
                Ok(Target {
                    name: place.name.clone(),
                    dst: folder.to_string_lossy().into_owned(),
                    seen: Some(folder.clone()),
                    empty: vec![Action::Empty(folder.clone())],
                    folder: Some(folder),
                    bucket: None,
                    access: None,
                    server: None,
                })
            }
            Where::Url { bucket, prefix, endpoint, region } => {
                let prefix = match prefix.is_empty() {
                    true => self.mark(),
                    false => format!("{prefix}/{}", self.mark()),
                };
                let dst = format!("s3://{bucket}/{prefix}");
                let region_name = region.clone().unwrap_or_else(|| REGION.to_owned());
                let access = Access {
                    endpoint: endpoint
                        .clone()
                        .unwrap_or_else(|| format!("https://s3.{region_name}.amazonaws.com")),
                    region: region_name,
                    ..Access::default()
                };
                let mut words = vec![self.own.to_string_lossy().into_owned()];
                words.extend(["rm", "-r", "-f"].map(str::to_owned));
                words.push(format!("--endpoint-url={}", access.endpoint));
                words.push(format!("--region={}", access.region));
                words.push(format!("{dst}/"));
                let empty = line(words.iter().map(String::as_str));
                Ok(Target {
                    name: place.name.clone(),
                    dst,
                    seen: None,
                    folder: None,
                    bucket: Some((bucket.clone(), prefix)),
                    access: Some(access),
                    server: None,
                    empty: vec![Action::Shell(empty)],
                })
            }
            Where::Server { .. } => self.served(place, condition, taken),
        }
    }

    /// The folder that is written to, and emptied before each run: of somebody else's folder only
    /// one of our own in it.
    pub fn folder(&self, path: &Path) -> PathBuf {
        match path.is_absolute() {
            true => path.join(self.mark()),
            false => self.work.join("places").join(path),
        }
    }

    /// What is ours in a place of somebody else.
    fn mark(&self) -> String {
        format!("hakobu-{}", self.campaign)
    }

    fn served(
        &self,
        place: &Place,
        condition: &Condition,
        taken: &mut Vec<u16>,
    ) -> Result<Target, String> {
        let Where::Server { null, latency, bandwidth_bytes_per_s, in_flight_max, bucket, prefix } =
            &place.at
        else {
            return Err(format!("'{}' is not served", place.name));
        };
        let latency = condition.latency.unwrap_or(*latency);
        let bandwidth_bytes_per_s = condition.bandwidth_bytes_per_s.or(*bandwidth_bytes_per_s);
        let label = format!(
            "{}-{}us-{}",
            place.name,
            latency.as_micros(),
            bandwidth_bytes_per_s.map_or("free".to_owned(), |rate| rate.to_string())
        );
        let port = port(&format!("{} {label}", self.campaign), taken, self.is_free)?;
        let folder = (!null).then(|| self.work.join("served").join(&label));
        let seen = folder.as_ref().map(|folder| folder.join(bucket).join(prefix));
        let access = Access {
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
        Ok(Target {
            name: place.name.clone(),
            dst: format!("s3://{bucket}/{prefix}"),
            empty: seen.iter().cloned().map(Action::Empty).collect(),
            seen,
            folder: None,
            bucket: Some((bucket.clone(), prefix.clone())),
            access: Some(access),
            server: Some(server),
        })
    }
}

impl Target {
    /// What commands may name of it.
    pub fn values(&self) -> Values {
        let mut values = Values::from([("dst".to_owned(), Fill::from(self.dst.clone()))]);
        if let Some((bucket, prefix)) = &self.bucket {
            values.insert("bucket".into(), Fill::from(bucket.clone()));
            values.insert("prefix".into(), Fill::from(prefix.clone()));
        }
        if let Some(access) = &self.access {
            values.insert("endpoint".into(), Fill::from(access.endpoint.clone()));
        }
        values
    }

    /// Variables of whatever writes there: keys only of servers of this program, which nobody else
    /// knows.
    pub fn environment(&self) -> BTreeMap<String, String> {
        match (&self.server, &self.access) {
            (Some(_), Some(access)) => access.environment(),
            (None, Some(access)) => access.place(),
            _ => BTreeMap::new(),
        }
    }
}

/// A port that follows from a text, so that a campaign that goes on has the same one, unless that
/// is in use.
fn port(text: &str, taken: &mut Vec<u16>, is_free: &dyn Fn(u16) -> bool) -> Result<u16, String> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 10_000;
    // FNV-1a (Fowler, Noll, Vo): any spread will do.
    let hash = text
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let start = (hash % u32::from(COUNT)) as u16;
    let mut all = (0..200).map(|step| FIRST + (start + step * 7) % COUNT);
    let port = all.find(|port| !taken.contains(port) && is_free(*port));
    let port = port.ok_or("no port of this machine is free for a server")?;
    taken.push(port);
    Ok(port)
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
        assert!(port("a", &mut Vec::new(), &|_| false).is_err());
        let odd = port("a", &mut Vec::new(), &|port| port % 2 == 1).unwrap();
        assert_eq!(odd % 2, 1);
    }
}
