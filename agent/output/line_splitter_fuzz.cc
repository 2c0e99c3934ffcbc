// Fuzz target: the output of a worker, which arrives in pieces of any size.
#include <vector>

#include "agent/output/line_splitter.h"
#include "tests/support/fuzzing.h"

namespace hvd::agent::output {
namespace {

std::vector<std::string> Split(absl::string_view bytes, size_t piece) {
  std::vector<std::string> lines;
  LineSplitter splitter;
  const auto take = [&](absl::string_view line) {
    Require(!line.empty() && line.size() <= LineSplitter::kMaxLineBytes, "a line's size");
    lines.emplace_back(line);
  };
  while (!bytes.empty()) {
    splitter.Append(bytes.substr(0, piece), take);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  splitter.Finish(take);
  return lines;
}

}  // namespace
}  // namespace hvd::agent::output

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  hvd::InputParts parts(data, size);
  const size_t piece = 1 + parts.Byte();
  const absl::string_view bytes = parts.Rest();
  for (const size_t each : {piece, bytes.size() + 1}) {
    std::string joined;
    for (const std::string& line : hvd::agent::output::Split(bytes, each)) {
      joined += line;
      const size_t end = line.find_first_of("\r\n");
      Require(end == std::string::npos || end + 2 >= line.size(), "a line ends with its end");
    }
    Require(joined == bytes, "no byte is added or lost");
  }
  return 0;
}
