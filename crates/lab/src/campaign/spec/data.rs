//! `[data.NAME]`: data sets of a campaign, and the effect of the scale on them.

use crate::campaign::data::{DataRecipe, FileContent, FileSizes, tells_numbers_apart};
use crate::campaign::spec::toml;
use crate::campaign::spec::toml::{SpecError, TomlTable};

/// Most files of a data set: more indicate a mistake.
pub const COUNT_MAX: u64 = 100_000_000;
/// Most folders of a data set.
const LEAVES_MAX: u64 = 10_000_000;

/// Property that the scale multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleBy {
    /// The number of files.
    Count,
    /// File sizes.
    Size,
    /// Nothing.
    Nothing,
}

/// A data set of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSpec {
    /// Recipe at scale 1.
    pub recipe: DataRecipe,
    /// Property that the scale multiplies.
    pub by: ScaleBy,
    /// Fewest files after scaling.
    pub min_count: u64,
    /// Fewest bytes per file after scaling.
    pub min_bytes: u64,
}

impl DataSpec {
    /// Recipe at a scale.
    pub fn at(&self, scale: f64) -> DataRecipe {
        let mut recipe = self.recipe.clone();
        let sized = |bytes: u64| scale_number(bytes, scale, self.min_bytes);
        match self.by {
            ScaleBy::Nothing => {}
            ScaleBy::Count => {
                recipe.count = scale_number(recipe.count, scale, self.min_count.max(1))
            }
            ScaleBy::Size => {
                recipe.sizes = match recipe.sizes {
                    FileSizes::Line => FileSizes::Line,
                    FileSizes::Fixed(bytes) => FileSizes::Fixed(sized(bytes)),
                    FileSizes::List(list) => FileSizes::List(list.into_iter().map(sized).collect()),
                    FileSizes::Uniform { min, max } => {
                        FileSizes::Uniform { min: sized(min), max: sized(max) }
                    }
                    FileSizes::Lognormal { median, sigma, min, max } => FileSizes::Lognormal {
                        median: sized(median),
                        sigma,
                        min: sized(min),
                        max: sized(max),
                    },
                };
            }
        }
        recipe.hard_links = recipe.hard_links.min(recipe.count);
        recipe.symlinks = recipe.symlinks.min(recipe.count);
        recipe
    }
}

/// Scales a number, but not below `least`, unless it is already smaller at scale 1.
pub fn scale_number(number: u64, scale: f64, least: u64) -> u64 {
    let wanted = (number as f64 * scale).round().min(i64::MAX as f64) as u64;
    wanted.max(least.min(number))
}

/// Parses all data sets.
pub(super) fn read(top: &mut TomlTable<'_>) -> Result<Vec<DataSpec>, SpecError> {
    top.named("data", parse_data_set)
}

fn parse_data_set(name: String, table: &mut TomlTable<'_>) -> Result<DataSpec, SpecError> {
    if !toml::is_name(&name) {
        return Err(table.lacks("the name must be lower-case letters, digits, '-' and '_'"));
    }
    let count = table.whole_in("count", 1..=COUNT_MAX)?.unwrap_or(1);
    let content = content(table)?;
    let sizes = match sizes(table)? {
        Some(sizes) => sizes,
        None if matches!(content, FileContent::Text(_)) => FileSizes::Line,
        None => return Err(table.lacks("'size' is missing")),
    };
    let file_name = table.parsed("name", |name| file_name(name, count))?;
    let file_name = file_name.unwrap_or_else(|| "file-{n}".to_owned());
    let depth = table.whole_in("depth", 0..=64)?.unwrap_or(0) as u32;
    let fan_out = table.whole_in("fan_out", 1..=1_000_000)?.unwrap_or(8);
    let seed = table.whole("seed")?.unwrap_or(0);
    let hard_links = table.whole_in("hard_links", 0..=count)?.unwrap_or(0);
    let symlinks = table.whole_in("symlinks", 0..=count)?.unwrap_or(0);
    let ways = [("count", ScaleBy::Count), ("size", ScaleBy::Size), ("none", ScaleBy::Nothing)];
    let usual = if count > 1 { ScaleBy::Count } else { ScaleBy::Size };
    let by = table.word("scale", &ways)?.unwrap_or(usual);
    let min_count = table.whole_in("min_count", 1..=COUNT_MAX)?.unwrap_or(1);
    let min_bytes = table.size("min_size")?.unwrap_or(1);
    let recipe = DataRecipe {
        name,
        count,
        sizes,
        content,
        file_name,
        depth,
        fan_out,
        seed,
        hard_links,
        symlinks,
    };
    if recipe.leaves() > LEAVES_MAX {
        let why = format!("{fan_out} directories in each of {depth} levels are too many");
        return Err(table.lacks(why));
    }
    Ok(DataSpec { recipe, by, min_count, min_bytes })
}

fn content(table: &mut TomlTable<'_>) -> Result<FileContent, SpecError> {
    let line = table.text("line")?;
    let content = table.text("content")?;
    let content = content.unwrap_or_else(|| if line.is_some() { "text" } else { "random" }.into());
    let kinds = [
        ("random", Some(FileContent::Random)),
        ("zero", Some(FileContent::Zero)),
        // Needs a line.
        ("text", None),
    ];
    match (table.meaning("content", &content, &kinds)?, line) {
        (None, Some(line)) => Ok(FileContent::Text(line)),
        (None, None) => Err(table.lacks("'line' is missing: the text of each file")),
        (Some(_), Some(_)) => Err(table.wrong("line", "is for content = \"text\"")),
        (Some(content), None) => Ok(content),
    }
}

/// Checks a template of file names; fails with what follows its key in a sentence.
fn file_name(name: &str, count: u64) -> Result<String, &'static str> {
    Err(match name {
        "" | "." | ".." => "is not a file name",
        text if text.contains(['/', '\0', '\n']) => {
            "must not contain a slash, a NUL or an end of line"
        }
        text if text.len() > 200 => "is too long",
        text if count > 1 && !tells_numbers_apart(text) => {
            "needs {n}, or {n:05}, to name more than one file"
        }
        text => return Ok(text.to_owned()),
    })
}

fn sizes(table: &mut TomlTable<'_>) -> Result<Option<FileSizes>, SpecError> {
    if table.is_table("size") {
        return table.inside("size", distribution);
    }
    match table.sizes("size")? {
        Some(sizes) if sizes.is_empty() => {
            Err(table.wrong("size", "one size or more are expected here"))
        }
        sizes => Ok(sizes.map(|sizes| match sizes[..] {
            [bytes] => FileSizes::Fixed(bytes),
            _ => FileSizes::List(sizes),
        })),
    }
}

fn distribution(table: &mut TomlTable<'_>) -> Result<FileSizes, SpecError> {
    match (table.sizes("uniform")?, table.size("median")?) {
        (Some(pair), None) => match pair[..] {
            [min, max] if min <= max => Ok(FileSizes::Uniform { min, max }),
            _ => {
                let why = "two sizes are expected here, the smaller one first";
                Err(table.wrong("uniform", why))
            }
        },
        (None, Some(median)) => {
            let sigma = table.number("sigma")?.unwrap_or(1.0);
            if !(0.0..=10.0).contains(&sigma) {
                return Err(table.lacks("'sigma' must be between 0 and 10"));
            }
            let min = table.size("min")?.unwrap_or(0);
            let most = median.saturating_mul(1000).min(i64::MAX as u64);
            let max = table.size("max")?.unwrap_or(most);
            if !(min..=max).contains(&median) {
                return Err(table.lacks("'median' must be between 'min' and 'max'"));
            }
            Ok(FileSizes::Lognormal { median, sigma, min, max })
        }
        _ => Err(table.lacks("give either 'uniform' or 'median'")),
    }
}
