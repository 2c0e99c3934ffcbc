// The handle types of the C API, and conversions shared by its functions.
#ifndef RENDEZVOUS_C_API_HANDLES_H_
#define RENDEZVOUS_C_API_HANDLES_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "horovod/rendezvous.h"
#include "rendezvous/server/server.h"

struct hvd_rendezvous_server {
  std::unique_ptr<hvd::rendezvous::server::RendezvousServer> server;
  std::atomic<int> jobs{0};
};

struct hvd_rendezvous_job {
  hvd_rendezvous_server* home;
  std::unique_ptr<hvd::rendezvous::server::ServedJob> job;
};

namespace hvd::rendezvous::c_api {

inline std::string OrEmpty(const char* text) { return text == nullptr ? "" : text; }

// Converts a verdict. The result's texts point into `verdict`.
inline hvd_rendezvous_result ToResult(const membership::Verdict& verdict) {
  hvd_rendezvous_result result = {};
  result.size = sizeof(result);
  result.success = verdict.success ? 1 : 0;
  result.exit_code = verdict.exit_code;
  result.summary = verdict.summary.c_str();
  result.rank = verdict.rank;
  result.host = verdict.host.c_str();
  result.exit_meaning = verdict.exit_meaning.c_str();
  result.exception = verdict.exception.c_str();
  return result;
}

}  // namespace hvd::rendezvous::c_api

#endif  // RENDEZVOUS_C_API_HANDLES_H_
