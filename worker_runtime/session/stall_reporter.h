// The reporter of stalled operations to the daemon.
#ifndef WORKER_RUNTIME_SESSION_STALL_REPORTER_H_
#define WORKER_RUNTIME_SESSION_STALL_REPORTER_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rendezvous/client/rendezvous_client.h"

namespace hvd::worker_runtime::session {

// Calls the daemon on a separate thread, which the first report starts. The destructor cancels its
// call and joins it. Thread-safe.
class StallReporter {
 public:
  struct Report {
    pb::ReportStallRequest request;
    std::string text;  // the report as a text for users, should the daemon not accept it
  };
  // Called on the reporter's thread with a report that the daemon did not accept. Must not destroy
  // the reporter.
  using Untold = std::function<void(const Report&)>;

  StallReporter(std::unique_ptr<rendezvous::client::RendezvousClient> client, Untold untold);
  ~StallReporter();

  // Queues a report. Does not block.
  void Post(Report report);

 private:
  void Run();

  const std::unique_ptr<rendezvous::client::RendezvousClient> client_;
  const Untold untold_;
  absl::Mutex mutex_;
  std::deque<Report> reports_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::session

#endif  // WORKER_RUNTIME_SESSION_STALL_REPORTER_H_
