//! `verify`, `rm` and `du`, compared with similar programs; `ls` of paths.

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
