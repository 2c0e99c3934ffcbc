#include "worker_runtime/session/stall_reporter.h"

#include <utility>

#include "base/signal_free_thread.h"

namespace hvd::worker_runtime::session {
namespace {

// If the daemon has not accepted a report within this time, this process reports it to the user.
constexpr absl::Duration kPatience = absl::Seconds(10);

}  // namespace

StallReporter::StallReporter(std::unique_ptr<rendezvous::client::RendezvousClient> client,
                             Untold untold)
    : client_(std::move(client)), untold_(std::move(untold)) {}

StallReporter::~StallReporter() {
  client_->CancelAll();
  // Joined without the lock, which the thread takes before it ends.
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

void StallReporter::Post(Report report) {
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  reports_.push_back(std::move(report));
  if (!thread_.joinable()) thread_ = StartSignalFreeThread([this] { Run(); });
}

void StallReporter::Run() {
  while (true) {
    Report report;
    {
      absl::MutexLock lock(&mutex_);
      const auto something = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return ended_ || !reports_.empty();
      };
      mutex_.Await(absl::Condition(&something));
      if (ended_) return;
      report = std::move(reports_.front());
      reports_.pop_front();
    }
    const absl::Status told = client_->ReportStall(report.request, kPatience).status();
    // Cancelled: the world is being left, and nobody waits for the stalled operations any more.
    if (!told.ok() && !absl::IsCancelled(told)) untold_(report);
  }
}

}  // namespace hvd::worker_runtime::session
