#include "worker_runtime/api/guarded.h"

#include <string>

#include "base/mutex_checks.h"
#include "rendezvous/security/protobuf_log.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::worker_runtime::api {
namespace {

// By thread, like errno: the text of one thread's call must not replace that of another's before it
// is read.
thread_local std::string last_error;

}  // namespace

Runtime& TheRuntime() {
  static Runtime* const runtime = [] {
    SwitchOffMutexChecks();
    rendezvous::security::SilenceProtobuf();
    return new Runtime;
  }();
  return *runtime;
}

int32_t ToCode(const absl::Status& status) {
  if (status.ok()) return HVD_OK;
  last_error = std::string(status.message());
  if (IsReleased(status)) return HVD_RELEASED;
  return static_cast<int32_t>(status.code());
}

const char* LastError() { return last_error.c_str(); }

}  // namespace hvd::worker_runtime::api
