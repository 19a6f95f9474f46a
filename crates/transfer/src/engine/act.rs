//! Carrying out what was decided for one entry, and what follows from it: the source may go, the
//! target's directory was touched, somebody is told.

use super::attributes::Have;
use super::data::Stop;
use super::entry::{Done, Entry};
use super::node::Failure;
use super::special::{Special, is_unsafe_link};
use super::tell::{Begun, Told};
use super::{Engine, State, TargetMode};
use crate::error::{Class, Operation};
use crate::event::Change;
use crate::meter::Phase;
use crate::policy::{Action, Content};
use crate::unit::{Kind, Meta};
use hakobu_sys::{OwnedFd, dir, errno, meta};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

impl Engine<'_> {
    /// Carries out an action on one entry that is not a directory.
    #[expect(clippy::too_many_arguments, reason = "the whole of one decision")]
    pub(super) fn act(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        opened: Option<OwnedFd>,
        source: &Meta,
        target: Option<&Meta>,
        action: Action,
        compared: bool,
        begun: Option<Begun>,
    ) -> Result<(), Stop> {
        let mut target = target;
        let text = match source.kind {
            Kind::Symlink => {
                self.step(&state.station, Phase::Read, 1);
                let text = dir::read_link(entry.source_dir()?, entry.name)
                    .map_err(Failure::of(Operation::Read))?;
                if self.policy.safe_links {
                    let mut path = Vec::new();
                    entry.node.push_path(&mut path);
                    path.push(b'/');
                    path.extend_from_slice(entry.target_name.to_bytes());
                    if is_unsafe_link(text.to_bytes(), &path) {
                        state.totals.skipped += 1;
                        let reason = "it is a symlink that leads out of the tree (--safe-links)";
                        let source = Some(entry.source_path());
                        self.notice(Operation::Read, source, None, reason, Class::Notice);
                        return Ok(());
                    }
                }
                Some(text)
            }
            _ => None,
        };
        let action = match (&text, action, entry.target) {
            (Some(text), Action::Compare, Some((dir, _))) => {
                let there = dir::read_link(dir, entry.target_name);
                if there.is_ok_and(|there| there == *text) {
                    Action::Metadata
                } else {
                    Action::Update
                }
            }
            _ => action,
        };
        if action == Action::Metadata
            && let (Some(target), Some(_)) = (target, entry.target)
        {
            return self.keep_content(state, entry, source, target, text, begun);
        }
        if !self.policy.link_dest.is_empty()
            && self.link_from_dest(state, entry, source, target, text.as_deref(), begun)?
        {
            return Ok(());
        }
        if let Some(there) = target
            && there.kind == Kind::Dir
        {
            self.make_way(state, entry)?;
            target = None;
        }
        let mut change = match (target, source.kind) {
            (Some(there), Kind::File) if there.kind == Kind::File => {
                self.content_change(source, there, compared)
            }
            (Some(there), _) if there.kind == source.kind => {
                Change { checksum: true, ..self.time_change(source, there) }
            }
            _ => Change {
                created: true,
                transferred: source.kind == Kind::File,
                ..Change::default()
            },
        };
        if let Some(there) = target
            && !change.created
            && self.items
        {
            let want = self.want(source, target, entry.target.as_ref().map(|(_, info)| info));
            change.mode = there.kind != Kind::Symlink && want.mode != there.mode;
            change.owner = want.uid.is_some_and(|uid| uid != there.uid);
            change.group = want.gid.is_some_and(|gid| gid != there.gid);
        }
        let link = text.as_ref().map(|text| PathBuf::from(OsStr::from_bytes(text.to_bytes())));
        let done = match (&text, source.kind) {
            _ if self.mode == TargetMode::Told => Done::content(source.size),
            (Some(text), _) => {
                self.make_special(state, entry, source, target, &Special::Symlink(text))?
            }
            (None, Kind::File) => match self.policy.content {
                Content::Copy => self.copy_file(state, entry, opened, source, target)?,
                Content::HardLink => self.link_source(state, entry, target)?,
                Content::Symlink => self.symlink_source(state, entry, source, target)?,
            },
            _ => self.make_special(state, entry, source, target, &Special::Node)?,
        };
        self.arrived(
            state,
            entry,
            source,
            Told { change, bytes_moved: done.bytes, link, begun },
            done,
        );
        Ok(())
    }

    /// An entry is at the target: counts it, tells it, and does what follows.
    pub(super) fn arrived(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        told: Told,
        done: Done,
    ) {
        entry.node.touch();
        let totals = &mut state.totals;
        if source.kind == Kind::File {
            totals.files += 1;
            totals.files_created += u64::from(told.change.created);
            totals.bytes += done.bytes;
        } else {
            totals.links_created += 1;
        }
        self.tell(entry, source, told);
        self.finish_entry(state, entry, source, done);
    }

    /// The content at the target is right: only attributes may have to change.
    pub(super) fn keep_content(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        target: &Meta,
        text: Option<std::ffi::CString>,
        begun: Option<Begun>,
    ) -> Result<(), Stop> {
        let Some((target_dir, info)) = entry.target else { return Ok(()) };
        let want = self.want(source, Some(target), Some(&info));
        let from = (entry.source_dir()?, entry.name);
        let to = (target_dir, entry.target_name);
        let change = self.attribute_changes(state, from, to, target, &want)?;
        let mut done = Done { checked: true, ..Done::default() };
        if change.any() {
            if self.mode == TargetMode::Real {
                let have = Have::from(target);
                let settled = self.settle_named(state, from, to, source.kind, &want, have, &change);
                done.attributes = settled.err();
                done.checked = done.attributes.is_none();
            }
            state.totals.metadata += 1;
        } else {
            state.totals.skipped += 1;
            state.totals.bytes_skipped += if source.kind == Kind::File { source.size } else { 0 };
        }
        done.unprivileged = self.count_unprivileged(source, &want, state);
        if change.any() || self.items_unchanged {
            let link = text.map(|text| PathBuf::from(OsStr::from_bytes(text.to_bytes())));
            self.tell(entry, source, Told { change, bytes_moved: 0, link, begun });
        }
        self.finish_entry(state, entry, source, done);
        Ok(())
    }

    /// Reports attributes that could not be set, and removes the source where that is asked and
    /// its target is proven.
    pub(super) fn finish_entry(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        done: Done,
    ) {
        if let Some(failure) = done.attributes {
            self.fail(state, failure, Some(entry.source_path()), Some(entry.target_path()));
        } else if done.unprivileged {
            state.totals.failed += 1;
            let reason = "only the superuser may give files away";
            let (source, target) = (Some(entry.source_path()), Some(entry.target_path()));
            self.notice(Operation::SetOwner, source, target, reason, Class::Partial);
        }
        if self.policy.remove_source_files && self.mode == TargetMode::Real {
            self.remove_source(state, entry, source, done.checked);
        }
    }

    pub(super) fn remove_source(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        checked: bool,
    ) {
        use std::sync::atomic::Ordering::Relaxed;
        if !checked {
            entry.node.kept_sources.fetch_add(1, Relaxed);
            return;
        }
        self.step(&state.station, Phase::Remove, 2);
        let removed = (|| {
            let dir_fd = entry.source_dir()?;
            let now =
                meta::of(dir_fd, entry.name, entry.follow).map_err(Failure::of(Operation::Stat))?;
            // Not the change time: removing another name of the file changes that.
            let same = now.size == source.size && now.mtime == source.mtime;
            if now.identity() != source.identity() || !same {
                let error = std::io::Error::other("it was changed after it was copied");
                return Err(Failure { operation: Operation::Remove, error });
            }
            dir::unlink(dir_fd, entry.name).map_err(Failure::of(Operation::Remove))
        })();
        match removed {
            Ok(()) => state.totals.removed_sources += 1,
            Err(failure) => {
                entry.node.kept_sources.fetch_add(1, Relaxed);
                self.fail(state, failure, Some(entry.source_path()), None);
            }
        }
    }

    /// A directory is where a file shall be: it goes only if it is empty, or if `--force` or
    /// `--delete` allows it.
    pub(super) fn make_way(&self, state: &mut State, entry: &Entry<'_>) -> Result<(), Stop> {
        if self.mode != TargetMode::Real {
            return Ok(());
        }
        let Some((target_dir, _)) = entry.target else { return Ok(()) };
        let force = self.policy.force || self.policy.delete != crate::policy::Delete::No;
        self.step(&state.station, Phase::Remove, 1);
        match dir::rmdir(target_dir, entry.target_name) {
            Ok(()) => return Ok(()),
            Err(error) if !force => {
                return Err(Failure { operation: Operation::Remove, error }.into());
            }
            Err(_) => {}
        }
        self.remove_extraneous(state, entry.node, entry.fds, entry.target_name, Kind::Dir);
        match meta::of(target_dir, entry.target_name, false) {
            Err(error) if errno::is(&error, errno::ENOENT) => Ok(()),
            Err(error) => Err(Failure { operation: Operation::Stat, error }.into()),
            Ok(_) => {
                let error = std::io::Error::from_raw_os_error(errno::ENOTEMPTY);
                Err(Failure { operation: Operation::Remove, error }.into())
            }
        }
    }
}
