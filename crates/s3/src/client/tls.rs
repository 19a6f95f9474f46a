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
    let trusted = match verify {
        true => {
            let (anchors, certificates) = trusted(bundle)?;
            let anchors = Arc::new(anchors);
            let chains =
                WebPkiServerVerifier::builder_with_provider(anchors, Arc::clone(&provider))
                    .build()
                    .map_err(|e| format!("TLS: {e}"))?;
            Some(TrustStore { chains, certificates })
        }
        false => None,
    };
    let verifier = Arc::new(Verifier { provider, trusted });
    let mut config =
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Certificates of a bundle or of the system: as issuers of others, and themselves.
type Certificates = (RootCertStore, HashSet<CertificateDer<'static>>);

fn trusted(bundle: Option<&Path>) -> Result<Certificates, String> {
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
        return Ok((store, certificates));
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
    Ok((store, certificates))
}

/// Verifies servers; without a trust store (`--no-verify-ssl`) every certificate is accepted. Handshake signatures are
/// verified in any case: a peer without the private key of its certificate is broken, not self-signed.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    trusted: Option<TrustStore>,
}

/// Trusts certificates that were issued by one of these, and these themselves: `openssl req -x509` makes a certificate of
/// a server that is its own authority, which the rules for chains (RFC 5280) have no place for. OpenSSL
/// (X509_V_FLAG_PARTIAL_CHAIN) and Go accept it as well.
#[derive(Debug)]
struct TrustStore {
    chains: Arc<WebPkiServerVerifier>,
    certificates: HashSet<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use CertificateError as E;
        let Some(TrustStore { chains, certificates }) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        let refused = match chains.verify_server_cert(certificate, chain, name, ocsp, now) {
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
        if !by_issuer || !certificates.contains(certificate) {
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
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
