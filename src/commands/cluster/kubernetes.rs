//! The engine Kubernetes: manifests of an Indexed Job with the workers and of a Job that collects. They run with little
//! privilege, spread over nodes and go away by themselves. Whatever else a cluster asks for is merged into their pods from
//! a template, by the rules of kubectl's strategic merge.

use super::submit::{EngineError, WorkerOrder};
use super::{AGAIN, ClusterArgs, NEVER, VERSION};
use crate::names;
use crate::objects::is_s3;
use hakobu_cluster::plan::ClusterPlan;
use hakobu_core::error::quoted;
use hakobu_sys::process;
use hakobu_transfer::journal;
use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Name of the container with the program, which templates refer to.
const CONTAINER: &str = "hakobu";
/// Names of Jobs are at most 63 characters, and their pods' host names have an index behind them.
const SLUG_CHARS_MAX: usize = 20;
/// Time after which a Job that has ended is removed, with its logs.
const TTL_S: u64 = 86_400;
/// Restarts of one worker.
const RESTARTS_MAX: u32 = 16;
/// The user of a pod that touches no volume, so that it need not be root: the number of `nobody` in many images.
const NOBODY: u32 = 65_532;
/// What root needs for `-a`; all of it is allowed by the Pod Security Standard "baseline".
const ROOT_CAPABILITIES: [&str; 6] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "MKNOD", "SETFCAP"];

/// Manifests of one order.
pub struct Manifests {
    /// A `List` in JSON, which `kubectl apply -f -` reads as it reads YAML.
    pub text: String,
    /// Name of the Job with the workers.
    pub workers: String,
    /// Lines for the user, which are no part of the manifests.
    pub notes: Vec<String>,
    namespace: Option<String>,
}

impl Manifests {
    /// Makes the manifests of an order.
    ///
    /// # Errors
    /// There is no image; the run folder is in no volume; a word for kubectl that manifests cannot hold; a template that
    /// cannot be used.
    pub fn of(
        order: &WorkerOrder,
        plan: &ClusterPlan,
        args: &ClusterArgs,
    ) -> Result<Manifests, EngineError> {
        let template = args.pod_template.as_deref().map(PodTemplate::read).transpose();
        let user = (process::euid(), process::egid());
        template
            .and_then(|template| {
                let template = template.unwrap_or_default();
                make(order, plan, args.image.as_deref(), &args.volumes, template, user)
            })
            .map_err(EngineError::not_started)
    }

    /// Commands that show what became of the workers.
    pub fn look(&self) -> String {
        let (namespace, workers) = (in_namespace(self.namespace.as_deref()), &self.workers);
        format!("kubectl{namespace} describe job {workers}; kubectl{namespace} logs job/{workers}")
    }
}

fn in_namespace(namespace: Option<&str>) -> String {
    namespace.map(|namespace| format!(" --namespace={namespace}")).unwrap_or_default()
}

fn make(
    order: &WorkerOrder,
    plan: &ClusterPlan,
    image: Option<&str>,
    volumes: &[String],
    template: PodTemplate,
    user: (u32, u32),
) -> Result<Manifests, String> {
    let namespace = namespace(&order.rest)?.or_else(|| template.namespace.clone());
    let instance = instance(&order.run, &plan.id);
    let names = match order.verifies {
        false => ["work", "collect"],
        true => ["verify", "verdict"],
    };
    let name = |component: &str| format!("hakobu-{component}-{instance}");
    let labels = |component: &str| {
        json!({
            "app.kubernetes.io/name": "hakobu",
            "app.kubernetes.io/instance": instance,
            "app.kubernetes.io/component": component,
            "app.kubernetes.io/version": VERSION,
        })
    };
    let pod = |component: &str, words: Vec<OsString>| -> Result<Value, String> {
        let command = command(words)?;
        let mut pod = pod(labels(component), &command, volumes, user)?;
        merge_map(&mut pod, &template.patch)?;
        let pod = Value::Object(pod);
        let container = container(&pod)?;
        if container.get("command") != Some(&json!(command)) || container.get("args").is_some() {
            let why =
                "container hakobu of the pod template has a command: it is that of the worker";
            return Err(why.to_owned());
        }
        if pod.pointer("/spec/restartPolicy") != Some(&json!("Never")) {
            return Err(
                "restartPolicy of the pod template has to be Never, for podFailurePolicy".into()
            );
        }
        let mut pod = pod;
        let place = containers(&mut pod).and_then(|all| all.iter_mut().find(|one| is_main(one)));
        if let (Some(image), Some(container)) = (image, place) {
            container["image"] = json!(image);
        }
        match self::container(&pod)?.get("image") {
            Some(_) => Ok(pod),
            None => Err("--k8s needs the image with hakobu in it: --image IMAGE".into()),
        }
    };
    let metadata = |component: &str| {
        let mut metadata = json!({"name": name(component), "labels": labels(component)});
        if let Some(namespace) = &namespace {
            metadata["namespace"] = json!(namespace);
        }
        metadata
    };
    let exits = |action: &str, code: u8| {
        json!({
            "action": action,
            "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": [code]},
            // Version 1.28 requires the field in every rule.
            "onPodConditions": [],
        })
    };
    let [work, collect] = names;
    let work_pod = pod(work, order.work())?;
    let mut notes = check_places(order, plan, &work_pod)?;
    let workers = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(work),
        "spec": {
            "completionMode": "Indexed",
            "completions": order.nodes,
            "parallelism": order.nodes,
            "backoffLimitPerIndex": RESTARTS_MAX,
            "ttlSecondsAfterFinished": TTL_S,
            "podFailurePolicy": {"rules": [
                // The node was drained: no failure of the worker.
                {"action": "Ignore",
                 "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                exits("Count", AGAIN),
                exits("FailIndex", NEVER),
            ]},
            "template": work_pod,
        },
    });
    let collector = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(collect),
        "spec": {
            "backoffLimit": 4,
            "ttlSecondsAfterFinished": TTL_S,
            // It waits for workers that are at work, not for pods that are not scheduled yet.
            "suspend": true,
            "template": pod(collect, order.collect())?,
        },
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [workers, collector]});
    let text = serde_json::to_string_pretty(&list).map_err(|error| error.to_string())?;
    let kubectl = format!("kubectl{}", in_namespace(namespace.as_deref()));
    notes.push(format!(
        "apply the manifests with kubectl apply -f FILE; when {} has ended: {kubectl} patch job {} --type=merge -p \
         '{{\"spec\":{{\"suspend\":false}}}}'",
        name(work),
        name(collect)
    ));
    Ok(Manifests { text: format!("{text}\n"), workers: name(work), notes, namespace })
}

/// A name for all objects of a run: a part of its folder's name, so that a reader knows it again, and the run's own.
fn instance(run: &OsStr, id: &str) -> String {
    let run = run.to_string_lossy();
    let last = run.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let plain = |text: &str, most: usize| {
        let words =
            text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let joined = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
        joined.chars().take(most).collect::<String>().trim_matches('-').to_owned()
    };
    let parts = [plain(last, SLUG_CHARS_MAX), plain(id, SLUG_CHARS_MAX)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// The namespace, from the words for kubectl.
fn namespace(words: &[OsString]) -> Result<Option<String>, String> {
    let mut found = None;
    let mut words = words.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        let value = match &*word {
            "--namespace" | "-n" => words.next().map(|value| value.into_owned()),
            word => {
                let long = word.strip_prefix("--namespace=");
                let short = || word.strip_prefix("-n").filter(|_| !word.starts_with("--"));
                let value = long.or_else(short).ok_or_else(|| {
                    format!(
                        "{word} cannot be put into manifests\nhint: --namespace can; what kubectl does with them is for \
                         kubectl apply, what pods have for --pod-template FILE"
                    )
                })?;
                Some(value.trim_start_matches('=').to_owned())
            }
        };
        let value = value.unwrap_or_default();
        if !is_label(&value) {
            return Err(format!("--namespace={value} is no name of a namespace"));
        }
        found = Some(value);
    }
    Ok(found)
}

/// Whether a text is a label as RFC 1123 has it.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The words of a command in a pod; the image has a program of its own.
fn command(mut words: Vec<OsString>) -> Result<Vec<String>, String> {
    if let Some(program) = words.first_mut() {
        *program = "hakobu".into();
    }
    let text = |word: OsString| {
        word.into_string()
            .map_err(|word| format!("{} is not UTF-8, as manifests are", quoted(word)))
    };
    words.into_iter().map(text).collect()
}

/// The pod of a command before the user's template.
fn pod(
    labels: Value,
    command: &[String],
    volumes: &[String],
    (uid, gid): (u32, u32),
) -> Result<Map<String, Value>, String> {
    let mut mounts = vec![json!({"name": "tmp", "mountPath": "/tmp"})];
    let mut all = vec![json!({"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}})];
    for (number, volume) in volumes.iter().enumerate() {
        let split = volume.split_once(':');
        let split = split.filter(|(claim, path)| !claim.is_empty() && path.starts_with('/'));
        let (claim, path) = split.ok_or_else(|| format!("--volume={volume} is not CLAIM:PATH"))?;
        let name = format!("volume-{number}");
        if Path::new(path) == Path::new("/tmp") {
            (mounts, all) = (mounts.split_off(1), all.split_off(1));
        }
        mounts.push(json!({"name": name, "mountPath": path}));
        all.push(json!({"name": name, "persistentVolumeClaim": {"claimName": claim}}));
    }
    // The run folder belongs to the user that planned it, and files get owners only from root. No fsGroup: it would change
    // group and mode of everything in a volume, the run folder and the data included.
    let (user, added) = match (uid, volumes.is_empty()) {
        (0, true) => {
            (json!({"runAsNonRoot": true, "runAsUser": NOBODY, "runAsGroup": NOBODY}), None)
        }
        (0, false) => (json!({"runAsUser": 0, "runAsGroup": gid}), Some(ROOT_CAPABILITIES)),
        (uid, _) => (json!({"runAsNonRoot": true, "runAsUser": uid, "runAsGroup": gid}), None),
    };
    let mut security = user;
    security["seccompProfile"] = json!({"type": "RuntimeDefault"});
    let mut capabilities = json!({"drop": ["ALL"]});
    if let Some(added) = added {
        capabilities["add"] = json!(added);
    }
    let pod = json!({
        "metadata": {"labels": labels},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 60,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "securityContext": security,
            "topologySpreadConstraints": [{
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }],
            "containers": [{
                "name": CONTAINER,
                "command": command,
                "env": [
                    {"name": "HOME", "value": "/tmp"},
                    {"name": "HAKOBU_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                // No limit of CPUs: a mover that is throttled holds its connections open for longer.
                "resources": {
                    "requests": {"cpu": "1", "memory": "512Mi"},
                    "limits": {"memory": "2Gi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": capabilities,
                },
                "volumeMounts": mounts,
            }],
            "volumes": all,
        },
    });
    match pod {
        Value::Object(pod) => Ok(pod),
        _ => Err("a pod is an object".to_owned()),
    }
}

fn containers(pod: &mut Value) -> Option<&mut Vec<Value>> {
    pod.pointer_mut("/spec/containers")?.as_array_mut()
}

fn is_main(container: &Value) -> bool {
    container.get("name").and_then(Value::as_str) == Some(CONTAINER)
}

/// The container with the program.
fn container(pod: &Value) -> Result<&Value, String> {
    let all = pod.pointer("/spec/containers").and_then(Value::as_array);
    let main = all.and_then(|all| all.iter().find(|one| is_main(one)));
    main.ok_or_else(|| "the pod template removes container hakobu".to_owned())
}

/// Checks that the run folder is in a volume of the workers; the notes tell of directories at both ends that are not.
fn check_places(
    order: &WorkerOrder,
    plan: &ClusterPlan,
    pod: &Value,
) -> Result<Vec<String>, String> {
    let mounts = container(pod)?.get("volumeMounts").and_then(Value::as_array);
    let path = |mount: &Value| mount.get("mountPath")?.as_str().map(PathBuf::from);
    let mounts: Vec<PathBuf> = mounts.into_iter().flatten().filter_map(path).collect();
    let has = |path: &Path| {
        mounts.iter().any(|mount| path.starts_with(mount) && mount != Path::new("/tmp"))
            || (path.starts_with("/tmp") && !is_own_tmp(pod))
    };
    let run = Path::new(&order.run);
    if !is_s3(&order.run) && !has(run) {
        return Err(format!(
            "the run folder {} is in no volume of the pods: --volume CLAIM:PATH, where it is below PATH, or a run folder \
             in S3",
            quoted(run)
        ));
    }
    let ends = plan.ends.iter().map(|end| journal::bytes(&end.path));
    let away = ends.map(|bytes| PathBuf::from(OsStr::from_bytes(&bytes)));
    Ok(away
        .filter(|path| path.is_absolute() && !has(path))
        .map(|path| format!("note: {} is in no volume of the pods", quoted(path)))
        .collect())
}

/// Whether `/tmp` is the empty directory of the pod itself.
fn is_own_tmp(pod: &Value) -> bool {
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    volumes
        .into_iter()
        .flatten()
        .any(|one| one.get("name") == Some(&json!("tmp")) && one.get("emptyDir").is_some())
}

/// A template of the user, to merge into the pods.
#[derive(Debug, Default, PartialEq)]
struct PodTemplate {
    /// `metadata` with labels and annotations, and `spec`.
    patch: Map<String, Value>,
    namespace: Option<String>,
}

impl PodTemplate {
    /// Reads a file: JSON or YAML.
    fn read(file: &OsStr) -> Result<PodTemplate, String> {
        let named = |why: String| format!("cannot use pod template {}: {why}", quoted(file));
        PodTemplate::parse(&names::read_text(file)?).map_err(named)
    }

    /// Reads a Pod, a PodTemplate or a PodTemplateSpec.
    fn parse(text: &str) -> Result<PodTemplate, String> {
        let documents = Yaml::load_from_str(text).map_err(|error| error.to_string())?;
        let [document] = documents.as_slice() else {
            return Err(format!("it has {} documents, not one", documents.len()));
        };
        let Value::Object(mut whole) = to_json(document)? else {
            return Err("it is no object".to_owned());
        };
        match whole.get("kind").and_then(Value::as_str) {
            None | Some("Pod" | "PodTemplateSpec") => {}
            Some("PodTemplate") => match whole.remove("template") {
                Some(Value::Object(template)) => whole = template,
                _ => return Err("it has no template".to_owned()),
            },
            Some(other) => return Err(format!("it is a {other}, not a Pod or a PodTemplateSpec")),
        }
        let mut read = PodTemplate::default();
        for (key, value) in whole {
            match (&*key, value) {
                ("apiVersion" | "kind" | "status", _) => {}
                ("metadata", Value::Object(metadata)) => read.metadata(metadata)?,
                ("spec", Value::Object(spec)) => drop(read.patch.insert(key, Value::Object(spec))),
                (other, _) => return Err(format!("{other} is no field of a Pod, or no object")),
            }
        }
        match read.patch.is_empty() && read.namespace.is_none() {
            true => Err("it has neither metadata nor a spec".to_owned()),
            false => Ok(read),
        }
    }

    /// Takes over what pods of a Job can have of a Pod's metadata.
    fn metadata(&mut self, metadata: Map<String, Value>) -> Result<(), String> {
        let mut kept = Map::new();
        for (key, value) in metadata {
            match (&*key, value) {
                ("labels" | "annotations", value) => drop(kept.insert(key, value)),
                ("namespace", Value::String(name)) if is_label(&name) => {
                    self.namespace = Some(name)
                }
                // The Job gives them.
                ("name" | "generateName" | "creationTimestamp", _) => {}
                (other, _) => {
                    return Err(format!("metadata.{other} cannot be that of a Job's pod"));
                }
            }
        }
        if !kept.is_empty() {
            self.patch.insert("metadata".to_owned(), Value::Object(kept));
        }
        Ok(())
    }
}

/// A YAML node as JSON. All of Kubernetes' objects have a form in JSON.
fn to_json(node: &Yaml<'_>) -> Result<Value, String> {
    match node {
        Yaml::Value(Scalar::Null) => Ok(Value::Null),
        Yaml::Value(Scalar::Boolean(value)) => Ok(json!(value)),
        Yaml::Value(Scalar::Integer(value)) => Ok(json!(value)),
        Yaml::Value(Scalar::FloatingPoint(value)) => Ok(json!(value.into_inner())),
        Yaml::Value(Scalar::String(text)) => Ok(json!(text)),
        Yaml::Sequence(nodes) => {
            nodes.iter().map(to_json).collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
        Yaml::Mapping(pairs) => {
            let mut object = Map::new();
            for (key, value) in pairs {
                let key = match to_json(key)? {
                    Value::String(key) if key != "<<" => key,
                    other => return Err(format!("{other} cannot be a name of a field")),
                };
                object.insert(key, to_json(value)?);
            }
            Ok(Value::Object(object))
        }
        Yaml::Tagged(..) | Yaml::Alias(_) | Yaml::BadValue | Yaml::Representation(..) => {
            Err("it has a tag or a value that JSON does not have".to_owned())
        }
    }
}

/// The field by which items of a list are told apart, as the API's `patchMergeKey` has it; `None` for lists that are
/// replaced as a whole.
fn merge_key(list: &str) -> Option<&'static str> {
    match list {
        "containers" | "initContainers" | "env" | "volumes" | "imagePullSecrets"
        | "resourceClaims" | "schedulingGates" => Some("name"),
        "volumeMounts" => Some("mountPath"),
        "volumeDevices" => Some("devicePath"),
        "ports" => Some("containerPort"),
        "hostAliases" => Some("ip"),
        "topologySpreadConstraints" => Some("topologyKey"),
        _ => None,
    }
}

/// The directive `$patch` of an object; the others of a strategic merge are refused.
fn directive(object: &Map<String, Value>) -> Result<Option<&str>, String> {
    match object.keys().find(|key| key.starts_with('$') && *key != "$patch") {
        Some(other) => Err(format!("{other} is not supported in a pod template")),
        None => match object.get("$patch").map(|value| value.as_str().unwrap_or_default()) {
            known @ (None | Some("replace" | "delete" | "merge")) => Ok(known),
            Some(other) => Err(format!("$patch: {other} is not supported in a pod template")),
        },
    }
}

fn without_directive(mut value: Value) -> Value {
    if let Value::Object(object) = &mut value {
        object.remove("$patch");
    }
    value
}

/// Merges a patch into an object, by the rules of a strategic merge: `null` removes a field, objects are merged, lists by
/// the key of their items or replaced.
fn merge_map(base: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), String> {
    directive(patch)?;
    for (key, value) in patch.iter().filter(|(key, _)| *key != "$patch") {
        match (base.get_mut(key), value) {
            (_, Value::Null) => drop(base.remove(key)),
            (Some(Value::Object(old)), Value::Object(new)) => match directive(new)? {
                Some("delete") => drop(base.remove(key)),
                Some("replace") => {
                    base.insert(key.clone(), without_directive(value.clone()));
                }
                _ => merge_map(old, new)?,
            },
            (old, Value::Array(new)) => match merge_key(key) {
                None => drop(base.insert(key.clone(), value.clone())),
                Some(by) => {
                    let old = old.and_then(Value::as_array_mut).map(std::mem::take);
                    let merged = merge_list(old.unwrap_or_default(), new, key, by)?;
                    base.insert(key.clone(), Value::Array(merged));
                }
            },
            (_, value) => drop(base.insert(key.clone(), without_directive(value.clone()))),
        }
    }
    Ok(())
}

/// Merges a list whose items are told apart by the field `by`.
fn merge_list(
    mut base: Vec<Value>,
    patch: &[Value],
    list: &str,
    by: &str,
) -> Result<Vec<Value>, String> {
    for item in patch {
        let Value::Object(new) = item else {
            return Err(format!("an item of {list} in the pod template is no object"));
        };
        let asked = directive(new)?;
        let Some(name) = new.get(by) else {
            // An item with nothing but this directive speaks of the whole list.
            if asked == Some("replace") && new.len() == 1 {
                base.clear();
                continue;
            }
            return Err(format!("an item of {list} in the pod template has no {by}"));
        };
        let place = base.iter().position(|old| old.get(by) == Some(name));
        match (place, asked) {
            (Some(place), Some("delete")) => drop(base.remove(place)),
            (None, Some("delete")) => {}
            // A volume is of one kind: that of the template takes the place of the other one.
            (Some(place), asked) if list == "volumes" || asked == Some("replace") => {
                if let Some(old) = base.get_mut(place) {
                    *old = without_directive(item.clone());
                }
            }
            (Some(place), _) => {
                if let Some(Value::Object(old)) = base.get_mut(place) {
                    merge_map(old, new)?;
                }
            }
            (None, _) => base.push(without_directive(item.clone())),
        }
    }
    Ok(base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn order(run: &str, rest: &str) -> WorkerOrder {
        WorkerOrder {
            run: run.into(),
            store: vec!["--endpoint-url=http://s3.test".into()],
            nodes: 3,
            stale: Duration::from_secs(30),
            verifies: false,
            rest: rest.split_whitespace().map(OsString::from).collect(),
        }
    }

    fn made(run: &str, rest: &str, volumes: &[&str], template: &str) -> Result<Value, String> {
        let template = match template {
            "" => PodTemplate::default(),
            text => PodTemplate::parse(text)?,
        };
        let volumes: Vec<String> = volumes.iter().map(|volume| (*volume).to_owned()).collect();
        let plan = ClusterPlan { id: "00aa11bb22cc33dd".to_owned(), ..ClusterPlan::default() };
        let order = order(run, rest);
        let made = make(&order, &plan, Some("i:1"), &volumes, template, (1000, 100))?;
        serde_json::from_str(&made.text).map_err(|error| error.to_string())
    }

    fn spec(list: &Value) -> &Value {
        &list["items"][0]["spec"]["template"]["spec"]
    }

    #[test]
    fn names_are_labels_for_any_run_folder() {
        let long = "x".repeat(300);
        for run in ["/mnt/Run.1_\u{e4}/", "s3://b/---", "/", "/mnt/-", "s3://b/p/\u{65e5}", &long] {
            let instance = instance(OsStr::new(run), "00aa11bb22cc33dd");
            let name = format!("hakobu-collect-{instance}-99999");
            assert!(is_label(&name) && name.contains("00aa11bb22cc33dd"), "{run}: {name}");
        }
        assert_eq!(instance(OsStr::new("/mnt/Run.1_a/"), "7f"), "run-1-a-7f");
    }

    #[test]
    fn the_run_folder_is_in_a_volume() {
        for (run, volumes, is_fine) in [
            ("/data/run", &["c:/data"][..], true),
            ("/data/run", &["c:/other", "d:/data/run/"], true),
            ("/data/run", &[], false),
            ("/data/run", &["c:/dat"], false),
            ("/tmp/run", &["c:/data"], false),
            ("/tmp/run", &["c:/tmp"], true),
            ("s3://b/run", &[], true),
            ("/data/run", &["c"], false),
            ("/data/run", &[":/data"], false),
        ] {
            let found = made(run, "", volumes, "");
            assert_eq!(found.is_ok(), is_fine, "{run} {volumes:?}: {found:?}");
        }
        let mounted = "spec: {containers: [{name: hakobu, volumeMounts: [{name: v, mountPath: /data}]}], \
                       volumes: [{name: v, nfs: {server: s, path: /x}}]}";
        assert!(made("/data/run", "", &[], mounted).is_ok());
    }

    #[test]
    fn words_for_kubectl_reach_the_manifests_or_are_refused() {
        for rest in
            ["--namespace movers", "-n movers", "-nmovers", "-n=movers", "--namespace=movers"]
        {
            let list = made("s3://b/r", rest, &[], "").unwrap();
            for item in list["items"].as_array().unwrap() {
                assert_eq!(item["metadata"]["namespace"], "movers", "{rest}");
            }
        }
        let of_template = made("s3://b/r", "", &[], "metadata: {namespace: ours}").unwrap();
        assert_eq!(of_template["items"][1]["metadata"]["namespace"], "ours");
        for (rest, named) in [
            ("--context c", "--context"),
            ("--namespace A_b", "A_b"),
            ("-n", "no name"),
            ("x", "x"),
        ] {
            let refused = made("s3://b/r", rest, &[], "").unwrap_err();
            assert!(refused.contains(named), "{rest}: {refused}");
        }
    }

    #[test]
    fn users_and_capabilities() {
        let of = |user, volumes: &[&str]| {
            let volumes: Vec<String> = volumes.iter().map(|volume| (*volume).to_owned()).collect();
            Value::Object(pod(json!({}), &[], &volumes, user).unwrap())["spec"].clone()
        };
        let user = of((1000, 100), &["c:/d"]);
        assert_eq!(user["securityContext"]["runAsUser"], 1000);
        assert_eq!(user["securityContext"]["runAsNonRoot"], true);
        assert_eq!(user["securityContext"].get("fsGroup"), None);
        let root = of((0, 0), &["c:/d"]);
        assert_eq!(root["securityContext"].get("runAsNonRoot"), None);
        let capabilities = &root["containers"][0]["securityContext"]["capabilities"];
        assert_eq!(
            (&capabilities["drop"], &capabilities["add"]),
            (&json!(["ALL"]), &json!(ROOT_CAPABILITIES))
        );
        let nobody = of((0, 0), &[]);
        assert_eq!(nobody["securityContext"]["runAsUser"], NOBODY);
        assert_eq!(nobody["containers"][0]["securityContext"]["capabilities"].get("add"), None);
    }

    #[test]
    fn templates_are_merged_as_kubectl_would() {
        let template = "
apiVersion: v1
kind: Pod
metadata:
  name: ignored
  labels: {team: storage}
spec:
  serviceAccountName: mover
  automountServiceAccountToken: true
  tolerations: [{key: dedicated, operator: Exists}]
  topologySpreadConstraints: [{topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]
  securityContext: {runAsUser: 7, runAsNonRoot: null}
  containers:
  - name: hakobu
    env:
    - {name: HOME, value: /scratch}
    - name: AWS_ACCESS_KEY_ID
      valueFrom: {secretKeyRef: {name: s3, key: id}}
    envFrom: [{secretRef: {name: more}}]
    resources: {limits: {cpu: \"4\"}}
    volumeMounts: [{mountPath: /tmp, name: fast}]
  - {name: side, image: s:1}
  volumes:
  - {name: tmp, $patch: delete}
  - {name: fast, hostPath: {path: /nvme}}
  - {name: volume-0, nfs: {server: s, path: /}}
";
        let list = made("/data/run", "", &["c:/data"], template).unwrap();
        let spec = spec(&list);
        let labels = &list["items"][0]["spec"]["template"]["metadata"]["labels"];
        assert_eq!(
            (&labels["team"], &labels["app.kubernetes.io/name"]),
            (&json!("storage"), &json!("hakobu"))
        );
        assert_eq!(list["items"][0]["metadata"]["name"], "hakobu-work-run-00aa11bb22cc33dd");
        assert_eq!(spec["serviceAccountName"], "mover");
        assert_eq!(spec["automountServiceAccountToken"], true);
        assert_eq!(spec["tolerations"][0]["key"], "dedicated");
        let spread = &spec["topologySpreadConstraints"];
        assert_eq!((spread.as_array().unwrap().len(), &spread[0]["maxSkew"]), (1, &json!(1)));
        assert_eq!(spread[0]["whenUnsatisfiable"], "DoNotSchedule");
        let security = &spec["securityContext"];
        assert_eq!((&security["runAsUser"], security.get("runAsNonRoot")), (&json!(7), None));
        let container = &spec["containers"][0];
        assert_eq!((&container["name"], &container["image"]), (&json!("hakobu"), &json!("i:1")));
        assert_eq!(spec["containers"][1]["name"], "side");
        assert_eq!(container["env"][0], json!({"name": "HOME", "value": "/scratch"}));
        assert_eq!(container["env"][2]["valueFrom"]["secretKeyRef"]["key"], "id");
        assert_eq!(container["envFrom"][0]["secretRef"]["name"], "more");
        assert_eq!(container["resources"]["limits"], json!({"cpu": "4", "memory": "2Gi"}));
        assert_eq!(container["resources"]["requests"]["cpu"], "1");
        assert_eq!(
            container["volumeMounts"],
            json!([{"mountPath": "/tmp", "name": "fast"}, {"mountPath": "/data", "name": "volume-0"}])
        );
        assert_eq!(
            spec["volumes"],
            json!([{"name": "volume-0", "nfs": {"server": "s", "path": "/"}},
                   {"name": "fast", "hostPath": {"path": "/nvme"}}])
        );
        // The same in JSON, and as a template.
        let json = r#"{"kind": "PodTemplate", "template": {"spec": {"priorityClassName": "low"}}}"#;
        let list = made("s3://b/r", "", &[], json).unwrap();
        for item in list["items"].as_array().unwrap() {
            assert_eq!(item["spec"]["template"]["spec"]["priorityClassName"], "low");
        }
        let replaced = "spec: {containers: [{name: hakobu, resources: {$patch: replace, limits: {memory: 1Gi}}}]}";
        let list = made("s3://b/r", "", &[], replaced).unwrap();
        let container = &self::spec(&list)["containers"][0];
        assert_eq!(container["resources"], json!({"limits": {"memory": "1Gi"}}));
    }

    #[test]
    fn templates_that_cannot_be_used() {
        for (template, named) in [
            ("kind: Job", "it is a Job"),
            ("", "documents"),
            ("a: 1\n---\nb: 2", "2 documents"),
            ("- 1", "no object"),
            ("{}", "neither"),
            ("spec: 1", "spec"),
            ("spec: {a: [", ""),
            ("sepc: {}", "sepc"),
            ("metadata: {ownerReferences: []}", "metadata.ownerReferences"),
            ("spec: {x: !!binary aGk=}", "tag"),
            ("spec: {<<: {a: 1}}", "<<"),
            ("spec: {1: x}", "name of a field"),
            ("spec: {restartPolicy: OnFailure}", "restartPolicy"),
            ("spec: {containers: [{name: hakobu, command: [sh]}]}", "command"),
            ("spec: {containers: [{name: hakobu, args: [x]}]}", "command"),
            ("spec: {containers: [{name: hakobu, $patch: delete}]}", "removes container"),
            ("spec: {containers: [{image: x}]}", "has no name"),
            ("spec: {containers: [1]}", "no object"),
            ("spec: {$retainKeys: [a]}", "$retainKeys"),
            ("spec: {securityContext: {$patch: keep}}", "$patch: keep"),
        ] {
            let refused = PodTemplate::parse(template).and_then(|template| {
                let plan = ClusterPlan::default();
                make(&order("s3://b/r", ""), &plan, Some("i"), &[], template, (1, 1)).map(|_| ())
            });
            assert!(
                refused.as_ref().is_err_and(|why| why.contains(named)),
                "{template}: {refused:?}"
            );
        }
    }
}
