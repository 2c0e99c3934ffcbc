#include <mutex>
#include <string>

#include "tests/gpu/simulated/nccl/communicator.h"

namespace simulated_gpu {
namespace {

struct Text {
  std::mutex mutex;
  std::string text;
};

Text& Last() {
  static auto* const last = new Text;
  return *last;
}

}  // namespace

void SetLastError(const std::string& text) {
  Text& last = Last();
  const std::lock_guard<std::mutex> lock(last.mutex);
  last.text = text;
}

// A copy for each thread: the text may change at any time.
const char* LastError() {
  static thread_local std::string copy;
  Text& last = Last();
  const std::lock_guard<std::mutex> lock(last.mutex);
  copy = last.text;
  return copy.c_str();
}

}  // namespace simulated_gpu
