//! Initial number of jobs for `-j auto` without a remembered one: 1 for rotating disks, twice the CPUs for
//! solid-state disks, the same but at least 32 for network and FUSE file systems, the CPUs for memory. (Object
//! stores have their own seed in the object engine.)

use hakobu_core::unit::Jobs;

/// Kind of storage of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Memory, or unknown: limited by the CPU.
    Memory,
    /// Solid-state disk: requests overlap, so more jobs than CPUs are useful.
    Solid,
    /// Network or FUSE file system: each call waits for an answer, and many can wait in parallel.
    Foreign,
    /// Spinning disk: parallel requests cause seeks.
    Rotating,
}

/// Fewest jobs for file systems with slow calls: starting with two would waste most of a short run on
/// growing.
const FOREIGN_MIN: usize = 32;

/// Initial number of workers, at least one.
pub fn jobs(asked: Jobs, mediums: &[Medium], cpus: usize) -> usize {
    let wanted = match asked {
        Jobs::Fixed(jobs) => jobs,
        Jobs::Auto if mediums.contains(&Medium::Rotating) => 1,
        Jobs::Auto if mediums.contains(&Medium::Foreign) => FOREIGN_MIN.max(2 * cpus),
        Jobs::Auto if mediums.contains(&Medium::Solid) => 2 * cpus,
        Jobs::Auto => cpus,
    };
    wanted.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds() {
        use Medium::*;
        assert_eq!(jobs(Jobs::Auto, &[Memory, Memory], 2), 2);
        assert_eq!(jobs(Jobs::Auto, &[Memory, Solid], 2), 4);
        assert_eq!(jobs(Jobs::Auto, &[Solid, Rotating], 8), 1);
        assert_eq!(jobs(Jobs::Auto, &[Memory, Foreign], 2), 32);
        assert_eq!(jobs(Jobs::Auto, &[Foreign, Solid], 24), 48);
        assert_eq!(jobs(Jobs::Auto, &[Foreign, Rotating], 8), 1);
        assert_eq!(jobs(Jobs::Fixed(7), &[Rotating], 2), 7);
        assert_eq!(jobs(Jobs::Fixed(0), &[Solid], 2), 1);
    }
}
