//! The engines that start workers.

use std::ffi::OsString;

/// An engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Processes of this machine.
    Local,
    /// Slurm.
    Slurm,
    /// Ray, at an address.
    Ray(String),
    /// Kubernetes: manifests are printed.
    Kubernetes,
    /// GNU parallel, with a file of hosts.
    Parallel(OsString),
}

impl Engine {
    /// `ENGINE:N`: an engine that can be waited for, and a number of workers.
    pub fn with_count(text: &str) -> Option<(Engine, u64)> {
        let (engine, count) = text.split_once(':')?;
        let engine = match engine {
            "local" => Engine::Local,
            "slurm" => Engine::Slurm,
            "ray" => Engine::Ray("auto".to_owned()),
            _ => return None,
        };
        let count = count.parse().ok().filter(|count| *count > 0)?;
        Some((engine, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_have_a_count() {
        assert_eq!(Engine::with_count("local:4"), Some((Engine::Local, 4)));
        assert_eq!(Engine::with_count("slurm:16"), Some((Engine::Slurm, 16)));
        for other in ["local", "local:0", "local:x", "k8s:3", ":3", ""] {
            assert_eq!(Engine::with_count(other), None, "{other}");
        }
    }
}
