#include "agent/inspection/stack_text.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/text/utf8.h"

namespace hvd::agent::inspection {
namespace {

// Python's own modules, installed packages, and the packages of Horovod that may run a script's
// operations, wherever they are.
bool IsLibrary(absl::string_view frame) {
  for (const char* part :
       {"/site-packages/", "/dist-packages/", "/lib/python3", "/horovod/_ffi/", "/horovod/_keras/",
        "/horovod/common/", "/horovod/data/", "/horovod/elastic/", "/horovod/jax/",
        "/horovod/keras/", "/horovod/lightning/", "/horovod/mxnet/", "/horovod/numpy/",
        "/horovod/tensorflow/", "/horovod/torch/"}) {
    if (absl::StrContains(frame, part)) return true;
  }
  return absl::StartsWith(frame, "<frozen");
}

// The frame without the directory of its file.
absl::string_view Short(absl::string_view frame) {
  const size_t file_end = frame.find(':');
  const size_t slash = frame.substr(0, file_end).rfind('/');
  return slash == absl::string_view::npos ? frame : frame.substr(slash + 1);
}

}  // namespace

// faulthandler writes one line per frame: `  File "/home/me/train.py", line 42 in load`
std::vector<std::string> ParseStack(absl::string_view dump) {
  constexpr absl::string_view kLine = "\", line ";
  std::vector<std::string> frames;
  for (size_t end; (end = dump.find('\n')) != absl::string_view::npos;
       dump.remove_prefix(end + 1)) {
    absl::string_view line = dump.substr(0, end);
    if (!absl::ConsumePrefix(&line, "  File \"")) continue;
    const size_t quote = line.rfind(kLine);
    if (quote == absl::string_view::npos) continue;
    frames.push_back(
        text::ToUtf8(absl::StrCat(line.substr(0, quote), ":", line.substr(quote + kLine.size()))));
  }
  return frames;
}

std::string DescribeStack(const std::vector<std::string>& frames) {
  const std::string where = absl::StrCat("is at ", Short(frames.front()));
  if (!IsLibrary(frames.front())) return where;
  const auto own = std::find_if_not(frames.begin(), frames.end(), IsLibrary);
  return own == frames.end() ? where : absl::StrCat(where, ", called at ", Short(*own));
}

}  // namespace hvd::agent::inspection
