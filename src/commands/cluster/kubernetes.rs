//! Kubernetes: an Indexed Job of workers and a Job that collects, as manifests.

use super::order::Order;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The manifests of a run, as a List in JSON, which `kubectl apply -f -` reads as it reads YAML.
///
/// # Errors
/// Missing: the image, or a volume for a run folder that is not in S3.
pub fn manifests(order: &Order, image: Option<&str>, volumes: &[String]) -> Result<String, String> {
    use serde_json::json;
    let image = image.ok_or("--k8s needs the image with hakobu in it: --image IMAGE")?;
    let in_s3 = order.run.as_bytes().starts_with(b"s3://");
    if volumes.is_empty() && !in_s3 {
        return Err("--k8s needs a volume with the run folder (--volume CLAIM:PATH), or one in S3"
            .to_owned());
    }
    let mut mounts = Vec::new();
    let mut claims = Vec::new();
    for (number, volume) in volumes.iter().enumerate() {
        let split = volume.split_once(':').filter(|(_, path)| path.starts_with('/'));
        let (claim, path) = split.ok_or_else(|| format!("--volume={volume} is not CLAIM:PATH"))?;
        let name = format!("volume-{number}");
        mounts.push(json!({"name": name, "mountPath": path}));
        claims.push(json!({"name": name, "persistentVolumeClaim": {"claimName": claim}}));
    }
    let words = |mut words: Vec<OsString>| -> Vec<String> {
        // The image has its own.
        if let Some(program) = words.first_mut() {
            *program = "hakobu".into();
        }
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    };
    let container = |name: &str, command: Vec<String>| {
        json!({
            "name": name,
            "image": image,
            "command": command,
            "volumeMounts": mounts,
            "env": [{"name": "HOME", "value": "/tmp"}],
        })
    };
    let id = order.run.to_string_lossy();
    let last = id.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let fine = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = last.chars().map(fine).take(40).collect();
    let name = match order.verifies {
        true => format!("verify-{}", name.trim_matches('-')),
        false => name.trim_matches('-').to_owned(),
    };
    let workers = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": format!("hakobu-work-{name}")},
        "spec": {
            "completionMode": "Indexed",
            "completions": order.nodes,
            "parallelism": order.nodes,
            "backoffLimitPerIndex": 16,
            "podFailurePolicy": {"rules": [
                // The node was drained: no failure of the worker.
                {"action": "Ignore",
                 "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "Count",
                 "onExitCodes": {"containerName": "work", "operator": "In", "values": [75]}},
                {"action": "FailIndex",
                 "onExitCodes": {"containerName": "work", "operator": "In", "values": [65]}},
            ]},
            "template": {"spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 60,
                "containers": [container("work", words(order.work()))],
                "volumes": claims,
            }},
        },
    });
    let collect = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": format!("hakobu-collect-{name}")},
        "spec": {
            "backoffLimit": 4,
            // It waits for the workers itself, so it is created when they have ended.
            "suspend": true,
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [container("collect", words(order.collect()))],
                "volumes": claims,
            }},
        },
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [workers, collect]});
    let text = serde_json::to_string_pretty(&list).map_err(|error| error.to_string())?;
    Ok(format!(
        "# kubectl apply -f - starts the workers. When their Job has ended:\n\
         # kubectl patch job hakobu-collect-{name} -p '{{\"spec\":{{\"suspend\":false}}}}'\n\
         # These manifests fit the API's schema; they were not tried on a cluster.\n{text}\n"
    ))
}
