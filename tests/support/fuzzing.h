// What fuzz targets share: their input as text, and a check that ends the process.
#ifndef TESTS_SUPPORT_FUZZING_H_
#define TESTS_SUPPORT_FUZZING_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/string_view.h"

// Defined by each fuzz target. Returns 0. The input is valid during the call.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace hvd {

inline absl::string_view AsText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the process, which the fuzzer takes for a failure, unless `condition` holds.
inline void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "required, but does not hold: %s\n", what);
  std::abort();
}

}  // namespace hvd

#endif  // TESTS_SUPPORT_FUZZING_H_
