#include "agent/inspection/process_state.h"

#include <fcntl.h>

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"

namespace hvd::agent::inspection {
namespace {

// The beginning of a file of the process's in /proc; empty: it can't be read.
std::string ReadStart(pid_t pid, absl::string_view name) {
  const Fd file(open(absl::StrCat("/proc/", pid, "/", name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return "";
  char buffer[4096];
  const IoResult got = ReadSome(file.get(), buffer, sizeof(buffer));
  return std::string(buffer, got.bytes);
}

}  // namespace

char StateOf(pid_t pid) {
  const std::string text = ReadStart(pid, "stat");
  // "12 (name) T ...": the name may hold anything, parentheses too.
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2] : '\0';
}

bool IsStopped(pid_t pid) { return StateOf(pid) == 'T'; }

bool Catches(pid_t pid, int signal) {
  const std::string caught_line = "\nSigCgt:\t";
  const std::string text = ReadStart(pid, "status");
  const size_t found = text.find(caught_line);
  uint64_t caught = 0;
  return found != std::string::npos &&
         absl::SimpleHexAtoi(absl::string_view(text).substr(found + caught_line.size(), 16),
                             &caught) &&
         (caught >> (signal - 1) & 1) != 0;
}

}  // namespace hvd::agent::inspection
