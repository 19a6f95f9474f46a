//! The instance type of a cloud machine.

use hakobu_sys::host;

/// Returns the instance type such as `m5.large`, from the firmware, else from the metadata service if the firmware
/// indicates Amazon or the service's address is set. Otherwise, and with `AWS_EC2_METADATA_DISABLED=true`, no network
/// request is made.
pub fn kind() -> Option<String> {
    host::instance_type().or_else(|| {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let is_off = variable("AWS_EC2_METADATA_DISABLED").eq_ignore_ascii_case("true");
        let is_given = !variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").is_empty();
        let asks = !is_off && (is_given || host::is_ec2());
        asks.then(hakobu_s3::instance_type).flatten()
    })
}
