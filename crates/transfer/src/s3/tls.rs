//! TLS: which certificates are trusted, and one configuration that all connections share, so that
//! sessions are resumed.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// What makes TLS connections: HTTP/1.1 by ALPN, certificates checked against those in `bundle`
/// (PEM) or, without one, the system's; not at all where `verify` is false. Reads files.
///
/// # Errors
/// A sentence: the bundle cannot be read or holds no certificate; the system has none.
pub(super) fn connector(bundle: Option<&Path>, verify: bool) -> Result<TlsConnector, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS: {e}"))?;
    let mut config = if verify {
        builder.with_root_certificates(roots(bundle)?).with_no_client_auth()
    } else {
        let trusting = Arc::new(Trusting(provider));
        builder.dangerous().with_custom_certificate_verifier(trusting).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots(bundle: Option<&Path>) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    if let Some(path) = bundle {
        let wrong = |e: &dyn std::fmt::Display| format!("CA bundle {}: {e}", path.display());
        for certificate in CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))? {
            store.add(certificate.map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
        }
        if store.is_empty() {
            return Err(wrong(&"it holds no certificate in PEM form"));
        }
        return Ok(store);
    }
    let found = rustls_native_certs::load_native_certs();
    // Old systems carry a few that cannot be parsed; they are of no use to anybody else, either.
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

/// Believes every certificate (`--no-verify-ssl`). Signatures are checked all the same: a peer
/// that does not hold the key it shows is broken, not self-signed.
#[derive(Debug)]
struct Trusting(Arc<CryptoProvider>);

impl ServerCertVerifier for Trusting {
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
