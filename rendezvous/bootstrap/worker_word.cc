#include "rendezvous/bootstrap/worker_word.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/crypto.h"

namespace hvd::rendezvous::bootstrap {
namespace {

constexpr size_t kRandomBytes = 16;

}  // namespace

std::string NewWorkerWord() { return absl::BytesToHexString(RandomBytes(kRandomBytes)); }

absl::Status CheckWorkerWord(const std::string& word, const pb::WorkerHello& hello) {
  if (ConstantTimeEquals(word, hello.word())) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "this process does not show that it is worker ", hello.worker_id(),
      ": HOROVOD_WORKER_WORD in its environment is ", hello.word().empty() ? "missing" : "wrong",
      "; what starts it must hand on all variables that begin with HOROVOD_"));
}

}  // namespace hvd::rendezvous::bootstrap
