#include "agent/output/stderr_tail.h"

#include "absl/strings/match.h"
#include "base/text/utf8.h"

namespace hvd::agent::output {

void StderrTail::Append(absl::string_view line) {
  const bool passing = absl::EndsWith(line, "\r");
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  // Some programs write '\r' before the text. The empty line before that '\r' must not replace the
  // text that precedes it.
  if (line.empty() && (passing || overwrite_)) return;
  if (overwrite_ && !lines_.empty()) lines_.pop_back();
  overwrite_ = passing;
  lines_.push_back(text::ToUtf8(line.substr(0, kMaxLineBytes)));
  if (lines_.size() > kMaxLines) lines_.pop_front();
}

}  // namespace hvd::agent::output
