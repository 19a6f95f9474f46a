//! Restores system settings changed by the rigs.

use crate::common::undo::Undo;

#[test]
fn what_was_done_is_undone() {
    let area = crate::common::area::Area::tmpfs();
    let mark = area.join("mark");
    let undo = Undo::new(&format!("echo undone >{}", mark.display()));
    assert!(!mark.exists());
    drop(undo);
    assert_eq!(std::fs::read_to_string(mark).unwrap(), "undone\n");
}
