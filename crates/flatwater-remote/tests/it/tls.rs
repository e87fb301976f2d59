//! A server with TLS: whom the client trusts, and who it is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater::ErrorKind;
use flatwater_remote::{Remote, RemoteOptions};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::double::Double;

/// An authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    /// A certificate of this name, and its key, in the form PEM.
    fn certificate(&self, name: &str) -> (Vec<u8>, Vec<u8>) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        (certificate.pem().into_bytes(), key.serialize_pem().into_bytes())
    }
}

/// Terminates TLS before a node, for as long as the test runs. Clients need a certificate of `clients`, if it is given.
fn before(node: &str, (certificate, key): &(Vec<u8>, Vec<u8>), clients: Option<&Authority>) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(&authority.pem()).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = vec![CertificateDer::from_pem_slice(certificate).unwrap()];
    let config = builder.with_single_cert(chain, PrivateKeyDer::from_pem_slice(key).unwrap()).unwrap();
    let (acceptor, node) = (TlsAcceptor::from(Arc::new(config)), node.to_owned());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            while let Ok((client, _)) = listener.accept().await {
                let (acceptor, node) = (acceptor.clone(), node.clone());
                tokio::spawn(async move {
                    let mut client = acceptor.accept(client).await?;
                    let mut node = TcpStream::connect(node).await?;
                    tokio::io::copy_bidirectional(&mut client, &mut node).await
                });
            }
        });
    });
    told.recv().unwrap()
}

fn options(at: SocketAddr) -> RemoteOptions {
    RemoteOptions::new(&format!("rqlites://ada:open-sesame@localhost:{}", at.port()))
        .unwrap()
        .timeout(Duration::from_secs(60))
}

fn one(options: RemoteOptions) -> flatwater::Result<i64> {
    Remote::with(options)?.query_value("SELECT 1", ()).wait()
}

#[test]
fn a_server_is_trusted_by_its_authority_and_its_name() {
    let (double, authority) = (Double::start(), Authority::new());
    let at = before(&double.nodes[0], &authority.certificate("localhost"), None);
    assert_eq!(one(options(at).trust(authority.pem())).unwrap(), 1);
    let other = before(&double.nodes[0], &authority.certificate("other.example.com"), None);
    for refused in [options(at), options(at).trust(Authority::new().pem()), options(other).trust(authority.pem())] {
        let began = Instant::now();
        let error = one(refused).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Open, "{error}");
        assert!(error.message().contains("cannot be trusted") && error.hint().is_some(), "{error}");
        assert!(!error.to_string().contains("sesame"));
        // It is no use to ask again.
        assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    }
}

#[test]
fn a_client_may_have_a_certificate_of_its_own() {
    let (double, authority, clients) = (Double::start(), Authority::new(), Authority::new());
    let at = before(&double.nodes[0], &authority.certificate("localhost"), Some(&clients));
    let trusting = || options(at).trust(authority.pem());
    let (certificate, key) = clients.certificate("ada");
    assert_eq!(one(trusting().client_certificate(certificate.clone(), key.clone())).unwrap(), 1);
    let hasty = trusting().timeout(Duration::from_millis(500));
    one(hasty.clone()).unwrap_err();
    let (stranger, its_key) = Authority::new().certificate("eve");
    one(hasty.client_certificate(stranger, its_key)).unwrap_err();
    // In an address, by the paths of files.
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let (ca, cert, key) = (path("ca.pem", &authority.pem()), path("cert.pem", &certificate), path("key.pem", &key));
    let address = format!("rqlites://localhost:{}/?ca={ca}&cert={cert}&key={key}&timeout=60s", at.port());
    assert_eq!(one(RemoteOptions::new(&address).unwrap()).unwrap(), 1);
    for wrong in [format!("ca={cert}x"), format!("cert={cert}")] {
        let error = RemoteOptions::new(&format!("rqlites://localhost/?{wrong}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    }
    for nothing in
        [trusting().trust(b"-----BEGIN NONSENSE-----".to_vec()), trusting().client_certificate(vec![], vec![])]
    {
        assert_eq!(Remote::with(nothing).unwrap_err().kind(), ErrorKind::Misuse);
    }
}
