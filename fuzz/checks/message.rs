//! Frames and messages between the two ends of a transfer, and the events in them.

use hakobu_core::event::{Event, Listener};
use hakobu_remote::frame;
use hakobu_remote::message::Message;
use hakobu_transfer::far::told;

/// Takes events and does nothing.
struct Nobody;

impl Listener for Nobody {
    fn event(&self, _: Event<'_>) {}
}

/// A stream of frames is read to its first damage; what is a message is written and read back as it was.
pub fn check(data: &[u8]) {
    let mut from = data;
    while let Ok(Some(frame)) = frame::read(&mut from) {
        let Ok(message) = Message::decode(frame) else { continue };
        let again = message.clone().encode();
        assert_eq!(Message::decode(again).as_ref(), Ok(&message));
        if let Message::Said(json) = message {
            told(&json, &Nobody);
        }
    }
}
