// SipHash-2-4 with a result of 128 bits: a keyed hash for short messages.
#ifndef WORKER_RUNTIME_CONTROL_SIPHASH_H_
#define WORKER_RUNTIME_CONTROL_SIPHASH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd::worker_runtime::control {

// Whoever does not know the key can't tell the hash of any message, as with HMAC, at a tenth of its
// price for the messages of some hundred bytes that are sent for every small operation. (J.-P.
// Aumasson, D. J. Bernstein: SipHash, a fast short-input PRF.) Immutable; thread-safe.
class SipHash {
 public:
  static constexpr size_t kKeyBytes = 16;
  static constexpr size_t kBytes = 16;

  // REQUIRES: key.size() == kKeyBytes.
  explicit SipHash(absl::string_view key);

  // kBytes long.
  std::string Of(absl::string_view message) const;

 private:
  std::array<uint64_t, 2> key_;
};

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_SIPHASH_H_
