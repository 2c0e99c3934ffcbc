#include "launcher/agent/process_state.h"

#include <fcntl.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"

namespace hvd {

bool IsStopped(pid_t pid) {
  const Fd file(open(absl::StrCat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  char buffer[512];
  const IoResult got = ReadSome(file.get(), buffer, sizeof(buffer));
  const absl::string_view text(buffer, got.bytes);
  // "12 (name) T ...": the name may hold anything, parentheses too.
  const size_t name_end = text.rfind(')');
  return name_end != absl::string_view::npos && name_end + 2 < text.size() &&
         text[name_end + 2] == 'T';
}

}  // namespace hvd
