//! `hakobu ls`: selects directories and names and their order; the modules below format them.

mod columns;
mod entry;
mod json;
mod long;
mod name;
mod objects;
mod options;

use super::line::carry_out;
use super::tool;
use crate::exit;
use crate::filters::{ArgumentFilter, ArgumentFilters};
use crate::objects::are_s3;
use crate::options::Typed;
use crate::show::escape::Escape;
use crate::show::output::Output;
use entry::Entry;
use hakobu_core::error::{Cause, Operation};
use hakobu_core::limit::{Limits, Work};
use hakobu_core::unit::{Jobs, Kind};
use hakobu_sys::{AsFd, BorrowedFd, dir, meta};
use hakobu_tree::handle::{Budget, Handle};
pub(super) use options::TABLE;
use options::{Form, Order, Plan, Sign};
use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let out = Output::stdout();
    let is_terminal = out.is_terminal();
    let plan = |typed| plan(typed, is_terminal);
    carry_out(TABLE.parse(&arguments), plan, |plan| match plan.places.is_empty() {
        true => Ok(Lister::new(&plan, &out).run()),
        false => objects::list(&plan, &out),
    })
}

fn plan(typed: Typed, is_terminal: bool) -> Result<Plan, String> {
    if are_s3(&typed.paths)? {
        return objects::plan(&typed, is_terminal);
    }
    let mut plan = TABLE.read(&typed, Plan::new(is_terminal))?;
    TABLE.check_places(&typed, false, false)?;
    if plan.json {
        plan.form = Form::Json;
    }
    plan.paths = typed.paths;
    if plan.paths.is_empty() {
        plan.paths.push(".".into());
    }
    if let Some(filter) = plan.filters.of_names()? {
        plan.hidden_by = ArgumentFilters::new(&filter, &plan.paths)?;
    }
    Ok(plan)
}

/// A directory to be listed.
enum Waiting {
    /// An argument.
    Top(CString),
    /// A subdirectory, with its path.
    Below(Arc<Handle>, CString, Vec<u8>, Rules),
}

/// The rules for what is below an argument, and the length of the part of paths that they do not see.
type Rules = Option<(Arc<ArgumentFilter>, usize)>;

struct Lister<'a> {
    plan: &'a Plan,
    out: &'a Output,
    escape: Escape,
    budget: Arc<Budget>,
    long: long::Long,
    code: u8,
    /// Whether anything was written, so that an empty line precedes the next directory.
    begun: bool,
}

impl<'a> Lister<'a> {
    fn new(plan: &'a Plan, out: &'a Output) -> Lister<'a> {
        let limit = hakobu_sys::process::raise_open_files_limit();
        let limits = Limits::new(Work::Walk, Jobs::Fixed(1), None, limit);
        Lister {
            plan,
            out,
            escape: Escape::of_locale(),
            budget: Budget::new(limits.open_dirs_max),
            long: long::Long::new(plan),
            code: exit::OK,
            begun: false,
        }
    }

    fn run(mut self) -> u8 {
        let (mut files, mut waiting) = (Vec::new(), Vec::new());
        for path in &self.plan.paths {
            let Ok(name) = CString::new(path.as_bytes()) else { continue };
            match self.argument(&name) {
                Ok(entry) if self.plan.hidden_by.excludes(path.as_bytes(), b"", entry.kind()) => {}
                Ok(entry) if entry.kind() == Kind::Dir && !self.plan.directory => {
                    waiting.push(entry);
                }
                Ok(entry) => files.push(entry),
                Err(error) => self.fail(exit::USAGE, Operation::Stat, path.as_bytes(), error),
            }
        }
        let titled = self.plan.recursive || self.plan.paths.len() > 1;
        self.sort(&mut files);
        if !files.is_empty() {
            self.write(dir::cwd(), b"", &files, &waiting);
            self.begun = true;
        }
        self.sort(&mut waiting);
        let mut stack: Vec<Waiting> =
            waiting.into_iter().rev().map(|entry| Waiting::Top(entry.name)).collect();
        while let Some(next) = stack.pop() {
            self.directory(next, titled, &mut stack);
            if self.out.is_broken() {
                break;
            }
        }
        tool::close_with(self.out, self.code, exit::USAGE)
    }

    /// Examines an argument: a symlink to a directory is followed, unless the format shows symlinks.
    fn argument(&self, name: &CStr) -> std::io::Result<Entry> {
        let shows_links =
            self.plan.form == Form::Long || self.plan.directory || self.plan.sign == Sign::All;
        let entry = Entry::with_meta(name.to_owned(), meta::of(dir::cwd(), name, false)?);
        if !shows_links
            && entry.kind() == Kind::Symlink
            && let Ok(meta) = meta::of(dir::cwd(), name, true)
            && meta.kind == Kind::Dir
        {
            return Ok(Entry::with_meta(name.to_owned(), meta));
        }
        Ok(entry)
    }

    fn fail(&mut self, code: u8, operation: Operation, path: &[u8], error: std::io::Error) {
        let json = self.plan.json.then_some(self.out);
        tool::fail_at(json, self.escape, operation, path, &Cause::System(error));
        self.code = self.code.max(code);
    }

    /// Lists one directory; pushes its subdirectories on the stack, if requested.
    fn directory(&mut self, waiting: Waiting, titled: bool, stack: &mut Vec<Waiting>) {
        let (opened, path, code, rules) = match waiting {
            Waiting::Top(name) => {
                let path = name.to_bytes().to_vec();
                let rules = self.plan.hidden_by.of(&path).cloned();
                let rules = rules.map(|rules| (rules, join(&path, b"").len()));
                (Handle::top(&self.budget, &name, true), path, exit::USAGE, rules)
            }
            Waiting::Below(above, name, path, rules) => {
                (above.child(&name), path, exit::FAILURE, rules)
            }
        };
        let listed = opened.and_then(|(handle, _)| {
            let fd = handle.fd()?;
            Ok((handle, fd))
        });
        let (handle, fd) = match listed {
            Ok(opened) => opened,
            Err(error) => return self.fail(code, Operation::List, &path, error),
        };
        let dir = path.as_slice();
        let excludes = rules.as_ref().map(|(rules, unseen)| {
            move |name: &CStr, kind: Kind| {
                let below = join(dir, name.to_bytes());
                rules.excludes(below.get(*unseen..).unwrap_or_default(), kind == Kind::Dir)
            }
        });
        let excludes = excludes.as_ref().map(|call| call as entry::Excludes<'_>);
        let mut entries = match entry::read((*fd).as_fd(), self.plan, excludes) {
            Ok(entries) => entries,
            Err(error) => return self.fail(code, Operation::List, &path, error),
        };
        for entry in &mut entries {
            if let Some(error) = entry.complete((*fd).as_fd(), self.plan) {
                let below = join(&path, entry.name.to_bytes());
                self.fail(exit::FAILURE, Operation::Stat, &below, error);
            }
        }
        self.sort(&mut entries);
        self.title(&path, titled, &entries);
        self.write((*fd).as_fd(), &path, &entries, &[]);
        if self.plan.recursive {
            let below = entries.iter().rev().filter(|entry| {
                entry.kind() == Kind::Dir && !matches!(entry.name.to_bytes(), b"." | b"..")
            });
            stack.extend(below.map(|entry| {
                let path = join(&path, entry.name.to_bytes());
                Waiting::Below(Arc::clone(&handle), entry.name.clone(), path, rules.clone())
            }));
        }
    }

    fn sort(&self, entries: &mut [Entry]) {
        match self.plan.order {
            Order::AsRead => {}
            Order::Name => entries.sort_by(|a, b| a.name.cmp(&b.name)),
            Order::Newest => entries.sort_by(|a, b| {
                b.meta
                    .map(|meta| meta.mtime)
                    .cmp(&a.meta.map(|meta| meta.mtime))
                    .then_with(|| a.name.cmp(&b.name))
            }),
            Order::Largest => entries.sort_by(|a, b| {
                b.meta
                    .map(|meta| meta.size)
                    .cmp(&a.meta.map(|meta| meta.size))
                    .then_with(|| a.name.cmp(&b.name))
            }),
        }
        if self.plan.reverse && self.plan.order != Order::AsRead {
            entries.reverse();
        }
    }

    /// Writes the headline of a directory, and the space that its entries use.
    fn title(&mut self, path: &[u8], titled: bool, entries: &[Entry]) {
        if self.plan.form == Form::Json {
            return;
        }
        let mut out = Vec::new();
        if titled {
            if self.begun {
                out.push(b'\n');
            }
            self.plan.names.push(path, &mut out);
            out.extend_from_slice(b":\n");
        }
        self.begun = true;
        if self.plan.form == Form::Long {
            let metas = entries.iter().filter_map(|entry| entry.meta);
            let bytes: u64 = metas.map(|meta| meta.allocated_bytes()).sum();
            out.extend_from_slice(b"total ");
            let total = match self.plan.human {
                true => crate::number::ceiled(bytes),
                false => bytes.div_ceil(1024).to_string(),
            };
            out.extend_from_slice(total.as_bytes());
            out.push(self.plan.end);
        }
        self.out.write(&out);
    }

    /// Writes entries of one directory in the requested format; see [`long::Long::push`].
    fn write(&mut self, dir: BorrowedFd<'_>, path: &[u8], entries: &[Entry], also: &[Entry]) {
        let mut out = Vec::with_capacity(64 * entries.len());
        let inode = name::inode_width(entries);
        match self.plan.form {
            Form::Json => {
                for entry in entries {
                    json::push(dir, &join(path, entry.name.to_bytes()), entry, &mut out);
                }
            }
            Form::Long => self.long.push(dir, entries, also, &mut out),
            Form::Lines => {
                for entry in entries {
                    name::push(entry, self.plan, inode, &mut out);
                    out.push(self.plan.end);
                }
            }
            Form::Columns => {
                let cells = entries.iter().map(|entry| {
                    let mut cell = Vec::new();
                    name::push(entry, self.plan, inode, &mut cell);
                    cell
                });
                columns::push(&cells.collect::<Vec<_>>(), self.plan.width, &mut out);
            }
        }
        self.out.write(&out);
    }
}

fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    match path {
        [] => name.to_vec(),
        [.., b'/'] => [path, name].concat(),
        _ => [path, b"/", name].concat(),
    }
}

#[cfg(test)]
mod tests;
