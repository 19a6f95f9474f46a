//! The sampler against the real machine, and against texts.

mod reading;
