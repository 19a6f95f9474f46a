//! Values of options of `bench`: parameters, output targets, style.

use super::args::{Args, Parameter, Style};
use crate::commands::run::lines;
use crate::options::OptArg;
use hakobu_lab::campaign::{ExitCodes, OutputSink};
use hakobu_lab::results::hyperfine::TimeUnit;
use std::ffi::OsString;
use std::path::Path;

/// Parses the target of commands' output.
pub fn sink(arg: &OptArg) -> Result<OutputSink, String> {
    Ok(match arg.text()? {
        "null" => OutputSink::Null,
        "pipe" => OutputSink::Pipe,
        "inherit" => OutputSink::Inherit,
        path if Path::new(path).is_dir() => {
            return Err(arg.wrong("is a folder; -o (--results) names the folder of results"));
        }
        path => OutputSink::File(
            std::path::absolute(path).map_err(|error| arg.wrong(&format!("{error}")))?,
        ),
    })
}

/// Parses `--ignore-failure` with its optional exit codes.
pub fn accepts(arg: &OptArg) -> Result<ExitCodes, String> {
    match arg.text()? {
        "" | "all-non-zero" => Ok(ExitCodes::Any),
        codes => {
            let codes = codes.split(',').map(|code| code.trim().parse::<u8>().map(i32::from));
            let codes: Result<Vec<i32>, _> = codes.collect();
            codes
                .map(ExitCodes::Codes)
                .map_err(|_| arg.wrong("give exit codes from 0 to 255 with commas between them"))
        }
    }
}

/// Sets `--style`; `none` is `--quiet`.
pub fn style(it: &mut Args, arg: &OptArg) -> Result<(), String> {
    let always = |color, progress| Style { color: Some(color), progress: Some(progress) };
    it.style = match arg.text()? {
        "auto" => Style::default(),
        "basic" => always(false, false),
        "full" => always(true, true),
        "nocolor" => Style::NO_COLOR,
        "color" => always(true, false),
        "none" => {
            it.quiet = true;
            Style::default()
        }
        _ => return Err(arg.wrong("give auto, basic, full, nocolor, color or none")),
    };
    Ok(())
}

/// Parses `--sort`: returns whether tables are sorted by time.
pub fn is_sorted(arg: &OptArg) -> Result<bool, String> {
    match arg.text()? {
        "auto" | "command" => Ok(false),
        "mean-time" => Ok(true),
        _ => Err(arg.wrong("give auto, command or mean-time")),
    }
}

/// Parses `--time-unit`.
pub fn time(arg: &OptArg) -> Result<TimeUnit, String> {
    TimeUnit::of_name(arg.text()?)
        .ok_or_else(|| arg.wrong("give microsecond, millisecond or second"))
}

pub fn list(arg: &OptArg) -> Result<Parameter, String> {
    let (name, values) = arg.text()?.split_once('=').unwrap_or_default();
    Ok(Parameter { name: named(arg, name)?, values: separated(values) })
}

/// Splits at commas; `\,` is a comma and `\\` a backslash, as in hyperfine.
fn separated(text: &str) -> Vec<String> {
    let (mut all, mut chars) = (vec![String::new()], text.chars().peekable());
    while let Some(c) = chars.next() {
        let escaped = chars.next_if(|next| c == '\\' && matches!(next, ',' | '\\'));
        match (escaped, all.last_mut()) {
            (None, _) if c == ',' => all.push(String::new()),
            (escaped, Some(last)) => last.push(escaped.unwrap_or(c)),
            (_, None) => {}
        }
    }
    all
}

/// Parses a range of numbers.
pub fn scan(arg: &OptArg, step: Option<&OptArg>) -> Result<Parameter, String> {
    let read = |arg: &OptArg, text: &str| {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| arg.wrong(&format!("'{text}' is not a number")))
    };
    let words: Vec<&str> = arg.text()?.splitn(3, '=').collect();
    let [name, min, max] = words[..] else { return Err(arg.wrong("needs VAR MIN MAX")) };
    let digits = |text: &str| text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let mut most_digits = digits(min).max(digits(max));
    let (min, max) = (read(arg, min)?, read(arg, max)?);
    let mut by = 1.0;
    if let Some(step) = step {
        by = read(step, step.text()?)?;
        most_digits = most_digits.max(digits(step.text()?));
    }
    if by <= 0.0 || min > max || (max - min) / by > 10_000.0 {
        return Err(arg.wrong("is not a range with a step that leads from MIN to MAX"));
    }
    // With slack for steps that have no exact binary form.
    let count = ((max - min) / by + 1e-9).floor() as u32;
    let values = (0..=count).map(|n| format!("{:.most_digits$}", min + f64::from(n) * by));
    Ok(Parameter { name: named(arg, name)?, values: values.collect() })
}

fn named(arg: &OptArg, name: &str) -> Result<String, String> {
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    is_name.then(|| name.to_owned()).ok_or_else(|| arg.wrong("VAR is not a name"))
}

/// Parses `--shell`: words are split as in a shell.
pub fn shell(arg: &OptArg) -> Result<Vec<String>, String> {
    match arg.text()? {
        "none" => Ok(Vec::new()),
        "default" => Ok(vec!["sh".into()]),
        text => {
            let words = lines::words(text.as_bytes()).map_err(|why| arg.wrong(why))?;
            // Parts of valid UTF-8, unless an escape has made something else of them.
            let words = words.into_iter().map(OsString::into_string).collect::<Result<Vec<_>, _>>();
            let words = words.map_err(|_| arg.wrong("is not valid UTF-8"))?;
            match words.first() {
                Some(first) if !first.is_empty() => Ok(words),
                _ => Err(arg.wrong("is not a shell")),
            }
        }
    }
}
