// Keeps the status line of a job up to date.
#ifndef LAUNCHER_JOB_JOB_STATUS_H_
#define LAUNCHER_JOB_JOB_STATUS_H_

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/console/output_sink.h"
#include "rendezvous/server/server.h"

namespace hvd::launcher::job {

// Asks the daemon what the job does: soon after something has happened, and every now and then
// while things change that nobody tells of. Does nothing if the sink has no status line. For one
// thread. All that it is given must outlive it.
class JobStatus {
 public:
  static constexpr absl::Duration kLeastPause = absl::Milliseconds(250);
  static constexpr absl::Duration kUnsettledPause = absl::Seconds(1);

  JobStatus(console::OutputSink& output, rendezvous::server::Server& server, Clock& clock);
  // Takes the line away.
  ~JobStatus();
  JobStatus(const JobStatus&) = delete;
  JobStatus& operator=(const JobStatus&) = delete;

  void WakeUp();

  // When Update is to be called next.
  absl::Time NextDue() const { return due_; }
  void Update();

 private:
  console::OutputSink& output_;
  rendezvous::server::Server& server_;
  Clock& clock_;
  absl::Time updated_ = absl::InfinitePast();
  absl::Time due_ = absl::InfiniteFuture();
};

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_JOB_STATUS_H_
