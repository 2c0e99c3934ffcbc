#include "rendezvous/c_api/guarded.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hvd::rendezvous::c_api {
namespace {

// Each thread has its own, so that the message belongs to the code that this thread has got.
thread_local std::string last_error;
thread_local int callbacks = 0;

}  // namespace

int32_t ToCode(const absl::Status& status) {
  if (status.ok()) return 0;
  // Kept until the thread's next error: a success in between, as that of a clean-up call, must not
  // take the reason away.
  last_error = absl::StrReplaceAll(status.message(), {{"\n", " "}});
  return static_cast<int32_t>(status.code());
}

const char* LastError() { return last_error.c_str(); }

InCallback::InCallback() { ++callbacks; }
InCallback::~InCallback() { --callbacks; }

absl::Status CheckNotInCallback(const char* what) {
  if (callbacks == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " in a callback would wait for itself; let another thread do it"));
}

}  // namespace hvd::rendezvous::c_api
