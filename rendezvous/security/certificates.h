// The X.509 certificates of a job: one CA that signs leaf certificates, all with ECDSA P-256 keys.
#ifndef RENDEZVOUS_SECURITY_CERTIFICATES_H_
#define RENDEZVOUS_SECURITY_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::rendezvous::security {

struct KeyDeleter {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct CertificateDeleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

// A certificate and its private key.
struct CertifiedKey {
  std::unique_ptr<EVP_PKEY, KeyDeleter> key;
  std::unique_ptr<X509, CertificateDeleter> certificate;
};

enum class CertificateRole { kAuthority, kServer, kClient };

// Errors of all functions here, unless they list their own:
//   - Internal: OpenSSL failed; says at which step and why.

// Creates a key and a certificate for it.
// - `common_name` is truncated to the 64 bytes that X.509 allows.
// - `dns_name` is the subject alternative name, against which clients check a server; empty: none.
// - `issuer` is null for an authority, which is self-signed. It is only read, so concurrent calls
//   may share one.
absl::StatusOr<CertifiedKey> Certify(CertificateRole role, absl::string_view common_name,
                                     absl::string_view dns_name, const CertifiedKey* issuer);

// The PEM texts of the certificate and of the key (PKCS#8, unencrypted).
absl::StatusOr<std::string> CertificatePem(const CertifiedKey& certified);
absl::StatusOr<std::string> PrivateKeyPem(const CertifiedKey& certified);

// Checks that the texts are valid PEM: a CA certificate, and a certificate with its matching key.
// Thread-safe.
// Errors:
//   - InvalidArgument: a text is not valid; says which.
absl::Status CheckPem(const std::string& authority, const std::string& certificate,
                      const std::string& key);

// The same for the CA certificate alone.
absl::Status CheckPem(const std::string& authority);

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_CERTIFICATES_H_
