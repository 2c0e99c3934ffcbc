#include "base/crypto.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "absl/base/internal/raw_logging.h"

namespace hvd {

std::string Sha256(absl::string_view message) {
  std::string digest(kSha256Bytes, '\0');
  // Can't fail: OpenSSL always has this digest.
  if (EVP_Digest(message.data(), message.size(), reinterpret_cast<unsigned char*>(&digest[0]),
                 nullptr, EVP_sha256(), nullptr) != 1) {
    ABSL_RAW_LOG(FATAL, "OpenSSL has no SHA-256");
  }
  return digest;
}

std::string HmacSha256(absl::string_view key, absl::string_view message) {
  std::string digest(kHmacSha256Bytes, '\0');
  // Can't fail with a digest that OpenSSL always has. If it failed, aborting is safer than
  // accepting a forged proof.
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(&digest[0]), nullptr) == nullptr) {
    ABSL_RAW_LOG(FATAL, "OpenSSL has no HMAC-SHA256");
  }
  return digest;
}

bool ConstantTimeEquals(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool CheckHmacSha256(absl::string_view key, absl::string_view message, absl::string_view proof) {
  return ConstantTimeEquals(proof, HmacSha256(key, message));
}

std::string RandomBytes(size_t bytes) {
  std::string random(bytes, '\0');
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = getrandom(&random[filled], bytes - filled, 0);
    if (got >= 0) {
      filled += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      // All supported kernels have getrandom. Without it secrets would be predictable.
      ABSL_RAW_LOG(FATAL, "getrandom failed: errno %d", errno);
    }
  }
  return random;
}

}  // namespace hvd
