//! The campaigns included in the program.

use hakobu_lab::campaign::spec::CampaignSpec;
use std::fmt::Write as _;

/// An included campaign: its name and its text.
#[derive(Debug, PartialEq, Eq)]
pub struct Builtin {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! campaigns {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../campaigns/", $name, ".toml")),
        }),*]
    };
}

/// All of them.
pub const CAMPAIGNS: &[Builtin] = campaigns![
    "a-rsync-parallel",
    "b-aws-s3-requests",
    "c-fio-numjobs",
    "d-s3cmd-parallel",
    "e-cp-rsync-load",
];

/// Returns the campaign of this name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    CAMPAIGNS.iter().find(|campaign| campaign.name == name)
}

/// Returns their names, each with its question.
///
/// # Errors
/// One of them is invalid.
pub fn list() -> Result<String, String> {
    let mut out = String::new();
    for Builtin { name, text } in CAMPAIGNS {
        let spec = CampaignSpec::parse(name, text).map_err(|error| error.to_string())?;
        let _ = writeln!(out, "{name}\n    {}\n    {}", spec.header.title, spec.header.question);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_campaign_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("campaigns");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let names: Vec<String> = CAMPAIGNS.iter().map(|of| format!("{}.toml", of.name)).collect();
        assert_eq!(files, names);
        for campaign in CAMPAIGNS {
            let spec = CampaignSpec::parse(campaign.name, campaign.text).unwrap();
            assert_eq!(spec.header.name, campaign.name);
        }
        assert!(find("a-rsync-parallel").is_some() && find("a-rsync").is_none());
        assert!(list().unwrap().lines().count() == 3 * CAMPAIGNS.len());
    }
}
