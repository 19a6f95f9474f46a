//! Changes to mode bits in chmod(1)'s and rsync's spelling (`--chmod=D755,Fu=rw,go-w`).

/// Parsed rules, applied in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChmodRules {}

/// Why a text is no such rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChmodError {}
impl ChmodRules {
    /// The mode that an entry gets.
    pub fn apply(&self, mode: u32, is_dir: bool) -> u32 {
        let _ = is_dir;
        mode
    }
}
