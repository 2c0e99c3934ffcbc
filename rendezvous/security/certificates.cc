#include "rendezvous/security/certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace hvd::rendezvous::security {
namespace {

constexpr size_t kLongestCommonName = 64;  // X.520's upper bound; OpenSSL refuses more

// The validity starts in the past, since hosts' clocks may be behind the launcher's, and is longer
// than any job runs.
constexpr absl::Duration kValidBefore = absl::Hours(24);
constexpr absl::Duration kValidFor = absl::Hours(24 * 3650);

absl::Status OpenSslError(absl::string_view step) {
  // The error queue of OpenSSL belongs to the thread. It is cleared, or a later, unrelated call
  // would report an old entry.
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("OpenSSL failed to ", step, ": ", text.data()));
}

absl::Status SetValidity(X509* certificate) {
  const time_t from = absl::ToTimeT(WallNow() - kValidBefore);
  const time_t until = absl::ToTimeT(WallNow() + kValidFor);
  if (ASN1_TIME_set(X509_getm_notBefore(certificate), from) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate), until) == nullptr) {
    return OpenSslError("set a certificate's validity");
  }
  return absl::OkStatus();
}

// Serial numbers must be unique within the CA; random ones need no counter.
absl::Status SetSerial(X509* certificate) {
  std::unique_ptr<BIGNUM, decltype(&BN_free)> serial(BN_new(), BN_free);
  // 127 bits with the highest one set: RFC 5280 wants a positive number of at most 20 bytes.
  if (serial == nullptr || BN_rand(serial.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return OpenSslError("set a certificate's serial number");
  }
  return absl::OkStatus();
}

absl::Status SetSubject(X509* certificate, absl::string_view common_name) {
  const absl::string_view name = common_name.substr(0, kLongestCommonName);
  X509_NAME* subject = X509_get_subject_name(certificate);
  if (X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_ASC,
                                 // The signature lacks a const; OpenSSL copies the text.
                                 reinterpret_cast<unsigned char*>(const_cast<char*>(name.data())),
                                 static_cast<int>(name.size()), -1, 0) != 1) {
    return OpenSslError(absl::StrCat("name a certificate \"", name, "\""));
  }
  return absl::OkStatus();
}

absl::Status AddExtension(X509* certificate, X509V3_CTX& context, int nid,
                          const std::string& value) {
  std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()), X509_EXTENSION_free);
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpenSslError(absl::StrCat("add the extension \"", value, "\""));
  }
  return absl::OkStatus();
}

absl::Status AddExtensions(X509* certificate, X509* issuer, CertificateRole role,
                           absl::string_view dns_name) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const auto add = [&](int nid, const std::string& value) {
    return AddExtension(certificate, context, nid, value);
  };
  // A hash of the public key, which is set already. The leaves' authority key identifier below is
  // that of the CA's certificate.
  RETURN_IF_ERROR(add(NID_subject_key_identifier, "hash"));
  if (role == CertificateRole::kAuthority) {
    // The CA issues certificates of hosts and of the daemon only, so no other CA may be below it.
    RETURN_IF_ERROR(add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
    return add(NID_key_usage, "critical,keyCertSign");
  }
  RETURN_IF_ERROR(add(NID_authority_key_identifier, "keyid:always"));
  RETURN_IF_ERROR(add(NID_basic_constraints, "critical,CA:FALSE"));
  RETURN_IF_ERROR(add(NID_key_usage, "critical,digitalSignature"));
  RETURN_IF_ERROR(
      add(NID_ext_key_usage, role == CertificateRole::kServer ? "serverAuth" : "clientAuth"));
  if (dns_name.empty()) return absl::OkStatus();
  return add(NID_subject_alt_name, absl::StrCat("DNS:", dns_name));
}

// Returns the text that `write` writes into a memory BIO.
template <typename Write>
absl::StatusOr<std::string> ToPem(absl::string_view what, Write write) {
  std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
  if (bio == nullptr || write(bio.get()) != 1) return OpenSslError(absl::StrCat("print ", what));
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

// For encrypted keys. Without a callback OpenSSL would ask for the password on the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

// Returns the object that `read` parses from a PEM text, or null.
template <typename Read>
auto FromPem(const std::string& pem, Read read) {
  std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  return read(bio.get(), nullptr, NoPassword, nullptr);
}

}  // namespace

absl::StatusOr<CertifiedKey> Certify(CertificateRole role, absl::string_view common_name,
                                     absl::string_view dns_name, const CertifiedKey* issuer) {
  CertifiedKey made;
  made.key.reset(EVP_EC_gen("P-256"));
  if (made.key == nullptr) return OpenSslError("make a P-256 key");
  made.certificate.reset(X509_new());
  X509* const certificate = made.certificate.get();
  if (certificate == nullptr || X509_set_version(certificate, X509_VERSION_3) != 1 ||
      X509_set_pubkey(certificate, made.key.get()) != 1) {
    return OpenSslError("make a certificate");
  }
  RETURN_IF_ERROR(SetSerial(certificate));
  RETURN_IF_ERROR(SetValidity(certificate));
  RETURN_IF_ERROR(SetSubject(certificate, common_name));
  const CertifiedKey& signer = issuer == nullptr ? made : *issuer;
  if (X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate.get())) != 1) {
    return OpenSslError("set a certificate's issuer");
  }
  RETURN_IF_ERROR(AddExtensions(certificate, signer.certificate.get(), role, dns_name));
  // Last, since the signature covers everything above.
  if (X509_sign(certificate, signer.key.get(), EVP_sha256()) == 0) {
    return OpenSslError("sign a certificate");
  }
  return made;
}

absl::StatusOr<std::string> CertificatePem(const CertifiedKey& certified) {
  return ToPem("a certificate",
               [&](BIO* bio) { return PEM_write_bio_X509(bio, certified.certificate.get()); });
}

absl::StatusOr<std::string> PrivateKeyPem(const CertifiedKey& certified) {
  return ToPem("a private key", [&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, certified.key.get(), nullptr, nullptr, 0, nullptr,
                                    nullptr);
  });
}

absl::Status CheckPem(const std::string& authority, const std::string& certificate,
                      const std::string& key) {
  RETURN_IF_ERROR(CheckPem(authority));
  const CertifiedKey own = {
      std::unique_ptr<EVP_PKEY, KeyDeleter>(FromPem(key, PEM_read_bio_PrivateKey)),
      std::unique_ptr<X509, CertificateDeleter>(FromPem(certificate, PEM_read_bio_X509))};
  const char* wrong = nullptr;
  if (own.certificate == nullptr) wrong = "the certificate can't be read";
  if (own.key == nullptr) wrong = "the private key can't be read";
  if (wrong == nullptr && X509_check_private_key(own.certificate.get(), own.key.get()) != 1) {
    wrong = "the private key is not the certificate's";
  }
  ERR_clear_error();
  return wrong == nullptr ? absl::OkStatus() : absl::InvalidArgumentError(wrong);
}

absl::Status CheckPem(const std::string& authority) {
  const std::unique_ptr<X509, CertificateDeleter> root(FromPem(authority, PEM_read_bio_X509));
  ERR_clear_error();
  if (root != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError("the authority's certificate can't be read");
}

}  // namespace hvd::rendezvous::security
