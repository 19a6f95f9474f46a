//! Steering: numbers of jobs that are found, remembered and reported; limits; final output.

mod limits;
mod memory;
mod path;
mod said;

/// Creates a folder with files of one size, `f0` and so on.
fn files(dir: &std::path::Path, count: usize, bytes: usize) {
    std::fs::create_dir_all(dir).unwrap();
    for number in 0..count {
        std::fs::write(dir.join(format!("f{number}")), vec![b'x'; bytes]).unwrap();
    }
}
