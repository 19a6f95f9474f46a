//! Checks the verdict and its format against the known limit.

use serde_json::Value;

const RESOURCES: &[&str] = &[
    "cpu",
    "thread",
    "disk-iops",
    "disk-bandwidth",
    "network",
    "server",
    "lock",
    "latency",
    "peer",
    "source",
    "target",
    "user-limit",
    "self",
    "none",
];
const LEVELS: &[&str] = &["consistent", "at-limit", "proven"];

/// Result of checking a verdict.
#[derive(Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The verdict names the limit.
    Named,
    /// The verdict is "not-determined".
    Open,
    /// The verdict names another resource, or is malformed.
    Wrong(String),
}

/// Compares the verdict in a summary with the correct resources.
pub fn judge(summary: &Value, right: &[&str]) -> Ruling {
    match form(summary) {
        Err(why) => Ruling::Wrong(why),
        Ok((_, "not-determined")) => Ruling::Open,
        Ok((resource, _)) if right.contains(&resource) => Ruling::Named,
        Ok((resource, level)) => {
            Ruling::Wrong(format!("{resource} ({level}) instead of {right:?}"))
        }
    }
}

/// Resource and level of a verdict, after a check of all its parts: a claim has at least two signals.
fn form(summary: &Value) -> Result<(&str, &str), String> {
    let verdict = &summary["verdict"];
    let text = |field: &str| verdict[field].as_str().ok_or(format!("no {field} in {verdict}"));
    let (resource, level, advice) = (text("resource")?, text("level")?, text("advice")?);
    if !RESOURCES.contains(&resource) {
        return Err(format!("no such resource: {resource}"));
    }
    let evidence = verdict["evidence"].as_array().ok_or("no evidence")?;
    let signal = |one: &Value| {
        one["signal"].is_string() && one["value"].is_number() && one["limit"].is_number()
    };
    if !evidence.iter().all(signal) {
        return Err(format!("evidence without signal, value or limit: {verdict}"));
    }
    let steps = summary["jobs_path"].as_array().ok_or("no jobs_path")?;
    let step = |one: &Value| one["t_s"].is_number() && one["jobs"].is_u64();
    if !steps.iter().all(step) {
        return Err(format!("a step without t_s or jobs: {steps:?}"));
    }
    if level == "not-determined" {
        return Ok((resource, level));
    }
    if !LEVELS.contains(&level) {
        return Err(format!("no such level: {level}"));
    }
    if evidence.len() < 2 || advice.is_empty() || resource == "none" {
        return Err(format!("a claim without two signals, a resource and advice: {verdict}"));
    }
    Ok((resource, level))
}

#[test]
fn the_judge_knows_right_open_and_wrong() {
    let summary = |resource: &str, level: &str, signals: usize| {
        let one = serde_json::json!({"signal": "cpu_used", "value": 0.99, "limit": 1.0});
        serde_json::json!({
            "jobs_path": [{"t_s": 0.0, "jobs": 2, "rate": null}],
            "verdict": {"resource": resource, "level": level, "advice": "more",
                "evidence": vec![one; signals]},
        })
    };
    assert_eq!(judge(&summary("cpu", "at-limit", 2), &["cpu"]), Ruling::Named);
    assert_eq!(judge(&summary("cpu", "not-determined", 0), &["server"]), Ruling::Open);
    for (resource, level, signals) in
        [("thread", "proven", 2), ("cpu", "consistent", 1), ("cpu", "sure", 2), ("x", "proven", 2)]
    {
        let ruling = judge(&summary(resource, level, signals), &["cpu"]);
        assert!(matches!(ruling, Ruling::Wrong(_)), "{resource} {level}");
    }
    assert!(matches!(judge(&serde_json::json!({}), &["cpu"]), Ruling::Wrong(_)));
}
