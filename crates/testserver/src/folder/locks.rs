//! Locks of objects and of parts: content, checksums and attributes are several files, and a request sees or replaces
//! all of them or none.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::hash::{BuildHasher, Hash, RandomState};

/// Number of locks; names share them. They are held for a few system calls, and never while a body is received.
const COUNT: usize = 64;

/// The locks of a server. Nobody holds two of them, except whoever holds all.
#[derive(Debug)]
pub struct Locks {
    hasher: RandomState,
    objects: [RwLock<()>; COUNT],
    parts: [RwLock<()>; COUNT],
}

impl Default for Locks {
    fn default() -> Locks {
        let locks = || std::array::from_fn(|_| RwLock::new(()));
        Locks { hasher: RandomState::new(), objects: locks(), parts: locks() }
    }
}

impl Locks {
    fn place(&self, of: impl Hash) -> usize {
        (self.hasher.hash_one(of) % COUNT as u64) as usize
    }

    /// Keeps an object as it is.
    pub fn read(&self, bucket: &str, key: &str) -> RwLockReadGuard<'_, ()> {
        self.objects[self.place((bucket, key))].read()
    }

    /// Allows to change an object.
    pub fn write(&self, bucket: &str, key: &str) -> RwLockWriteGuard<'_, ()> {
        self.objects[self.place((bucket, key))].write()
    }

    /// Keeps all objects as they are.
    pub fn write_all(&self) -> Vec<RwLockWriteGuard<'_, ()>> {
        self.objects.iter().map(RwLock::write).collect()
    }

    /// Allows to change a part of an upload.
    pub fn part(&self, upload: &str, number: i32) -> RwLockWriteGuard<'_, ()> {
        self.parts[self.place((upload, number))].write()
    }
}
