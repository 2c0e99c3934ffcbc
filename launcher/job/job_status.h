// The updater of a job's status line.
#ifndef LAUNCHER_JOB_JOB_STATUS_H_
#define LAUNCHER_JOB_JOB_STATUS_H_

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/console/output_sink.h"
#include "rendezvous/server/server.h"

namespace hvd::launcher::job {

// Reads the job's state from the daemon and shows it: soon after each event, and at intervals while
// the state can change without an event. Does nothing if the sink has no status line. Not
// thread-safe. All referenced objects must outlive it.
class JobStatus {
 public:
  static constexpr absl::Duration kLeastPause = absl::Milliseconds(250);
  static constexpr absl::Duration kUnsettledPause = absl::Seconds(1);

  JobStatus(console::OutputSink& output, rendezvous::server::Server& server, Clock& clock);
  // Removes the line.
  ~JobStatus();
  JobStatus(const JobStatus&) = delete;
  JobStatus& operator=(const JobStatus&) = delete;

  void WakeUp();

  // The time at which Update has to be called next.
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
