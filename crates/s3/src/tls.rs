//! TLS: trusted certificates, and one configuration for all connections, so that sessions can be resumed.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::path::Path;
use std::sync::Arc;

/// Creates a configuration: HTTP/1.1 by ALPN, certificates verified against `bundle` (PEM) or the system's,
/// or not at all if `verify` is false. Reads files.
///
/// # Errors
/// A message: the bundle cannot be read or contains no certificate; the system has none.
pub(super) fn config(bundle: Option<&Path>, verify: bool) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS: {e}"))?;
    let mut config = if verify {
        builder.with_root_certificates(roots(bundle)?).with_no_client_auth()
    } else {
        let verifier = Arc::new(AcceptAny(provider));
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn roots(bundle: Option<&Path>) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    if let Some(path) = bundle {
        let wrong = |e: &dyn std::fmt::Display| format!("CA bundle {}: {e}", path.display());
        for certificate in CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))? {
            store.add(certificate.map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
        }
        if store.is_empty() {
            return Err(wrong(&"it contains no certificate in PEM format"));
        }
        return Ok(store);
    }
    let found = rustls_native_certs::load_native_certs();
    // Old systems contain some unparsable certificates, which no client can use.
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let why = found.errors.first().map(|e| format!(" ({e})")).unwrap_or_default();
        return Err(format!(
            "the system has no CA certificates{why}: install its ca-certificates package, or \
             name a file with --ca-bundle"
        ));
    }
    Ok(store)
}

/// Accepts every certificate (`--no-verify-ssl`). Handshake signatures are still verified: a peer without the
/// private key of its certificate is broken, not self-signed.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
