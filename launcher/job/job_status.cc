#include "launcher/job/job_status.h"

#include <algorithm>

#include "launcher/report/status_line.h"

namespace hvd::launcher::job {

JobStatus::JobStatus(console::OutputSink& output, rendezvous::server::Server& server, Clock& clock)
    : output_(output), server_(server), clock_(clock) {
  WakeUp();
}

JobStatus::~JobStatus() { output_.SetStatus(""); }

void JobStatus::WakeUp() {
  if (!output_.has_status_line()) return;
  // At most one update per kLeastPause, however many events there are.
  due_ = std::min(due_, std::max(clock_.Now(), updated_ + kLeastPause));
}

void JobStatus::Update() {
  const report::StatusLine line = report::MakeStatusLine(server_.Describe(), clock_.Now());
  output_.SetStatus(line.text);
  updated_ = clock_.Now();
  due_ = line.settled ? absl::InfiniteFuture() : updated_ + kUnsettledPause;
}

}  // namespace hvd::launcher::job
