// The cryptographic operations for a job's proofs and secrets.
#ifndef BASE_CRYPTO_H_
#define BASE_CRYPTO_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd {

inline constexpr size_t kHmacSha256Bytes = 32;

inline constexpr size_t kSha256Bytes = 32;

// SHA-256(message), kSha256Bytes long. Thread-safe, as are all functions here.
std::string Sha256(absl::string_view message);

// HMAC-SHA256(key, message), kHmacSha256Bytes long.
std::string HmacSha256(absl::string_view key, absl::string_view message);

// Compares in a time that depends only on the lengths.
bool ConstantTimeEquals(absl::string_view a, absl::string_view b);

// Whether `proof` is HmacSha256(key, message). Takes a time that does not depend on the contents of
// `proof`.
bool CheckHmacSha256(absl::string_view key, absl::string_view message, absl::string_view proof);

// Returns `bytes` random bytes from the kernel's generator. Aborts the process if the generator
// fails, since secrets can't be made without it.
std::string RandomBytes(size_t bytes);

}  // namespace hvd

#endif  // BASE_CRYPTO_H_
