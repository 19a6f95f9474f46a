//! Parser of the command line of `bench`.

use super::args::{Args, Source, Task};
use super::options::{CAMPAIGNS, COMMANDS, TABLE};
use super::ready;
use super::values::{scan, sink};
use crate::options::Typed;
use hakobu_lab::campaign::OutputSink;
use std::path::PathBuf;

/// Parses a command line.
pub fn parse(typed: &Typed) -> Result<Args, String> {
    let mut args = TABLE.read(typed, Args::default())?;
    args.task = task(typed, args.list, args.dump)?;
    for arg in &typed.options {
        match args.task {
            Task::Campaign(_) if COMMANDS.has(arg) => {
                return Err(format!("--{} goes with commands, not with a campaign", arg.name));
            }
            Task::Commands(_) if CAMPAIGNS.has(arg) => {
                return Err(format!("--{} goes with a campaign, not with commands", arg.name));
            }
            _ => {}
        }
    }
    let (step, scans) = (args.step.take(), std::mem::take(&mut args.scans));
    if let (Some(step), true) = (&step, scans.is_empty()) {
        return Err(step.wrong("there is no --parameter-scan that it could belong to"));
    }
    for arg in &scans {
        args.parameters.push(scan(arg, step.as_ref())?);
    }
    args.settle_outputs()?;
    args.settle_reference()?;
    let mut names: Vec<&str> = args.parameters.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("the parameter '{}' is given twice", pair[0]));
    }
    if args.runs.is_some() && (args.min_runs.is_some() || args.max_runs.is_some()) {
        return Err(
            "--runs says how many there are: it does not go with --min-runs or --max-runs".into()
        );
    }
    Ok(args)
}

fn task(typed: &Typed, list: bool, dump: bool) -> Result<Task, String> {
    if list {
        return match typed.paths.is_empty() {
            true => ready::list().map(Task::Print),
            false => Err("--list goes alone".to_owned()),
        };
    }
    if let [one] = &typed.paths[..] {
        let builtin = one.to_str().and_then(ready::find);
        if let Some(builtin) = builtin {
            return Ok(match dump {
                true => Task::Print(builtin.text.to_owned()),
                false => Task::Campaign(Source::Builtin(builtin)),
            });
        }
        if dump {
            let names: Vec<&str> = ready::CAMPAIGNS.iter().map(|campaign| campaign.name).collect();
            let one = one.display();
            return Err(format!("there is no campaign '{one}' (there are {})", names.join(", ")));
        }
        if PathBuf::from(one).extension().is_some_and(|end| end == "toml") {
            return Ok(Task::Campaign(Source::File(one.into())));
        }
    }
    if dump {
        return Err("--dump needs one campaign by its name; --list shows them".to_owned());
    }
    let mut commands = Vec::new();
    for path in &typed.paths {
        let command =
            path.to_str().ok_or_else(|| format!("'{}' is not valid UTF-8", path.display()))?;
        if command.trim().is_empty() {
            return Err("a command is empty".into());
        }
        if command.ends_with(".toml") && !command.contains(' ') {
            return Err(format!("give one campaign: '{command}' is not the only argument"));
        }
        commands.push(command.to_owned());
    }
    if commands.is_empty() {
        return Err(
            "give commands, or a campaign (a file that ends in .toml, or a name of --list)".into(),
        );
    }
    Ok(Task::Commands(commands))
}

impl Args {
    /// Resolves `--output`: the folder of results of a campaign, or the destination of commands' output.
    fn settle_outputs(&mut self) -> Result<(), String> {
        let outputs = std::mem::take(&mut self.outputs);
        if let Task::Campaign(_) = self.task {
            if let Some(last) = outputs.last() {
                self.results = Some(last.path());
            }
            return Ok(());
        }
        if self.show_output && !outputs.is_empty() {
            return Err("--show-output is --output=inherit: give one of them".to_owned());
        }
        if self.show_output {
            self.sinks.push(OutputSink::Inherit);
        }
        for arg in &outputs {
            self.sinks.push(sink(arg)?);
        }
        Ok(())
    }

    /// Puts the reference command first.
    fn settle_reference(&mut self) -> Result<(), String> {
        let name = self.reference_name.take();
        let Some(reference) = self.reference.clone() else {
            return match name {
                Some(_) => Err("--reference-name needs --reference".to_owned()),
                None => Ok(()),
            };
        };
        if reference.trim().is_empty() {
            return Err("--reference: a command is empty".to_owned());
        }
        if name.is_some() || !self.names.is_empty() {
            self.names.insert(0, name.unwrap_or_else(|| reference.clone()));
        }
        if let Task::Commands(commands) = &mut self.task {
            commands.insert(0, reference);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn read(line: &[&str]) -> Result<Args, String> {
        let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
        parse(&TABLE.parse(&arguments).map_err(|refused| format!("{refused:?}"))?)
    }

    #[test]
    fn usage() {
        for (line, said) in [
            ("", "give commands, or a campaign"),
            ("a.toml|b", "give one campaign: 'a.toml' is not the only argument"),
            ("a| ", "a command is empty"),
            ("a.toml|-n|x", "--command-name goes with commands"),
            ("a|--scale=2", "--scale goes with a campaign"),
            ("a|-r|0", "--runs=0: must be at least 1"),
            ("a|-r|3|-m|2", "does not go with --min-runs"),
            ("a|-w|x", "--warmup=x: is not a number"),
            ("a|--budget=7", "--budget=7: is not a duration"),
            ("a|-L|x y|1", "VAR is not a name"),
            ("a|-L|x|1|-P|x|1|2", "the parameter 'x' is given twice"),
            ("a|-P|x|3|2", "is not a range"),
            ("a|-P|x|1|2|-D|0", "is not a range"),
            ("a|-D|2", "there is no --parameter-scan"),
            ("a.toml|--place|x", "--place=x: is not NAME=PATH"),
        ] {
            let words: Vec<&str> = line.split('|').filter(|word| !word.is_empty()).collect();
            let message = read(&words).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
    }

    #[test]
    fn parameters() {
        let values = |line: &[&str]| -> Vec<String> {
            read(line).unwrap().parameters.into_iter().flat_map(|one| one.values).collect()
        };
        assert_eq!(values(&["-L", "jobs", "1,4,16", "a"]), ["1", "4", "16"]);
        assert_eq!(values(&["-L", "x", r"a\,b,c\\d,\e,", "a"]), ["a,b", r"c\d", r"\e", ""]);
        assert_eq!(values(&["-P", "n", "-1", "2", "a"]), ["-1", "0", "1", "2"]);
        let steps = values(&["-P", "n", "0", "0.3", "-D", "0.1", "a"]);
        assert_eq!(steps, ["0.0", "0.1", "0.2", "0.3"]);
    }

    #[test]
    fn how_often() {
        let apply = |line: &[&str]| {
            let mut repeat = super::super::flags::REPEAT;
            read(line)?.apply(&mut repeat)?;
            Ok::<_, String>((repeat.warmup, repeat.min, repeat.max))
        };
        assert_eq!(apply(&["a"]), Ok((0, 5, 20)));
        assert_eq!(apply(&["a", "-w", "2", "--repeat", "3"]), Ok((2, 3, 3)));
        assert_eq!(apply(&["a", "-m", "30"]), Ok((0, 30, 30)));
        assert_eq!(apply(&["a", "-M", "2"]), Ok((0, 2, 2)));
        assert_eq!(apply(&["a", "-m", "3", "-M", "9"]), Ok((0, 3, 9)));
        assert!(apply(&["a", "-m", "4", "-M", "2"]).unwrap_err().contains("more than --max-runs"));
    }
}
