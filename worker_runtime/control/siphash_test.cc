#include "worker_runtime/control/siphash.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <memory>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::control {
namespace {

std::string Counted(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i);
  return text;
}

// OpenSSL's.
std::string Expected(std::string key, const std::string& message) {
  const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> mac(
      EVP_MAC_fetch(nullptr, "SIPHASH", nullptr), EVP_MAC_free);
  const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(
      EVP_MAC_CTX_new(mac.get()), EVP_MAC_CTX_free);
  size_t size = SipHash::kBytes;
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
                                   OSSL_PARAM_construct_end()};
  EXPECT_EQ(EVP_MAC_init(context.get(), reinterpret_cast<unsigned char*>(key.data()), key.size(),
                         parameters),
            1);
  EXPECT_EQ(EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(message.data()),
                           message.size()),
            1);
  std::string hash(SipHash::kBytes, '\0');
  EXPECT_EQ(EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(hash.data()), &size,
                          hash.size()),
            1);
  return hash;
}

TEST(SipHashTest, KnownAnswer) {
  EXPECT_EQ(absl::BytesToHexString(SipHash(Counted(16)).Of("")),
            "a3817f04ba25a8e66df67214c7550293");
}

TEST(SipHashTest, IsThatOfOpenSsl_ForEveryLength) {
  for (const std::string& key : {Counted(16), std::string(16, '\xff')}) {
    const SipHash hash(key);
    for (size_t bytes = 0; bytes < 300; ++bytes) {
      EXPECT_EQ(hash.Of(Counted(bytes)), Expected(key, Counted(bytes))) << bytes;
    }
  }
}

}  // namespace
}  // namespace hvd::worker_runtime::control
