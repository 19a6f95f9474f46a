//! Precedence of options, environment and profile, and invalid values.

use super::*;
use std::path::Path;

/// A temporary folder, removed after the test.
struct Home(PathBuf);

impl Home {
    fn new(config: &str) -> Home {
        let name = format!("hakobu-settings-{}-{}", std::process::id(), fastrand::u64(..));
        let home = std::env::temp_dir().join(name);
        std::fs::create_dir_all(home.join(".aws")).unwrap();
        std::fs::write(home.join(".aws/config"), config).unwrap();
        Home(home)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn resolve(
    settings: &Settings,
    home: &Path,
    variables: &[(&str, &str)],
) -> Result<ResolvedSettings, String> {
    settings.resolve(&|name| {
        let set = variables.iter().find(|(of, _)| *of == name).map(|(_, v)| (*v).to_owned());
        set.or_else(|| (name == "HOME").then(|| home.display().to_string()))
    })
}

fn plain(variables: &[(&str, &str)]) -> Result<ResolvedSettings, String> {
    resolve(&Settings::default(), Path::new("/nowhere"), variables)
}

fn url(text: &str) -> Endpoint {
    Endpoint::parse(text).unwrap()
}

#[test]
fn nothing_said_is_aws_in_its_first_region() {
    let resolved = plain(&[]).unwrap();
    assert_eq!(resolved.endpoint, Endpoint::Aws { dualstack: false, fips: false });
    assert_eq!(
        (resolved.region.as_str(), resolved.attempts),
        ("us-east-1", RetryAttempts::default())
    );
    assert_eq!(resolved.algorithm, Some(Algorithm::Crc64Nvme));
    assert!(resolved.checks_downloads);
}

/// Without HOME, `~` is not the root of the file system.
#[test]
fn a_path_below_an_unknown_home_is_not_read() {
    let home = Home::new("[default]\nregion = eu-west-1\n");
    let region = |path: String| {
        let lookup = |name: &str| (name == "AWS_CONFIG_FILE").then(|| path.clone());
        Settings::default().resolve(&lookup).unwrap().region
    };
    let config = home.0.join(".aws/config").display().to_string();
    assert_eq!(region(config.clone()), "eu-west-1");
    assert_eq!(region(format!("~{config}")), "us-east-1");
}

#[test]
fn endpoints_have_an_order() {
    let config = "[default]\nendpoint_url = http://profile\n[profile p]\nservices = mine\n\
                  endpoint_url = http://profile2\n[services mine]\ns3 =\n  endpoint_url = http://service\n";
    let home = Home::new(config);
    let all = [
        ("AWS_ENDPOINT_URL_S3", "http://special"),
        ("AWS_ENDPOINT_URL", "http://general"),
        ("AWS_PROFILE", "p"),
        ("S3_ENDPOINT_URL", "http://s5cmd"),
    ];
    let settings = Settings::default();
    let got = |from: usize| resolve(&settings, &home.0, &all[from..]).unwrap().endpoint;
    assert_eq!(got(0), url("http://special"));
    assert_eq!(got(1), url("http://general"));
    assert_eq!(got(2), url("http://service"));
    assert_eq!(got(3), url("http://profile"));
    assert_eq!(plain(&all[3..]).unwrap().endpoint, url("http://s5cmd"));
    let option = Settings { endpoint_url: Some("http://option".into()), ..Settings::default() };
    assert_eq!(resolve(&option, &home.0, &all).unwrap().endpoint, url("http://option"));
    let ignore = [("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"), all[0]];
    assert!(matches!(plain(&ignore).unwrap().endpoint, Endpoint::Aws { .. }));
}

#[test]
fn the_profile_says_what_the_environment_does_not() {
    let config = "[profile p]\nregion = eu-north-1\nmax_attempts = 9\nca_bundle = /c.pem\n\
                  request_checksum_calculation = WHEN_REQUIRED\n\
                  response_checksum_validation = when_required\nuse_fips_endpoint = true\n\
                  s3 =\n  max_concurrent_requests = 20\n  addressing_style = virtual\n";
    let home = Home::new(config);
    let settings = Settings { profile: Some("p".into()), ..Settings::default() };
    let resolved = resolve(&settings, &home.0, &[("AWS_DEFAULT_REGION", "ap-east-1")]).unwrap();
    assert_eq!(resolved.region, "ap-east-1");
    let resolved = resolve(&settings, &home.0, &[]).unwrap();
    assert_eq!(resolved.region, "eu-north-1");
    assert_eq!(resolved.attempts, RetryAttempts::exactly(9));
    assert_eq!(resolved.ca_bundle, Some(PathBuf::from("/c.pem")));
    assert_eq!((resolved.algorithm, resolved.checks_downloads), (None, false));
    assert_eq!(resolved.addressing, Addressing::Virtual);
    assert_eq!(resolved.endpoint, Endpoint::Aws { dualstack: false, fips: true });
    let said = Settings { algorithm: Some(Algorithm::Sha256), ..settings };
    assert_eq!(resolve(&said, &home.0, &[]).unwrap().algorithm, Some(Algorithm::Sha256));
}

#[test]
fn a_profile_has_a_name_with_spaces() {
    let config = "[profile 'my profile']\nregion = eu-north-1\n[profile \"other one\"]\n\
                  source_profile = my profile\nregion = eu-west-3\n";
    let home = Home::new(config);
    for (name, region) in [("my profile", "eu-north-1"), ("other one", "eu-west-3")] {
        let settings = Settings { profile: Some(name.into()), ..Settings::default() };
        assert_eq!(resolve(&settings, &home.0, &[]).unwrap().region, region);
        let resolved = resolve(&Settings::default(), &home.0, &[("AWS_PROFILE", name)]).unwrap();
        assert_eq!(resolved.region, region);
    }
    let asked = Settings { profile: Some("no such".into()), ..Settings::default() };
    assert!(resolve(&asked, &home.0, &[]).unwrap_err().contains("no profile 'no such'"));
}

#[test]
fn what_is_wrong_is_named() {
    let home = Home::new("[profile p]\ns3 =\n  addressing_style = odd\n");
    let asked = |name: &str| Settings { profile: Some(name.into()), ..Settings::default() };
    let missing = resolve(&asked("q"), &home.0, &[]).unwrap_err();
    assert!(missing.contains("no profile 'q'") && missing.contains(".aws/config"), "{missing}");
    assert!(resolve(&asked("p"), &home.0, &[]).unwrap_err().contains("'odd'"));
    assert!(plain(&[("AWS_PROFILE", "q")]).unwrap_err().contains("no profile 'q'"));
    let credentials =
        Credentials { access_key: "A".into(), secret_key: "hush".into(), session_token: None };
    let own = Settings { credentials: Some(credentials), ..Settings::default() };
    assert!(resolve(&own, &home.0, &[("AWS_PROFILE", "q")]).is_ok());
    let shown = format!("{own:?}");
    assert!(shown.contains("Credentials") && !shown.contains("hush"), "{shown}");
    for (variable, value) in [
        ("AWS_MAX_ATTEMPTS", "0"),
        ("AWS_MAX_ATTEMPTS", "many"),
        ("AWS_RETRY_MODE", "brave"),
        ("AWS_REQUEST_CHECKSUM_CALCULATION", "never"),
        ("AWS_USE_FIPS_ENDPOINT", "maybe"),
        ("AWS_REGION", "eu west"),
        ("AWS_ENDPOINT_URL", "localhost:9000"),
    ] {
        let why = plain(&[(variable, value)]).unwrap_err();
        assert!(why.contains(value), "{variable}: {why}");
    }
    assert!(plain(&[("AWS_RETRY_MODE", "Standard"), ("AWS_USE_FIPS_ENDPOINT", "TRUE")]).is_ok());
    let broken = Home::new("[profile p\n");
    assert!(resolve(&Settings::default(), &broken.0, &[]).is_err());
}

#[test]
fn names_in_quotes_become_identifiers() {
    let config = EnvConfigFileKind::Config;
    for (line, expected) in [
        ("[profile 'my profile']\n", "[profile my%20profile]\n"),
        ("[profile \"my profile\"]\n", "[profile my%20profile]\n"),
        ("[profile my\\ profile] # mine\n", "[profile my%20profile] # mine\n"),
        ("[profile 'dev']", "[profile dev]"),
        ("[sso-session 'a b']\n", "[sso-session a%20b]\n"),
        ("source_profile = my profile # base\n", "source_profile = my%20profile\n"),
        ("source_profile = base\n", "source_profile = base\n"),
        ("region = 'my region'\n", "region = 'my region'\n"),
        // aws ignores these as well.
        ("[profile my profile]\n", "[profile my profile]\n"),
        ("[profile 'open]\n", "[profile 'open]\n"),
        ("[default]\n", "[default]\n"),
    ] {
        assert_eq!(with_identifiers(line, config), expected, "{line}");
    }
    let credentials = EnvConfigFileKind::Credentials;
    for (line, expected) in [
        ("[my profile]\n", "[my%20profile]\n"),
        ("[ dev ]\n", "[ dev ]\n"),
        ("[profile x]\n", "[profile x]\n"),
    ] {
        assert_eq!(with_identifiers(line, credentials), expected, "{line}");
    }
    assert_eq!(identifier("100% é"), "100%25%20%C3%A9");
    assert_eq!(identifier("a%20b"), "a%20b");
}
