// X.509 certificates as a job needs them: one CA that signs leaf certificates, all with ECDSA P-256
// keys.
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

// A certificate and the private key that belongs to it.
struct CertifiedKey {
  std::unique_ptr<EVP_PKEY, KeyDeleter> key;
  std::unique_ptr<X509, CertificateDeleter> certificate;
};

enum class CertificateRole { kAuthority, kServer, kClient };

// Errors of all functions here, unless they list others:
//   - Internal: OpenSSL failed; says at which step and why.

// Makes a key and a certificate for it. `common_name` is cut to the 64 bytes that X.509 allows.
// `dns_name` is the only name that a client accepts from a server; empty: none. `issuer` is null
// for an authority, which signs itself. Only reads `issuer`, so that calls may share one.
absl::StatusOr<CertifiedKey> Certify(CertificateRole role, absl::string_view common_name,
                                     absl::string_view dns_name, const CertifiedKey* issuer);

// PEM texts of the two halves; the key as PKCS#8, not encrypted.
absl::StatusOr<std::string> CertificatePem(const CertifiedKey& certified);
absl::StatusOr<std::string> PrivateKeyPem(const CertifiedKey& certified);

// Checks that these are PEM texts of an authority's certificate, and of a certificate and its key.
// Thread-safe.
// Errors:
//   - InvalidArgument: they are not; says which.
absl::Status CheckPem(const std::string& authority, const std::string& certificate,
                      const std::string& key);

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_CERTIFICATES_H_
