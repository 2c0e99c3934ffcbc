// What fuzz targets share: their input as text and in parts, and checks that end the process.
#ifndef TESTS_SUPPORT_FUZZING_H_
#define TESTS_SUPPORT_FUZZING_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

// Defined by each fuzz target. Returns 0. The input is valid during the call.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace hvd {

inline absl::string_view AsText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the process, which the fuzzer takes for a failure, unless `condition` holds.
inline void Require(bool condition, absl::string_view what) {
  if (condition) return;
  std::fprintf(stderr, "required, but does not hold: %s\n", std::string(what).c_str());
  std::abort();
}

// Requires what a user or a log gets to see of an error: one line that is not endless, although the
// input may be.
inline void RequireOneLine(absl::string_view message) {
  constexpr size_t kLongest = 2000;
  Require(!message.empty(), "an error says what is wrong");
  const auto bad = std::find_if(message.begin(), message.end(), absl::ascii_iscntrl);
  Require(bad == message.end(), "an error is one line");
  if (message.size() <= kLongest) return;
  Require(false, message.substr(0, kLongest));
}
inline void RequireOneLine(const absl::Status& error) { RequireOneLine(error.message()); }

// Takes an input apart. What is missing at the end is 0 or empty.
class InputParts {
 public:
  InputParts(const uint8_t* data, size_t size) : rest_(AsText(data, size)) {}

  bool empty() const { return rest_.empty(); }
  uint8_t Byte() {
    const absl::string_view byte = Take(1);
    return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
  }
  // Of 1 to 8 bytes, the highest one first.
  uint64_t Number(int bytes) {
    uint64_t number = 0;
    for (int i = 0; i < bytes; ++i) number = number << 8 | Byte();
    return number;
  }
  // A text of up to 65535 bytes that follows its length.
  absl::string_view Text() { return Take(Number(2)); }
  absl::string_view Take(size_t bytes) {
    const absl::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  absl::string_view Rest() { return Take(rest_.size()); }

 private:
  absl::string_view rest_;
};

}  // namespace hvd

#endif  // TESTS_SUPPORT_FUZZING_H_
