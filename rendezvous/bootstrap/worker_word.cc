#include "rendezvous/bootstrap/worker_word.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/crypto.h"

namespace hvd::rendezvous::bootstrap {
namespace {

constexpr size_t kRandomBytes = 16;
constexpr int kSocketNames = 8;

// The text keeps each use of the key apart from any other. Half of the bits are as many as a random
// word has.
std::string Derive(absl::string_view key, const std::string& use) {
  const std::string mac = HmacSha256(key, use);
  return absl::BytesToHexString(absl::string_view(mac).substr(0, kRandomBytes));
}

}  // namespace

std::string NewWorkerWord() { return absl::BytesToHexString(RandomBytes(kRandomBytes)); }

std::string WorkerWordOf(absl::string_view key, uint64_t worker) {
  return Derive(key, absl::StrCat("the word of worker ", worker));
}

std::vector<std::string> WorkerSocketNamesOf(absl::string_view key) {
  std::vector<std::string> names;
  for (int i = 0; i < kSocketNames; ++i) {
    names.push_back(absl::StrCat("horovod-job-", Derive(key, absl::StrCat("socket name ", i))));
  }
  return names;
}

absl::Status CheckWorkerWord(const std::string& word, const pb::WorkerHello& hello) {
  if (ConstantTimeEquals(word, hello.word())) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "this process does not show that it is worker ", hello.worker_id(),
      ": HOROVOD_WORKER_WORD in its environment is ", hello.word().empty() ? "missing" : "wrong",
      "; what starts it must hand on all variables that begin with HOROVOD_"));
}

}  // namespace hvd::rendezvous::bootstrap
