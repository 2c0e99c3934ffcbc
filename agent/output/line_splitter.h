// A splitter of a worker's output into lines.
#ifndef AGENT_OUTPUT_LINE_SPLITTER_H_
#define AGENT_OUTPUT_LINE_SPLITTER_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd::agent::output {

// Cuts a stream of bytes after each '\n', "\r\n" and '\r' (progress bars use it alone), and after
// kMaxLineBytes without one of these. Adds and drops no bytes. Not thread-safe.
class LineSplitter {
 public:
  static constexpr size_t kMaxLineBytes = 64 << 10;
  using Take = std::function<void(absl::string_view line)>;

  void Append(absl::string_view bytes, const Take& take);
  // Passes on the last line if it has no line end: at the end of the stream, or of what one of
  // several programs has written to it.
  void Finish(const Take& take);

 private:
  void Cut(absl::string_view* bytes, size_t length, const Take& take);

  std::string partial_;  // shorter than kMaxLineBytes, without an end
};

}  // namespace hvd::agent::output

#endif  // AGENT_OUTPUT_LINE_SPLITTER_H_
