//! One profile of the AWS configuration files (AWS SDKs and Tools Reference Guide, "Shared config
//! and credentials files"), read with the SDK's own parser.

use aws_runtime::env_config::file::EnvConfigFiles;
use aws_runtime::env_config::property::PropertiesKey;
use aws_runtime::env_config::section::EnvConfigSections;
use aws_types::os_shim_internal::{Env, Fs};
use std::collections::HashMap;
use std::path::Path;

/// How a variable of the environment is looked up; empty ones count as not set.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The settings of the profile that is used.
pub(super) struct Profile {
    name: String,
    sections: EnvConfigSections,
}

impl Profile {
    /// Reads the files where there are any. `name` is what `--profile` says; else `AWS_PROFILE`
    /// counts, else `default`.
    ///
    /// # Errors
    /// A sentence: a file cannot be read or parsed, or the profile that was asked for is in none.
    pub fn load(name: Option<&str>, lookup: Lookup<'_>) -> Result<Option<Profile>, String> {
        let asked = name.map(str::to_owned).or_else(|| lookup("AWS_PROFILE"));
        let home = lookup("HOME").unwrap_or_default();
        let file = |variable, standard: &str| {
            lookup(variable).unwrap_or_else(|| format!("{home}/.aws/{standard}"))
        };
        let config = file("AWS_CONFIG_FILE", "config");
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let missing =
            |name: &str| format!("there is no profile `{name}` in {config} or {credentials}");
        // Most runs in containers have neither: the parser is not even woken.
        if !Path::new(&config).exists() && !Path::new(&credentials).exists() {
            return match asked {
                Some(name) => Err(missing(&name)),
                None => Ok(None),
            };
        }
        let variables: HashMap<String, String> = [
            ("AWS_CONFIG_FILE", config.clone()),
            ("AWS_SHARED_CREDENTIALS_FILE", credentials.clone()),
            ("HOME", home.clone()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        let name = asked.clone().unwrap_or_else(|| "default".to_owned());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|e| format!("cannot start a runtime: {e}"))?;
        let (fs, env, files) = (Fs::real(), Env::from(variables), EnvConfigFiles::default());
        let loading = aws_config::profile::load(&fs, &env, &files, Some(name.clone().into()));
        let sections = runtime
            .block_on(loading)
            .map_err(|e| format!("AWS configuration files: {}", chain(&e)))?;
        if sections.get_profile(&name).is_none() {
            return if asked.is_some() { Err(missing(&name)) } else { Ok(None) };
        }
        Ok(Some(Profile { name, sections }))
    }

    /// A property of the profile.
    pub fn get(&self, key: &str) -> Option<String> {
        let value = self.sections.get_profile(&self.name)?.get(key)?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// A property of a group, as `addressing_style` of `s3`, written in indented lines.
    pub fn get_nested(&self, group: &str, key: &str) -> Option<String> {
        let lines = self.get(group)?;
        let mut pairs = lines.lines().filter_map(|line| line.split_once('='));
        let (_, value) = pairs.find(|(name, _)| name.trim() == key)?;
        Some(value.trim().to_owned())
    }

    /// `endpoint_url` for S3: of the profile's `services` section, then its own.
    pub fn endpoint_url(&self) -> Option<String> {
        let of_service = || {
            let services = self.get("services")?;
            let key = PropertiesKey::builder()
                .section_key("services")
                .section_name(services)
                .property_name("s3")
                .sub_property_name("endpoint_url")
                .build()
                .ok()?;
            self.sections.other_sections().get(&key).map(|url| url.trim().to_owned())
        };
        of_service().or_else(|| self.get("endpoint_url"))
    }
}

/// An error with all its causes, in one line.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(e) = cause {
        let words = e.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = e.source();
    }
    text
}
