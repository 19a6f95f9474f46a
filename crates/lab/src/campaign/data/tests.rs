//! Recipes are reproducible, cached, and made again if something is missing.

use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, UNIX_EPOCH};

fn recipe() -> DataRecipe {
    DataRecipe {
        name: "mixed".into(),
        count: 150,
        sizes: FileSizes::Lognormal { median: 2000, sigma: 1.5, min: 0, max: 400_000 },
        content: FileContent::Random,
        file_name: "f-{n:04}".into(),
        depth: 2,
        fan_out: 3,
        seed: 42,
        hard_links: 5,
        symlinks: 7,
    }
}

/// Names, contents and times of everything below a folder.
fn tree(folder: &Path) -> BTreeMap<String, (String, i64)> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            let meta = path.symlink_metadata().unwrap();
            let what = if meta.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else if meta.is_dir() {
                open.push(path);
                "/".to_owned()
            } else {
                let digest = Sha256::digest(fs::read(&path).unwrap());
                digest.iter().map(|byte| format!("{byte:02x}")).collect()
            };
            let time = if meta.is_file() { meta.mtime() } else { 0 };
            found.insert(name, (what, time));
        }
    }
    found
}

/// One hash over a tree.
fn hash_of_tree(folder: &Path) -> String {
    let digest = Sha256::digest(format!("{:?}", tree(folder)));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_same_recipe_makes_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    make(&recipe(), &a).unwrap();
    make(&recipe(), &b).unwrap();
    assert_eq!(tree(&a), tree(&b));
    assert_eq!(recipe().totals().files, 155);
    let other = DataRecipe { seed: 43, ..recipe() };
    make(&other, &b).unwrap();
    assert_ne!(hash_of_tree(&a), hash_of_tree(&b));
    assert_eq!(tree(&a).len(), 150 + 5 + 7 + 9 + 3);
    let linked = fs::metadata(a.join("dir-0/dir-0/f-0001")).unwrap();
    assert_eq!(linked.nlink(), 2);
    assert_eq!(linked.modified().unwrap(), UNIX_EPOCH + Duration::from_secs(1_577_836_800));
    let link = fs::read_link(a.join("dir-0/dir-1/f-0002.sym")).unwrap();
    assert_eq!(link, Path::new("f-0002"));
}

#[test]
fn lines_of_text_are_what_the_study_had() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let lines = DataRecipe {
        count: 12,
        sizes: FileSizes::Line,
        content: FileContent::Text("Test file {n}".into()),
        file_name: "test_file_{n}.txt".into(),
        ..DataRecipe::default()
    };
    make(&lines, &folder).unwrap();
    assert_eq!(lines.totals(), DataTotals { files: 12, bytes: 9 * 12 + 3 * 13 });
    assert_eq!(fs::read_to_string(folder.join("test_file_12.txt")).unwrap(), "Test file 12\n");
    let list = fs::read_to_string(list_of(&folder)).unwrap();
    let names: Vec<&str> = list.lines().collect();
    assert_eq!(names.len(), 12);
    assert!(names.iter().all(|name| Path::new(name).is_file()), "{names:?}");
    let longer = DataRecipe { count: 1, sizes: FileSizes::Fixed(30), ..lines };
    make(&longer, &folder).unwrap();
    let text = fs::read_to_string(folder.join("test_file_1.txt")).unwrap();
    assert_eq!(text, "Test file 1\nTest file 1\nTest f");
}

#[test]
fn it_is_kept_and_what_is_damaged_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = recipe();
    let folder = recipe.folder(dir.path());
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.starts_with("mixed-") && name.len() == "mixed-".len() + 16, "{name}");
    let cached = || make(&recipe, &folder).unwrap();
    assert!(!cached() && cached());
    let whole = tree(&folder);
    let first = folder.join("dir-0/dir-0/f-0001");
    let damages: [&dyn Fn(); 5] = [
        &|| fs::remove_file(folder.join("dir-0/dir-1/f-0011")).unwrap(),
        &|| fs::write(folder.join("more"), "x").unwrap(),
        &|| fs::write(&first, "").unwrap(),
        &|| fs::remove_file(list_of(&folder)).unwrap(),
        // Interrupted: there is no marker.
        &|| fs::remove_file(dir.path().join(format!("{name}.done"))).unwrap(),
    ];
    for (number, damage) in damages.iter().enumerate() {
        damage();
        assert!(!cached(), "damage {number}");
        assert_eq!(tree(&folder), whole, "damage {number}");
        assert!(cached());
    }
}

#[test]
fn what_does_not_fit_is_not_begun() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("huge");
    let huge =
        DataRecipe { count: 1000, sizes: FileSizes::Fixed(1 << 50), ..DataRecipe::default() };
    let error = make(&huge, &folder).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(error.to_string().contains("data set 'data' does not fit"), "{error}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn errors_name_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = make(&DataRecipe::default(), &file.join("below")).unwrap_err();
    assert!(error.to_string().contains("below"), "{error}");
}

#[test]
fn names_have_numbers() {
    for (template, name) in [
        ("f{n}", "f7"),
        ("{n:03}-{n}", "007-7"),
        ("{n:0}", "7"),
        ("{n:x}", "{n:x}"),
        ("{n:123}", "{n:123}"),
        ("{nn}{n}", "{nn}7"),
        ("{n", "{n"),
        ("plain", "plain"),
        ("é{n}}", "é7}"),
    ] {
        assert_eq!(numbered(template, 7), name, "{template}");
    }
    assert!(tells_numbers_apart("{n}") && !tells_numbers_apart("n"));
}

#[test]
fn it_says_what_it_is() {
    assert_eq!(
        recipe().about(),
        "lognormal, median 2 KB, sigma 1.5, at most 400 KB, incompressible, \
         9 folders 2 deep, 5 hard links, 7 symbolic links"
    );
    let one = DataRecipe { sizes: FileSizes::Fixed(4 << 30), ..DataRecipe::default() };
    assert_eq!(one.about(), "4 GiB each, incompressible");
}

#[test]
fn the_distribution_has_its_median_and_its_spread() {
    let recipe = DataRecipe { count: 4000, ..recipe() };
    let mut sizes: Vec<u64> = (1..=4000).map(|number| recipe.size(number)).collect();
    sizes.sort_unstable();
    let at = |share: f64| sizes[(share * 4000.0) as usize] as f64;
    assert!((at(0.5) / 2000.0 - 1.0).abs() < 0.1, "median {}", at(0.5));
    // One standard deviation of the logarithm: 84.1 % are below median × e^sigma.
    assert!((at(0.841) / (2000.0 * 1.5f64.exp()) - 1.0).abs() < 0.15, "{}", at(0.841));
    assert!((at(0.159) / (2000.0 * (-1.5f64).exp()) - 1.0).abs() < 0.15, "{}", at(0.159));
}

proptest::proptest! {
    #[test]
    fn sizes_stay_in_their_bounds(
        seed: u64,
        number in 1u64..1_000_000,
        a in 0u64..1 << 40,
        b in 0u64..1 << 40,
        sigma in 0.0f64..10.0,
    ) {
        let (min, max) = (a.min(b), a.max(b));
        let with = |sizes| DataRecipe { sizes, seed, ..DataRecipe::default() };
        let uniform = with(FileSizes::Uniform { min, max });
        proptest::prop_assert!((min..=max).contains(&uniform.size(number)));
        let median = min + (max - min) / 2;
        let lognormal = with(FileSizes::Lognormal { median, sigma, min, max });
        proptest::prop_assert!((min..=max).contains(&lognormal.size(number)));
        proptest::prop_assert_eq!(lognormal.size(number), lognormal.clone().size(number));
        let list = with(FileSizes::List(vec![a, b]));
        proptest::prop_assert_eq!(list.size(number), if number % 2 == 1 { a } else { b });
    }

    #[test]
    fn totals_are_the_sum_of_sizes(count in 1u64..200, links in 0u64..200, seed: u64) {
        let recipe = DataRecipe {
            count,
            hard_links: links.min(count),
            sizes: FileSizes::Uniform { min: 0, max: 1000 },
            seed,
            ..DataRecipe::default()
        };
        let all: u64 = (1..=count).map(|number| recipe.size(number)).sum();
        let twice: u64 = (1..=recipe.hard_links).map(|number| recipe.size(number)).sum();
        let wanted = DataTotals { files: count + recipe.hard_links, bytes: all + twice };
        proptest::prop_assert_eq!(recipe.totals(), wanted);
    }

    #[test]
    fn another_recipe_has_another_folder(count in 2u64..100, seed in 1u64..100) {
        let plain = DataRecipe::default();
        let folder = |recipe: &DataRecipe| recipe.folder(Path::new("/c"));
        let (more, other) = (DataRecipe { count, ..plain.clone() }, DataRecipe { seed, ..plain.clone() });
        proptest::prop_assert_ne!(folder(&plain), folder(&more));
        proptest::prop_assert_ne!(folder(&plain), folder(&other));
        proptest::prop_assert_eq!(folder(&more), folder(&more.clone()));
    }

    #[test]
    fn no_two_files_have_one_place(count in 1u64..300, depth in 0u32..4, fan_out in 1u64..6) {
        let recipe = DataRecipe { count, depth, fan_out, ..DataRecipe::default() };
        let mut places: Vec<_> = (1..=count).map(|number| recipe.place(number)).collect();
        places.sort();
        places.dedup();
        proptest::prop_assert_eq!(places.len() as u64, count);
    }
}
