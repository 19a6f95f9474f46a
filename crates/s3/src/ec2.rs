//! Instance metadata service of EC2 (IMDSv2: a token first, then the query; EC2 User Guide, "Access instance
//! metadata").

use super::connector::Connector;
use super::proxy::Proxies;
use aws_config::imds::Client;
use aws_config::provider_config::ProviderConfig;
use std::time::Duration;

/// The service is one hop away and responds immediately, if it exists.
const CONNECT: Duration = Duration::from_millis(250);
const READ: Duration = Duration::from_secs(1);
/// Longest name of an instance type.
const NAME_MAX: usize = 64;

/// Instance type, `m5.large`; `None` if it cannot be determined within about a second.
/// `AWS_EC2_METADATA_SERVICE_ENDPOINT` overrides the service's address.
pub fn instance_type() -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let config = ProviderConfig::without_region().with_http_client(Connector::new(
        None,
        true,
        Proxies::default(),
    ));
    let client = Client::builder()
        .configure(&config)
        .max_attempts(1)
        .connect_timeout(CONNECT)
        .read_timeout(READ)
        .build();
    let said = runtime.block_on(client.get("/latest/meta-data/instance-type")).ok()?;
    let name = said.as_ref().trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let is_type = !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_name);
    is_type.then(|| name.to_owned())
}
