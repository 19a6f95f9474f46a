//! Values of options of `sync` that need more than a line to parse.

use super::reading::Reading;
use crate::options::OptArg;
use crate::owner;
use crate::show::lines::OutFormat;
use hakobu_sys::process;
use hakobu_transfer::policy::{Basis, ChmodRules};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

/// Parses `--out-format`, `--log-file-format`.
///
/// # Errors
/// A letter that is not supported.
pub fn format(arg: &OptArg) -> Result<Arc<OutFormat>, String> {
    let format = OutFormat::parse(arg.value.as_bytes());
    format.map(Arc::new).map_err(|why| format!("--{}: {why}", arg.name))
}

/// Applies `--chmod`.
///
/// # Errors
/// An invalid clause.
pub fn add_chmod(it: &mut Reading, arg: &OptArg) -> Result<(), String> {
    // The umask can only be read by setting it; no other thread runs yet.
    let umask = process::set_umask(0o022);
    process::set_umask(umask);
    let text = arg.value.to_str().ok_or("--chmod: changes are text")?;
    let rules = it.policy.chmod.get_or_insert_with(ChmodRules::default);
    rules.add(text, umask).map_err(|error| format!("--chmod: {error}"))
}

/// Applies `--chown`.
///
/// # Errors
/// An unknown user or group.
pub fn set_owner(it: &mut Reading, arg: &OptArg) -> Result<(), String> {
    let owner = owner::parse(&arg.value)?;
    let maps = [
        (owner.uid.is_some(), &it.policy.users, "--usermap"),
        (owner.gid.is_some(), &it.policy.groups, "--groupmap"),
    ];
    if let Some((_, _, map)) = maps.iter().find(|(on, map, _)| *on && !map.is_empty()) {
        return Err(format!("--chown conflicts with {map}"));
    }
    (it.policy.chown_uid, it.policy.chown_gid) = (owner.uid, owner.gid);
    let keep = &mut it.policy.preserve;
    if owner.uid.is_some() {
        (keep.owner, keep.owner_explicit) = (true, true);
    }
    if owner.gid.is_some() {
        (keep.group, keep.owner_explicit) = (true, true);
    }
    Ok(())
}

/// Applies `--link-dest` and similar options.
///
/// # Errors
/// Another one of them was given.
pub fn add_basis(it: &mut Reading, arg: &OptArg, basis: Basis) -> Result<(), String> {
    let policy = &mut it.policy;
    if !policy.basis_dirs.is_empty() && policy.basis != basis {
        return Err(format!("--{} cannot be used with {}", arg.name, policy.basis.option()));
    }
    policy.basis = basis;
    policy.basis_dirs.push(arg.path());
    Ok(())
}

/// Applies `--partial-dir`. A folder inside each directory is a single name.
///
/// # Errors
/// A relative path of several names, or of none.
pub fn set_partial_dir(it: &mut Reading, arg: &OptArg) -> Result<(), String> {
    let path = arg.path();
    let is_name = path.components().count() == 1
        && path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !path.is_absolute() && !is_name {
        return Err(arg.refuse("is neither the name of a folder nor an absolute path"));
    }
    it.policy.partial = true;
    it.policy.partial_dir = Some(path);
    Ok(())
}

/// Applies `--stop-after`.
///
/// # Errors
/// It is not a number of minutes.
pub fn stop_after(it: &mut Reading, arg: &OptArg) -> Result<(), String> {
    let minutes = arg.parsed::<i64>().and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
    let minutes = minutes.ok_or_else(|| arg.refuse("is not a number of minutes"))?;
    it.wanted.stop_after = Some(Duration::from_secs(minutes.saturating_mul(60)));
    Ok(())
}

/// Applies `--stop-at`: a time of this day or, if that has passed, of the next one.
///
/// # Errors
/// It is not a time, or it has passed.
pub fn stop_at(it: &mut Reading, arg: &OptArg) -> Result<(), String> {
    let now = jiff::Zoned::now();
    let text = arg.text()?.replace('/', "-");
    let refuse = || arg.refuse("is not a time such as 23:30 or 2030-01-31T23:30");
    let (date, time) = match text.split_once(['T', 't']) {
        Some((date, time)) => (Some(date), time),
        None => (None, text.as_str()),
    };
    let time = jiff::civil::Time::strptime("%H:%M", time).map_err(|_| refuse())?;
    let date = match date {
        None => None,
        Some(date) if date.split('-').count() == 2 => Some(format!("{}-{date}", now.year())),
        Some(date) => Some(date.to_owned()),
    };
    let day = match &date {
        Some(date) => jiff::civil::Date::strptime("%Y-%m-%d", date).map_err(|_| refuse())?,
        None if time <= now.time() => now.date().tomorrow().map_err(|_| refuse())?,
        None => now.date(),
    };
    let at = day.to_datetime(time).to_zoned(now.time_zone().clone()).map_err(|_| refuse())?;
    let left = Duration::try_from(at.duration_since(&now));
    it.wanted.stop_after = Some(left.map_err(|_| arg.refuse("has passed"))?);
    Ok(())
}

/// Applies one `-M`: an option for the other side, which is the target of a local copy.
///
/// # Errors
/// An option that is the same on both sides, or that has no meaning between local paths.
pub fn set_remote(it: &mut Reading, arg: &OptArg) -> Result<(), String> {
    match arg.text()? {
        "--fake-super" => it.fake.target = true,
        "--super" => it.fake.not_target = true,
        _ => {
            return Err(arg.refuse(
                "is not supported: there is no other machine; --fake-super and --super are, for DST alone",
            ));
        }
    }
    Ok(())
}
