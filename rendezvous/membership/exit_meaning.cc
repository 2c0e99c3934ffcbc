#include "rendezvous/membership/exit_meaning.h"

#include <string.h>  // sigabbrev_np is glibc's, not the standard's

#include "absl/strings/str_cat.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

std::string SignalMeaning(int signal) {
  const char* name = sigabbrev_np(signal);
  if (name == nullptr) return absl::StrCat("killed by signal ", signal);
  return absl::StrCat("killed by signal ", signal, " (SIG", name, ")");
}

}  // namespace

std::string ExitMeaning(const WorkerExited& exited) {
  if (!exited.start_error.empty()) {
    return absl::StrCat("could not be started: ", exited.start_error);
  }
  if (!exited.unknown_end.empty()) return phrases::OneLine(exited.unknown_end);
  if (exited.signal == 0) return absl::StrCat("exit code ", exited.exit_code);
  std::string meaning = SignalMeaning(exited.signal);
  if (exited.core_dumped) absl::StrAppend(&meaning, ", core dumped");
  if (exited.out_of_memory) absl::StrAppend(&meaning, ", out of memory");
  if (!exited.killed_for.empty()) {
    absl::StrAppend(&meaning, " by its agent: ", phrases::OneLine(exited.killed_for));
  }
  return meaning;
}

bool ExitedWithZero(const WorkerExited& exited) {
  return exited.start_error.empty() && exited.signal == 0 && exited.exit_code == 0;
}

int FailureExitCode(const WorkerExited& exited) {
  if (!exited.start_error.empty()) return 1;
  const int code = exited.signal == 0 ? exited.exit_code : 128 + exited.signal;
  return code >= 1 && code <= 255 ? code : 1;
}

}  // namespace hvd::rendezvous::membership
