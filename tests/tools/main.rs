//! `verify`, `rm`, `du` and `ls`, side by side with the programs that they are like.

#[path = "../common/mod.rs"]
mod common;

mod du;
mod ls;
mod place;
mod rm;
mod verify;
