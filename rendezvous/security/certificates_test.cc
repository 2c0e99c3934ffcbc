#include "rendezvous/security/certificates.h"

#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <string>

#include "gtest/gtest.h"

namespace hvd::rendezvous::security {
namespace {

class CertificatesTest : public testing::Test {
 protected:
  static CertifiedKey Make(CertificateRole role, const std::string& name, const std::string& dns,
                           const CertifiedKey* issuer) {
    auto made = Certify(role, name, dns, issuer);
    EXPECT_TRUE(made.ok()) << made.status();
    return std::move(*made);
  }

  // OpenSSL's opinion of `leaf` as a certificate of `authority` for a purpose.
  static int Verify(const CertifiedKey& authority, const CertifiedKey& leaf, int purpose) {
    std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(),
                                                                  X509_STORE_free);
    X509_STORE_add_cert(store.get(), authority.certificate.get());
    X509_STORE_set_flags(store.get(), X509_V_FLAG_X509_STRICT);
    std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(X509_STORE_CTX_new(),
                                                                            X509_STORE_CTX_free);
    X509_STORE_CTX_init(context.get(), store.get(), leaf.certificate.get(), nullptr);
    X509_STORE_CTX_set_purpose(context.get(), purpose);
    X509_verify_cert(context.get());
    return X509_STORE_CTX_get_error(context.get());
  }

  static std::string CommonName(const CertifiedKey& certified) {
    std::string name(256, '\0');
    name.resize(static_cast<size_t>(
        X509_NAME_get_text_by_NID(X509_get_subject_name(certified.certificate.get()),
                                  NID_commonName, name.data(), static_cast<int>(name.size()))));
    return name;
  }

  const CertifiedKey authority_ = Make(CertificateRole::kAuthority, "job", "", nullptr);
};

TEST_F(CertificatesTest, Server_IsOneAndNoClient) {
  const CertifiedKey leaf = Make(CertificateRole::kServer, "daemon", "daemon", &authority_);
  EXPECT_EQ(Verify(authority_, leaf, X509_PURPOSE_SSL_SERVER), X509_V_OK);
  EXPECT_EQ(Verify(authority_, leaf, X509_PURPOSE_SSL_CLIENT), X509_V_ERR_INVALID_PURPOSE);
  EXPECT_EQ(X509_check_host(leaf.certificate.get(), "daemon", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(leaf.certificate.get(), "other", 0, 0, nullptr), 0);
}

TEST_F(CertificatesTest, Client_IsOneAndNoServer) {
  const CertifiedKey leaf = Make(CertificateRole::kClient, "host1", "", &authority_);
  EXPECT_EQ(Verify(authority_, leaf, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  EXPECT_EQ(Verify(authority_, leaf, X509_PURPOSE_SSL_SERVER), X509_V_ERR_INVALID_PURPOSE);
}

TEST_F(CertificatesTest, OtherAuthorityWithTheSameName_IsRejected) {
  const CertifiedKey other = Make(CertificateRole::kAuthority, "job", "", nullptr);
  const CertifiedKey leaf = Make(CertificateRole::kClient, "host1", "", &other);
  EXPECT_NE(Verify(authority_, leaf, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
}

TEST_F(CertificatesTest, Leaf_CantIssueCertificates) {
  const CertifiedKey leaf = Make(CertificateRole::kClient, "host1", "", &authority_);
  const CertifiedKey forged = Make(CertificateRole::kClient, "host2", "", &leaf);
  EXPECT_NE(Verify(leaf, forged, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
}

TEST_F(CertificatesTest, Validity_StartsADayAgo) {
  int days = 0;
  int seconds = 0;
  ASSERT_EQ(ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(authority_.certificate.get()),
                           X509_get0_notAfter(authority_.certificate.get())),
            1);
  EXPECT_EQ(days, 3651);
  EXPECT_LT(X509_cmp_current_time(X509_get0_notBefore(authority_.certificate.get())), 0);
}

TEST_F(CertificatesTest, CommonName_IsKept_AndCutWhereX509EndsIt) {
  EXPECT_EQ(CommonName(Make(CertificateRole::kClient, "gpu-7.example", "", &authority_)),
            "gpu-7.example");
  EXPECT_EQ(CommonName(Make(CertificateRole::kClient, std::string(200, 'h'), "", &authority_)),
            std::string(64, 'h'));
}

TEST_F(CertificatesTest, CommonName_Empty_Fails) {
  const auto made = Certify(CertificateRole::kClient, "", "", &authority_);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInternal);
}

TEST_F(CertificatesTest, Pem_HasTheUsualFrames) {
  EXPECT_EQ(CertificatePem(authority_)->rfind("-----BEGIN CERTIFICATE-----\n", 0), 0u);
  EXPECT_EQ(PrivateKeyPem(authority_)->rfind("-----BEGIN PRIVATE KEY-----\n", 0), 0u);
}

TEST_F(CertificatesTest, CheckPem_SaysWhichTextIsWrong) {
  const CertifiedKey authority = Make(CertificateRole::kAuthority, "ca", "", nullptr);
  const CertifiedKey leaf = Make(CertificateRole::kServer, "leaf", "", &authority);
  const std::string root = *CertificatePem(authority);
  const std::string certificate = *CertificatePem(leaf);
  const std::string key = *PrivateKeyPem(leaf);
  EXPECT_TRUE(CheckPem(root, certificate, key).ok());
  const auto wrong = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(wrong(CheckPem("x", certificate, key)), "the authority's certificate can't be read");
  EXPECT_TRUE(CheckPem(root).ok());
  EXPECT_EQ(wrong(CheckPem(key)), "the authority's certificate can't be read");
  EXPECT_EQ(wrong(CheckPem(root, "", key)), "the certificate can't be read");
  EXPECT_EQ(wrong(CheckPem(root, certificate, "x")), "the private key can't be read");
  EXPECT_EQ(wrong(CheckPem(root, certificate, *PrivateKeyPem(authority))),
            "the private key is not the certificate's");
}

}  // namespace
}  // namespace hvd::rendezvous::security
