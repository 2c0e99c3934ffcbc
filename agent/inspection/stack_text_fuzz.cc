// Fuzz target: dumps of Python's faulthandler, into which a worker may write anything else.
#include "agent/inspection/stack_text.h"
#include "base/text/json.h"
#include "tests/support/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  const absl::string_view dump = hvd::AsText(data, size);
  const std::vector<std::string> frames = hvd::agent::inspection::ParseStack(dump);
  size_t bytes = 0;
  for (const std::string& frame : frames) {
    Require(hvd::text::IsUtf8(frame), "a frame is UTF-8");
    Require(!frame.empty() && frame.find('\n') == std::string::npos, "a frame is one line");
    bytes += frame.size();
  }
  Require(bytes <= 3 * dump.size(), "the frames are not longer than the dump");
  if (!frames.empty()) Require(!hvd::agent::inspection::DescribeStack(frames).empty(), "a text");
  return 0;
}
