//! Locations that source and target arguments name. Arguments are parsed once, by the commands; all other code uses
//! these types.

mod argument;
mod s3url;
mod sources;

pub use argument::Location;
pub use s3url::{S3Url, s3_path};
pub use sources::Sources;
