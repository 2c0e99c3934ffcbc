#include "agent/output/line_splitter.h"

namespace hvd::agent::output {

// Completes the current line with the first `length` bytes of `bytes`, and removes these.
void LineSplitter::Cut(absl::string_view* bytes, size_t length, const Take& take) {
  if (partial_.empty()) {
    take(bytes->substr(0, length));
  } else {
    partial_.append(bytes->data(), length);
    take(partial_);
    partial_.clear();
  }
  bytes->remove_prefix(length);
}

void LineSplitter::Append(absl::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    const size_t room = kMaxLineBytes - partial_.size();
    const size_t end = bytes.find_first_of("\r\n");
    if (end < room) {
      // A '\r' at the end of a read counts as a line end by itself. Waiting for a '\n' would delay
      // the lines of progress bars.
      const bool pair = bytes[end] == '\r' && end + 1 < bytes.size() && bytes[end + 1] == '\n';
      Cut(&bytes, end + (pair ? 2 : 1), take);
    } else if (bytes.size() >= room) {
      Cut(&bytes, room, take);
    } else {
      partial_.append(bytes.data(), bytes.size());
      return;
    }
  }
}

void LineSplitter::Finish(const Take& take) {
  if (!partial_.empty()) take(partial_);
  partial_.clear();
}

}  // namespace hvd::agent::output
