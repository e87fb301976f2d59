//! Whom the client trusts, and who it is.
//!
//! Owns: making the settings of TLS. Runs where a connection is made, and reads the system's certificates there. Invariant: no key is in an
//! error. Leaves out: connecting (`http`).

use std::sync::Arc;

use flatwater::bindings::server::error;
use flatwater::{Error, ErrorCode, Result};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::options::RemoteOptions;

/// The certificates of the system are read only if they are needed.
pub(crate) fn tls(is_needed: bool, options: &RemoteOptions) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if is_needed {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for given in &options.certificates {
        for certificate in certificates(given)? {
            let added = roots.add(certificate);
            added.map_err(|error| wrong(format!("a certificate cannot be trusted: {error}")))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| wrong(format!("TLS cannot be used: {error}")))?.with_root_certificates(roots);
    let Some((chain, key)) = &options.identity else { return Ok(config.with_no_client_auth()) };
    let key =
        PrivateKeyDer::from_pem_slice(key).map_err(|_| wrong("the client's key is none in the form PEM".into()))?;
    let config = config.with_client_auth_cert(certificates(chain)?, key);
    config.map_err(|error| wrong(format!("the client's certificate cannot be used: {error}")))
}

/// One in the form DER, or several in the form PEM.
fn certificates(given: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    if !given.trim_ascii_start().starts_with(b"-----") {
        return Ok(vec![CertificateDer::from(given.to_vec())]);
    }
    let all = CertificateDer::pem_slice_iter(given).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| wrong(format!("a certificate cannot be read: {error}")))?;
    if all.is_empty() { Err(wrong("there is no certificate in what was given".into())) } else { Ok(all) }
}

fn wrong(message: String) -> Error {
    error(
        ErrorCode::InvalidOption,
        message,
        "certificates are in the form PEM, or one in the form DER, and a key in the form PEM",
    )
}
