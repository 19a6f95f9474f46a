//! The stream between the two ends of a transfer over a remote shell. The near end starts the far one (`ssh`); both exchange
//! messages (`message`) in frames (`frame`) over its standard input and output (`link`). Of files that both have, only
//! differences are sent (`delta`). `install` copies this program there.
//!
//! Everything that the other end says is data of a stranger: each decoder bounds what it allocates, checks each field, and
//! refuses what it does not know.

pub mod delta;
pub mod frame;
pub mod install;
pub mod join;
pub mod link;
pub mod message;
pub mod packing;
pub mod refine;
pub mod rolling;
pub mod session;
pub mod ssh;
