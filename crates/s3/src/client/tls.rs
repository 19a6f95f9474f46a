//! TLS: trusted certificates, and one configuration for all connections, so that sessions can be resumed.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Creates a configuration: HTTP/1.1 by ALPN, certificates verified against `bundle` (PEM) or the system's,
/// or not at all if `verify` is false. Reads files.
///
/// # Errors
/// A message: the bundle cannot be read or contains no certificate; the system has none.
pub(crate) fn config(bundle: Option<&Path>, verify: bool) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS: {e}"))?;
    let mut config = if verify {
        let Trusted { anchors, certificates } = trusted(bundle)?;
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(anchors), provider)
            .build()
            .map_err(|e| format!("TLS: {e}"))?;
        let verifier = Arc::new(Named { chains, certificates });
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    } else {
        let verifier = Arc::new(AcceptAny(provider));
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Certificates that are trusted: as issuers of others, and themselves.
struct Trusted {
    anchors: RootCertStore,
    certificates: HashSet<CertificateDer<'static>>,
}

fn trusted(bundle: Option<&Path>) -> Result<Trusted, String> {
    let mut store = RootCertStore::empty();
    let mut certificates = HashSet::new();
    if let Some(path) = bundle {
        let wrong = |e: &dyn std::fmt::Display| format!("CA bundle {}: {e}", path.display());
        for certificate in CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))? {
            let certificate = certificate.map_err(|e| wrong(&e))?;
            store.add(certificate.clone()).map_err(|e| wrong(&e))?;
            certificates.insert(certificate);
        }
        if store.is_empty() {
            return Err(wrong(&"it contains no certificate in PEM format"));
        }
        return Ok(Trusted { anchors: store, certificates });
    }
    let found = rustls_native_certs::load_native_certs();
    // Old systems contain some unparsable certificates, which no client can use.
    certificates.extend(found.certs.iter().cloned());
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let why = found.errors.first().map(|e| format!(" ({e})")).unwrap_or_default();
        return Err(format!(
            "the system has no CA certificates{why}: install its ca-certificates package, or \
             name a file with --ca-bundle"
        ));
    }
    Ok(Trusted { anchors: store, certificates })
}

/// Accepts servers whose certificate was issued by a trusted one, or is one of those itself: `openssl req -x509` makes a
/// certificate of a server that is its own authority, which the rules for chains (RFC 5280) have no place for. OpenSSL
/// (X509_V_FLAG_PARTIAL_CHAIN) and Go accept it as well.
#[derive(Debug)]
struct Named {
    chains: Arc<WebPkiServerVerifier>,
    certificates: HashSet<CertificateDer<'static>>,
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use CertificateError as E;
        let refused = match self.chains.verify_server_cert(certificate, chain, name, ocsp, now) {
            Err(refused @ rustls::Error::InvalidCertificate(_)) => refused,
            other => return other,
        };
        // The dates are checked first, so a certificate that is refused for another reason is valid now.
        let by_issuer = match &refused {
            rustls::Error::InvalidCertificate(why) => !matches!(
                why,
                E::BadEncoding
                    | E::Expired
                    | E::ExpiredContext { .. }
                    | E::NotValidYet
                    | E::NotValidYetContext { .. }
                    | E::NotValidForName
                    | E::NotValidForNameContext { .. }
                    | E::InvalidPurpose
                    | E::InvalidPurposeContext { .. }
                    | E::Revoked
            ),
            _ => false,
        };
        if !by_issuer || !self.certificates.contains(certificate) {
            return Err(refused);
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
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
