//! Tests of known tools and settings files.

use super::*;
use std::process::Command;

#[test]
fn every_known_tool_is_whole() {
    let fixed = crate::campaign::spec::FIXED;
    for known in KNOWN {
        let name = known.name;
        let ways = [known.copy, known.upload, known.measure];
        assert!(ways.iter().any(|way| !way.is_empty()), "{name}");
        for way in ways.iter().chain([&known.stdin]).filter(|way| !way.is_empty()) {
            let template = Template::parse(way).unwrap();
            assert!(!template.needs_shell(), "{name}: {way}");
            for hole in template.names() {
                let has_default = known.defaults.iter().any(|(name, _)| *name == hole);
                assert!(fixed.contains(&hole) || has_default, "{name}: {hole}");
            }
        }
        assert!(!known.needs.is_empty(), "{name}");
        for program in known.needs.iter().filter(|program| **program != OWN) {
            assert!(known_program(program).is_some(), "{name}: nothing installs {program}");
        }
        assert_eq!(KNOWN.iter().filter(|other| other.name == name).count(), 1, "{name}");
    }
    assert_eq!(known_program("s5cmd").unwrap().version, ["version"]);
}

#[test]
fn programs_are_found_on_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, mode| {
        let path = dir.path().join(name);
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let (good, _) = (file("good", 0o755), file("plain", 0o644));
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    let path = [PathBuf::from("/nowhere"), dir.path().to_owned()];
    assert_eq!(find_program("good", &path), Some(good.clone()));
    assert_eq!(find_program("plain", &path), None);
    assert_eq!(find_program("folder", &path), None);
    assert_eq!(find_program(good.to_str().unwrap(), &[]), Some(good));
}

#[test]
fn settings_are_written_as_they_are_meant() {
    let access = StoreAccess {
        endpoint: "http://127.0.0.1:9".into(),
        access_key: "K".into(),
        secret_key: "S'$x".into(),
        region: "us-east-1".into(),
    };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("a b");
    let made = |config| settings_file(config, &folder, &access, "32", "10000").unwrap();
    let (right, published) = (made(SettingsFormat::Aws), made(SettingsFormat::AwsPublished));
    let section = right.text.find("s3 =").unwrap();
    assert!(right.text.find("max_queue_size = 10000").unwrap() > section, "{}", right.text);
    let section = published.text.find("s3 =").unwrap();
    assert!(published.text.find("max_queue_size = 10000").unwrap() < section);
    assert!(published.text.contains("\n  max_concurrent_requests = 32\n"));
    assert_ne!(right.path, published.path);
    let settings = made(SettingsFormat::S3cmd);
    assert!(settings.text.contains("host_base = 127.0.0.1:9\n"), "{}", settings.text);
    let status = Command::new("sh").arg("-c").arg(settings.command()).status().unwrap();
    assert!(status.success());
    assert_eq!(std::fs::read_to_string(&settings.path).unwrap(), settings.text);
    let mode = std::fs::metadata(&settings.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(settings_file(SettingsFormat::No, &folder, &access, "", "").is_none());
    let environment = access.environment();
    assert_eq!(environment["AWS_SECRET_ACCESS_KEY"], "S'$x");
    assert_eq!(environment["AWS_EC2_METADATA_DISABLED"], "true");
}
