//! A profile of the AWS configuration files (AWS SDKs and Tools Reference Guide, "Shared config and
//! credentials files"), parsed by the SDK.

mod names;

use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_runtime::env_config::property::PropertiesKey;
use aws_runtime::env_config::section::EnvConfigSections;
use names::{identifier, with_identifiers};
use std::borrow::Cow;
use std::path::Path;

/// Looks up an environment variable; empty ones count as unset.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Settings of the selected profile.
pub(super) struct Profile {
    name: String,
    sections: EnvConfigSections,
    /// The files, if names in them were changed.
    renamed: Option<EnvConfigFiles>,
}

impl Profile {
    /// Reads the files, if they exist. `name` is the value of `--profile`; else `AWS_PROFILE` is used, else
    /// `default`.
    ///
    /// # Errors
    /// A message: a file cannot be read or parsed, or the requested profile does not exist.
    pub fn load(name: Option<&str>, lookup: Lookup<'_>) -> Result<Option<Profile>, String> {
        let asked = name.map(str::to_owned).or_else(|| lookup("AWS_PROFILE"));
        let home = lookup("HOME");
        let file = |variable, standard: &str| {
            let path = lookup(variable).unwrap_or_else(|| format!("~/.aws/{standard}"));
            // As in the SDKs, a path that cannot be expanded stays as it is.
            let below_home = path.strip_prefix("~/").zip(home.as_ref());
            below_home.map(|(rest, home)| format!("{home}/{rest}")).unwrap_or(path)
        };
        let config = file("AWS_CONFIG_FILE", "config");
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let missing =
            |name: &str| format!("there is no profile `{name}` in {config} or {credentials}");
        // Skip the parser without files, as in most containers.
        if !Path::new(&config).exists() && !Path::new(&credentials).exists() {
            return match asked {
                Some(name) => Err(missing(&name)),
                None => Ok(None),
            };
        }
        let mut files = EnvConfigFiles::builder();
        let mut renames = false;
        for (kind, path) in
            [(EnvConfigFileKind::Config, &config), (EnvConfigFileKind::Credentials, &credentials)]
        {
            if Path::new(path).exists() {
                let text = std::fs::read_to_string(path)
                    .map_err(|e| format!("cannot read the AWS configuration file {path}: {e}"))?;
                let text = with_identifiers(&text, kind);
                renames |= matches!(text, Cow::Owned(_));
                files = files.with_contents(kind, text);
            }
        }
        let name = asked.as_deref().map_or(Cow::Borrowed("default"), identifier).into_owned();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|e| format!("cannot start a runtime: {e}"))?;
        // All input is in `files`: environment and file system are not accessed.
        let (fs, env, files) = (Default::default(), Default::default(), files.build());
        let loading = aws_config::profile::load(&fs, &env, &files, Some(name.clone().into()));
        let sections = runtime
            .block_on(loading)
            .map_err(|e| format!("AWS configuration files: {}", chain(&e)))?;
        if sections.get_profile(&name).is_none() {
            return asked.map_or(Ok(None), |asked| Err(missing(&asked)));
        }
        // Without a name the chain of providers finds the default profile by itself.
        let renamed = (renames && asked.is_some()).then_some(files);
        Ok(Some(Profile { name, sections, renamed }))
    }

    /// Its name and the files for providers of credentials, if those cannot read the files on disk.
    pub fn renamed(&self) -> Option<(String, EnvConfigFiles)> {
        self.renamed.clone().map(|files| (self.name.clone(), files))
    }

    /// Value of a property.
    pub fn get(&self, key: &str) -> Option<String> {
        let value = self.sections.get_profile(&self.name)?.get(key)?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Value of a nested property, such as `addressing_style` of `s3`, in indented lines.
    pub fn get_nested(&self, group: &str, key: &str) -> Option<String> {
        let lines = self.get(group)?;
        let mut pairs = lines.lines().filter_map(|line| line.split_once('='));
        let (_, value) = pairs.find(|(name, _)| name.trim() == key)?;
        Some(value.trim().to_owned())
    }

    /// `endpoint_url` for S3: from the profile's `services` section, else its own.
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

/// An error with all its causes on one line.
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
