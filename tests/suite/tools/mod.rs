//! `verify`, `rm`, `du` and `ls`, compared with similar programs.

mod calls;
mod coreutils;
mod deep;
mod du;
mod filtered;
mod limits;
mod ls;
pub mod place;
mod rm;
pub mod slow;
mod verify;
