//! TLS for clients: certificates, keys and rules from files, as rustls takes them.
//!
//! It knows files and settings. Connections are encrypted by `snugly_net`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use thiserror::Error;

use crate::settings::{Configuration, TlsClients, TlsProtocols};

/// Reason why connections cannot be encrypted.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A setting is missing.
    #[error("{0}")]
    Missing(&'static str),
    /// A file cannot be read, or has not what is looked for.
    #[error("cannot read {what} from {path}: {reason}")]
    File {
        /// What was looked for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The certificate and the key do not go together, or are not for this.
    #[error("cannot use the certificate of {certificate} with the key of {key}: {reason}")]
    Unusable {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The library's error.
        reason: rustls::Error,
    },
    /// The certificates of the authority cannot be used to verify others.
    #[error("cannot verify clients by {path}: {reason}")]
    Authority {
        /// The authority's file.
        path: PathBuf,
        /// The library's error.
        reason: VerifierBuilderError,
    },
}

const NO_CERTIFICATE: &str = "tls-port needs tls-cert-file and tls-key-file";
const NO_AUTHORITY: &str = "clients cannot be verified without tls-ca-cert-file: set it, or tls-auth-clients to no, \
                            which lets clients in without a certificate";

/// The configuration of TLS by these settings; the files are read anew.
///
/// # Errors
/// [`TlsError`].
pub(crate) fn server_config(configuration: &Configuration) -> Result<Arc<ServerConfig>, TlsError> {
    let (certificate, key) =
        (Path::new(&configuration.tls_cert_file), Path::new(&configuration.tls_key_file));
    if [certificate, key].iter().any(|path| path.as_os_str().is_empty()) {
        return Err(TlsError::Missing(NO_CERTIFICATE));
    }
    let chain = certificates(certificate)?;
    let private_key =
        PrivateKeyDer::from_pem_file(key).map_err(|error| file("a private key", key, &error))?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions(configuration.tls_protocols))
        .expect("the provider has suites for every version");
    let builder = match configuration.tls_auth_clients {
        TlsClients::Unverified => builder.with_no_client_auth(),
        verified => {
            let path = Path::new(&configuration.tls_ca_cert_file);
            let verifier = WebPkiClientVerifier::builder_with_provider(authority(path)?, provider);
            let verifier = match verified {
                TlsClients::Optional => verifier.allow_unauthenticated(),
                _ => verifier,
            };
            let verifier = verifier.build();
            builder.with_client_cert_verifier(
                verifier.map_err(|reason| TlsError::Authority { path: path.to_owned(), reason })?,
            )
        }
    };
    let config = builder.with_single_cert(chain, private_key);
    config.map(Arc::new).map_err(|reason| TlsError::Unusable {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        reason,
    })
}

fn versions(protocols: TlsProtocols) -> &'static [&'static SupportedProtocolVersion] {
    static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    match protocols {
        TlsProtocols::Both => &BOTH,
        TlsProtocols::Tls12 => &BOTH[1..],
        TlsProtocols::Tls13 => &BOTH[..1],
    }
}

/// The certificates whose owners' signatures are trusted.
fn authority(path: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    if path.as_os_str().is_empty() {
        return Err(TlsError::Missing(NO_AUTHORITY));
    }
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| file("a certificate", path, &error))?;
    }
    Ok(Arc::new(roots))
}

/// All certificates of a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, pem::Error>>);
    match read {
        Ok(certificates) if certificates.is_empty() => {
            Err(file("a certificate", path, &"there is none in it, in the form of PEM"))
        }
        read => read.map_err(|error| file("a certificate", path, &error)),
    }
}

fn file(what: &'static str, path: &Path, reason: &impl ToString) -> TlsError {
    TlsError::File { what, path: path.to_owned(), reason: reason.to_string() }
}
