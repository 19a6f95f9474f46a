//! Case tables for every rule of the manual page, and properties against a slow, simple matcher.

mod merge_files;
mod options;
mod patterns;
mod properties;
mod rules;
mod styles;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::{Decision, DirRules, Filter, FilterBuilder, Origin};

const TOP: Origin<'static> = Origin { source: b"/src/top", target: b"/dst", first: b"" };

/// Files of a test, by absolute path; the source is `/src/top`.
#[derive(Default)]
struct Files(HashMap<String, String>);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    fn load(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.0.get(std::str::from_utf8(path).ok()?).map(|text| text.clone().into_bytes())
    }

    fn build(&self, builder: FilterBuilder) -> Filter {
        self.try_build(builder).unwrap()
    }

    fn try_build(&self, builder: FilterBuilder) -> Result<Filter, String> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        builder.build(&mut |name| self.load(name).ok_or_else(missing)).map_err(|e| e.to_string())
    }

    /// Walks down to `path` (a trailing slash makes it a directory) and checks it.
    fn ask(&self, filter: &Filter, path: &str) -> Decision {
        self.try_ask(filter, &TOP, path).unwrap()
    }

    fn try_ask(
        &self,
        filter: &Filter,
        origin: &Origin<'_>,
        path: &str,
    ) -> Result<Decision, String> {
        let (path, is_dir) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
        let mut rules =
            filter.root(origin, &mut |file| Ok(self.load(file))).map_err(|e| e.to_string())?;
        if origin.first.is_empty() {
            rules = self.enter(filter, &rules, origin, "")?;
        }
        for (slash, _) in path.match_indices('/') {
            rules = self.enter(filter, &rules, origin, &path[..slash])?;
        }
        Ok(filter.check(&rules, path.as_bytes(), is_dir, false))
    }

    fn enter(
        &self,
        filter: &Filter,
        rules: &Arc<DirRules>,
        origin: &Origin<'_>,
        dir: &str,
    ) -> Result<Arc<DirRules>, String> {
        let top = String::from_utf8_lossy(origin.source);
        let below = if dir.is_empty() { format!("{top}/") } else { format!("{top}/{dir}/") };
        let read = &mut |name: &[u8]| match name {
            [b'/', ..] => Ok(self.load(name)),
            _ => match name.strip_prefix(b"../") {
                Some(name) => Ok(self.load(&[top.as_bytes(), b"/", name].concat())),
                None => Ok(self.load(&[below.as_bytes(), name].concat())),
            },
        };
        filter.enter(rules, dir.as_bytes(), read).map_err(|e| e.to_string())
    }
}

/// A builder with `--filter` rules.
fn rules(texts: &[&str]) -> FilterBuilder {
    let mut builder = FilterBuilder::default();
    for text in texts {
        builder.rule(text.as_bytes()).unwrap();
    }
    builder
}

/// Returns the decision for one entry in a tree without per-directory files.
fn decide(texts: &[&str], path: &str) -> Decision {
    let files = Files::default();
    files.ask(&files.build(rules(texts)), path)
}

fn hides(texts: &[&str], path: &str) -> bool {
    decide(texts, path).hide
}

const BOTH: Decision = Decision { hide: true, protect: true };
const HIDE: Decision = Decision { hide: true, protect: false };
const PROTECT: Decision = Decision { hide: false, protect: true };
const NEITHER: Decision = Decision { hide: false, protect: false };
