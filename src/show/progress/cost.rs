//! The cost of an entry in bytes: how many bytes move in the time that an entry takes beside its content. By least
//! squares over short windows of a run, `seconds = a · entries + b · bytes`, it is a / b. Pure.

/// Length of a window, in seconds.
const WINDOW_S: f64 = 0.5;
/// Cost, in bytes, while the windows do not tell entries from bytes apart: all have the same mixture.
const USUAL_BYTES: f64 = 16384.0;
/// Minimum determinant of the normal equations, relative to the product of their diagonal.
const APART_MIN: f64 = 1e-3;
/// Maximum cost, in bytes.
const MOST_BYTES: f64 = 1e9;

/// Entries and bytes that were finished in a time.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    entries: f64,
    bytes: f64,
    seconds: f64,
}

/// The sums of the normal equations; older windows count less.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    window: Window,
    entries_entries: f64,
    entries_bytes: f64,
    bytes_bytes: f64,
    entries_seconds: f64,
    bytes_seconds: f64,
}

impl Costs {
    /// Adds what was finished in some seconds. A window `memory_s` old counts 1/e.
    pub fn push(&mut self, entries: f64, bytes: f64, seconds: f64, memory_s: f64) {
        self.window.entries += entries;
        self.window.bytes += bytes;
        self.window.seconds += seconds;
        if self.window.seconds < WINDOW_S {
            return;
        }
        let Window { entries, bytes, seconds } = std::mem::take(&mut self.window);
        let kept = (-seconds / memory_s).exp();
        // A long window counts as several short ones.
        let add = |sum: &mut f64, x: f64, y: f64| *sum = *sum * kept + x * y / seconds;
        add(&mut self.entries_entries, entries, entries);
        add(&mut self.entries_bytes, entries, bytes);
        add(&mut self.bytes_bytes, bytes, bytes);
        add(&mut self.entries_seconds, entries, seconds);
        add(&mut self.bytes_seconds, bytes, seconds);
    }

    /// Returns the cost of an entry in bytes, never negative.
    pub fn entry_bytes(&self) -> f64 {
        let product = self.entries_entries * self.bytes_bytes;
        let determinant = product - self.entries_bytes * self.entries_bytes;
        if product <= 0.0 || determinant < APART_MIN * product {
            return USUAL_BYTES;
        }
        // Cramer's rule without the division by the determinant, which is positive.
        let of_entry =
            self.entries_seconds * self.bytes_bytes - self.bytes_seconds * self.entries_bytes;
        let of_byte =
            self.bytes_seconds * self.entries_entries - self.entries_seconds * self.entries_bytes;
        if of_entry <= 0.0 {
            0.0
        } else if of_byte <= 0.0 {
            MOST_BYTES
        } else {
            (of_entry / of_byte).min(MOST_BYTES)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_different_mixtures_tell_both_costs() {
        let mut costs = Costs::default();
        // An entry takes 2 ms, a byte 10 ns: an entry costs as much as 200 KB.
        for step in 0_u32..40 {
            let (entries, bytes) = if step % 2 == 0 { (400.0, 4e6) } else { (10.0, 98e6) };
            costs.push(entries, bytes, entries * 0.002 + bytes * 1e-8, 30.0);
        }
        assert!((costs.entry_bytes() - 200_000.0).abs() < 1.0, "{}", costs.entry_bytes());
    }

    #[test]
    fn one_mixture_tells_neither() {
        let mut costs = Costs::default();
        assert_eq!(costs.entry_bytes(), USUAL_BYTES);
        for _ in 0..40 {
            costs.push(100.0, 1e6, 0.1, 30.0);
        }
        assert_eq!(costs.entry_bytes(), USUAL_BYTES);
    }

    #[test]
    fn costs_are_not_negative() {
        // More entries in less time, and more bytes in less time.
        for (windows, cost) in [
            ([(100.0, 1e6, 0.5), (10.0, 1e6, 0.6), (100.0, 2e6, 0.9)], 0.0),
            ([(100.0, 1e6, 0.6), (100.0, 9e6, 0.5), (200.0, 1e6, 1.2)], MOST_BYTES),
        ] {
            let mut costs = Costs::default();
            for (entries, bytes, seconds) in windows {
                costs.push(entries, bytes, seconds, 30.0);
            }
            assert_eq!(costs.entry_bytes(), cost, "{costs:?}");
        }
    }
}
