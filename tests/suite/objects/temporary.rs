//! Temporary names of the program, as keys and in uploaded folders.

use crate::objects::stage::{everywhere, file, names, on_servers, tree};

/// A name of another machine, with its checksum (FNV-1a of 64 bits, folded).
fn ours() -> String {
    let text = ".hakobu-0000000a-0000000b-0000000c-00000000000d-00000000000e";
    let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{text}-{:08x}", (sum >> 32) as u32 ^ sum as u32)
}

const USERS: &str = ".hakobu-1-2-3-4-5";
const SAYS: &str = "unfinished file of a hakobu run";

#[test]
fn files_of_users_go_up_and_down() {
    everywhere(|stage| {
        for name in [USERS, "d/.hakobu-kept-0123456789abcdef", "a"] {
            file(&stage.src(), name, b"content", 100);
        }
        let all = [USERS, "a", "d/.hakobu-kept-0123456789abcdef"];
        stage.ok("sync -r SRC/ SPOT/");
        stage.ok(&format!("cp SRC/{USERS} SPOT/"));
        assert_eq!(names(&stage.place()), all);
        stage.ok("sync -r SPOT/ DST/");
        assert_eq!(names(&tree(&stage.dst())), all);
        stage.ok("mv SPOT DST/");
        assert_eq!(names(&tree(&stage.dst().join("place"))), all);
    });
}

#[test]
fn ours_are_left_out_and_told() {
    on_servers(|stage| {
        file(&stage.src(), &ours(), b"half", 100);
        file(&stage.src(), "a", b"whole", 100);
        stage.ok("sync -r SRC/ SPOT/").says(&[SAYS, &ours()]);
        assert_eq!(names(&stage.place()), ["a"]);
        // Some other program put it there.
        stage.put(&format!("place/d/{}", ours()), b"half");
        stage.ok("sync -r SPOT/ DST/").says(&[SAYS, &ours()]);
        assert_eq!(names(&tree(&stage.dst())), ["a"]);
        stage.run("mv SPOT DST/").expect(1).says(&[SAYS]);
        assert_eq!(names(&stage.place()), [format!("d/{}", ours())]);
        // Between stores it is an object like any other.
        stage.ok("sync -r SPOT/ BKT/copy/");
        assert!(names(&stage.objects()).iter().any(|name| name.starts_with("copy/")));
    });
}
