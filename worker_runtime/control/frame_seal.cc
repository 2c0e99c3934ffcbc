#include "worker_runtime/control/frame_seal.h"

#include "absl/strings/str_cat.h"
#include "base/crypto.h"

namespace hvd::worker_runtime::control {

FrameSeal::FrameSeal(absl::string_view secret, int from, int to)
    : hash_(HmacSha256(secret, absl::StrCat("control frames from rank ", from, " to rank ", to))
                .substr(0, SipHash::kKeyBytes)) {}

std::string FrameSeal::Next(absl::string_view contents) {
  char number[sizeof(uint64_t)];
  for (size_t i = 0; i < sizeof(number); ++i) number[i] = static_cast<char>(number_ >> (8 * i));
  ++number_;
  return hash_.Of(absl::StrCat(absl::string_view(number, sizeof(number)), contents));
}

}  // namespace hvd::worker_runtime::control
