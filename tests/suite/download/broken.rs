//! Response bodies that break, end early or are wrong: requested again, never left incomplete.

use crate::download::Stage;

/// Sizes of an object that is received whole and of one that comes in ranges.
const SIZES: [u64; 2] = [300_000, 20_000_000];

#[test]
fn what_breaks_is_gone_on_with() {
    for size in SIZES {
        let stage = Stage::new(
            "null --fault reset:op=GET,key=reset,after=100000,times=2 \
             --fault truncate:op=GET,key=cut,after=70000,times=2 \
             --fault corrupt:op=GET,key=wrong,at=5000,times=1",
        );
        let good = stage.content(size);
        for key in ["reset", "cut", "wrong"] {
            stage.ok(&format!("cp s3://bkt/{key}.size-{size} OUT/{key}"));
            assert!(std::fs::read(stage.target().join(key)).unwrap() == good, "{key} {size}");
        }
        assert_eq!(stage.names(), ["cut", "reset", "wrong"]);
    }
}

#[test]
fn what_stays_wrong_does_not_appear() {
    for size in SIZES {
        let stage = Stage::new("null --fault corrupt:op=GET,key=wrong,at=5000");
        std::fs::write(stage.target().join("old"), b"what was there").unwrap();
        for name in ["new", "old"] {
            let run = stage.run(&format!("cp s3://bkt/wrong.size-{size} OUT/{name}"));
            let said = String::from_utf8_lossy(&run.stderr).into_owned();
            assert_eq!(run.status.code(), Some(1), "{said}");
            assert!(said.contains("CRC64NVME"), "{said}");
        }
        assert_eq!(stage.names(), ["old"], "{size}");
        assert_eq!(std::fs::read(stage.target().join("old")).unwrap(), b"what was there");
    }
}
