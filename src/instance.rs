//! The type of the cloud's machine that this runs on.

use hakobu_sys::about;

/// `m5.large`: as the firmware has it, else, where this may be a machine of Amazon's, or the address
/// of a metadata service is given, as that says it. Elsewhere nobody on the network is asked, nor
/// with `AWS_EC2_METADATA_DISABLED=true`.
pub fn kind() -> Option<String> {
    about::instance_type().or_else(|| {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let is_off = variable("AWS_EC2_METADATA_DISABLED").eq_ignore_ascii_case("true");
        let is_given = !variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").is_empty();
        let asks = !is_off && (is_given || about::is_ec2());
        asks.then(hakobu_transfer::s3::instance_type).flatten()
    })
}
