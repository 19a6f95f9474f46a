//! Objects written to a device or FIFO: a copy with such a target writes into it, as cp does, and never replaces it.
//! Its attributes stay unchanged.

use super::body::unreadable;
use super::folders::failed;
use super::place::Place;
use super::stream::{HELD_BYTES_MAX, StreamError, stream};
use crate::object::Side;
use crate::object::core::Core;
use crate::object::ends::{CHANGED_WHILE_READ, Object};
use crate::object::failed::Failed;
use crate::object::moving::{Done, Moving};
use crate::publish::is_node;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::Kind;
use hakobu_sys::{AsFd, OwnedFd, errno, file, meta};
use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

/// Interval of checks for a stop while waiting for a FIFO's reader.
const STEP: Duration = Duration::from_millis(50);

/// Writes an object into the device or FIFO that has its name, in order. Success is reported only if every byte was
/// taken.
///
/// # Errors
/// Those of the request or the target; `Stopped` also while a FIFO has no reader. Bytes already written stay.
pub(super) async fn run(core: &Core<'_>, moving: &Moving) -> Result<Done, Failed> {
    let place = Place::of(core, moving).await?;
    let node = open(core, &place).await?;
    let client = core.store(Side::Source)?;
    let Object { bucket, key, version, .. } = Object::source(core, moving)?;
    // The budget is never closed.
    let _room = core.room(HELD_BYTES_MAX.min(moving.entry.meta.size)).await;
    core.doing.turn(Phase::Write);
    let mut taker = Taker { node: File::from(node), core };
    let listed = &moving.entry;
    let is_known = !listed.etag.is_empty() && !moving.is_unknown();
    let known = is_known.then(|| (listed.etag.to_string(), listed.meta.size));
    let moved = stream(client, bucket, &key, version, known, &mut taker).await;
    let bytes = moved.map_err(|error| match error {
        StreamError::Write(_) if core.engine.is_stopped() => Failed::Stopped,
        StreamError::Write(error) => Failed::File(Operation::Write, Side::Target, error),
        StreamError::Request(error) => unreadable(moving, error),
    })?;
    if bytes != moving.entry.meta.size && !moving.is_unknown() {
        return Err(Failed::Reason(Operation::Read, Side::Source, CHANGED_WHILE_READ));
    }
    Ok(Done { bytes, ..Done::default() })
}

/// Opens the node. Waits for the reader of a FIFO.
async fn open(core: &Core<'_>, place: &Place) -> Result<OwnedFd, Failed> {
    let folder = place.folder.fd.as_fd();
    loop {
        match file::open_write(folder, &place.name) {
            Ok(node) => {
                let there = meta::of_fd(&node).map_err(failed(Operation::Stat))?;
                if is_node(there.kind) {
                    return Ok(node);
                }
                let why = "something else took the place of the device or FIFO meanwhile";
                return Err(Failed::Reason(Operation::Write, Side::Target, why));
            }
            Err(error) if errno::is(&error, errno::ENXIO) => {
                let there = meta::of(folder, &place.name, false);
                if there.map_err(failed(Operation::Stat))?.kind != Kind::Fifo {
                    return Err(failed(Operation::Write)(error));
                }
            }
            Err(error) => return Err(failed(Operation::Write)(error)),
        }
        if core.engine.is_stopped() {
            return Err(Failed::Stopped);
        }
        tokio::time::sleep(STEP).await;
    }
}

/// Writes the bytes of the object; ends early if the run is asked to stop.
struct Taker<'a, 'e> {
    node: File,
    core: &'a Core<'e>,
}

impl Write for Taker<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            if self.core.engine.is_stopped() {
                return Err(io::Error::other("stopped"));
            }
            match self.node.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    file::wait_writable(self.node.as_fd(), STEP.as_millis() as u32)?;
                }
                written => {
                    let count = written?;
                    self.core.doing.lane().bytes(count as u64);
                    return Ok(count);
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
