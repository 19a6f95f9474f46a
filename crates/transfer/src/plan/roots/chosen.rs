//! Entries that an earlier run chose (`Spec::chosen`). They are not examined here, one after the other: workers do
//! that as they come to them.

use super::Roots;
use crate::failure::{Failure, c_string};
use crate::local::target_dir::Node;
use crate::local::{Engine, Unit};
use crate::plan::{Argument, Chosen, Place};
use crate::policy::Policy;
use hakobu_core::error::Operation;
use hakobu_core::unit::Kind;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Makes the units of chosen entries below a folder. Directories above them are created where they are missing, and
/// not searched for leftovers: other runs write there at the same time.
pub fn chosen_roots(
    engine: &Engine<'_>,
    policy: &Policy,
    place: &Place,
    folder: &Path,
    chosen: &Chosen,
) -> Vec<Unit> {
    let mut roots = Roots::new(engine, policy, place);
    (roots.swept, roots.sweeps) = (true, false);
    let mut argument = Argument {
        typed: folder.to_owned(),
        folder: folder.to_owned(),
        names: Vec::new(),
        relative: true,
        dot: false,
        follow: false,
        top: Some(Arc::from(folder)),
        dir_only: false,
    };
    let mut known: Option<(&[u8], Option<Arc<Node>>)> = None;
    for (path, kind) in &chosen.names {
        let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..)),
            None => (&b""[..], Some(&**path)),
        };
        let name = name.unwrap_or_default();
        let entered = match &known {
            Some((folder, node)) if *folder == above => Ok(node.clone()),
            _ => roots.enter(&mut argument, above, name),
        };
        let added = entered.and_then(|node| {
            if let Some(node) = &node {
                roots.add(node, name, *kind)?;
            }
            known = Some((above, node));
            Ok(())
        });
        if let Err(failure) = added {
            known = None;
            engine.argument_failed(failure, &folder.join(OsStr::from_bytes(path)));
        }
    }
    engine.all_found();
    roots.into_units()
}

impl<'e, 'p> Roots<'e, 'p> {
    pub(super) fn new(
        engine: &'e Engine<'p>,
        policy: &'e Policy,
        place: &'e Place,
    ) -> Roots<'e, 'p> {
        let (nodes, held, units) = Default::default();
        let (swept, sweeps, owner) = (false, true, None);
        Roots { engine, policy, place, units, nodes, held, swept, sweeps, owner }
    }

    pub(super) fn into_units(self) -> Vec<Unit> {
        let Roots { engine, units, held, nodes, .. } = self;
        drop(nodes);
        for node in held.iter().rev() {
            engine.release_hold(node);
        }
        units
    }
}

impl Roots<'_, '_> {
    /// Returns the node of the directory `above`, which has the entry `name`; `None` if nothing is transferred there.
    fn enter(
        &mut self,
        argument: &mut Argument,
        above: &[u8],
        name: &[u8],
    ) -> Result<Option<Arc<Node>>, Failure> {
        let mut node = self.base(argument, name)?;
        let mut end = 0;
        for step in above.split(|byte| *byte == b'/').filter(|_| !above.is_empty()) {
            let path = above.get(..end + step.len()).unwrap_or_default();
            end += step.len() + 1;
            let step = c_string(step).map_err(Failure::of(Operation::Read))?;
            match self.implied(argument, path, &node, &step)? {
                Some(next) => node = next,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    fn add(&mut self, node: &Arc<Node>, name: &[u8], kind: Kind) -> Result<(), Failure> {
        let name = c_string(name).map_err(Failure::of(Operation::Read))?;
        self.engine.add_known(&mut self.units, node, &name, kind);
        Ok(())
    }
}
