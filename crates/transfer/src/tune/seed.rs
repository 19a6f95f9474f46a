//! The rule that `-j auto` starts from where nothing is remembered: rotating disk 1, solid-state disk
//! twice the CPUs, memory the CPUs. (Stores have a seed of their own: the engine of objects knows it.)

use crate::unit::Jobs;

/// What is known of a volume before the first byte moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Memory, or nobody says: the CPU is the limit.
    Memory,
    /// A disk without moving parts: requests overlap, so more of them than CPUs pay.
    Solid,
    /// A disk that turns: requests disturb each other.
    Rotating,
}

/// The number of workers to use, at least one and at most `open_files_max / 16` (each needs
/// descriptors of two directories and two files, with room for the rest).
pub fn jobs(asked: Jobs, mediums: &[Medium], cpus: usize, open_files_max: u64) -> usize {
    let wanted = match asked {
        Jobs::Fixed(jobs) => jobs,
        Jobs::Auto if mediums.contains(&Medium::Rotating) => 1,
        Jobs::Auto if mediums.contains(&Medium::Solid) => 2 * cpus,
        Jobs::Auto => cpus,
    };
    let room = usize::try_from(open_files_max / 16).unwrap_or(usize::MAX);
    wanted.min(room).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds() {
        use Medium::*;
        assert_eq!(jobs(Jobs::Auto, &[Memory, Memory], 2, 1 << 20), 2);
        assert_eq!(jobs(Jobs::Auto, &[Memory, Solid], 2, 1 << 20), 4);
        assert_eq!(jobs(Jobs::Auto, &[Solid, Rotating], 8, 1 << 20), 1);
        assert_eq!(jobs(Jobs::Fixed(7), &[Rotating], 2, 1 << 20), 7);
        assert_eq!(jobs(Jobs::Fixed(1000), &[Solid], 2, 64), 4);
        assert_eq!(jobs(Jobs::Fixed(1000), &[Solid], 2, 8), 1);
    }
}
