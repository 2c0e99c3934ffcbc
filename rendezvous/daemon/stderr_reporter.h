// The reporter of a job's events on the daemon's stderr.
#ifndef RENDEZVOUS_DAEMON_STDERR_REPORTER_H_
#define RENDEZVOUS_DAEMON_STDERR_REPORTER_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/event_loop.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/reporting/job_summary.h"
#include "rendezvous/reporting/wait_reporter.h"
#include "rendezvous/server/server.h"

namespace hvd::rendezvous::daemon {

// Prints a line for each event, periodic lines while the job waits, and a summary at the end. Used
// by the loop's thread only; the constructor's arguments must outlive it.
class StderrReporter {
 public:
  using Say = std::function<void(const std::string& line)>;

  // `progress` is the tally from an earlier daemon of this job.
  StderrReporter(EventLoop& loop, Clock& clock, reporting::JobSummary progress, Say say)
      : loop_(loop), clock_(clock), say_(std::move(say)), progress_(std::move(progress)) {}
  ~StderrReporter() { Stop(); }
  StderrReporter(const StderrReporter&) = delete;
  StderrReporter& operator=(const StderrReporter&) = delete;

  // Starts periodic checks of what the job waits for; Stop ends them.
  void Watch(server::Server& server);
  void Stop();

  void Report(const membership::Notice& notice, absl::Time when);
  // Prints a one-line summary of the job, if there was a world. `view` is of its end.
  void SumUp(const membership::Membership::View& view, bool success);

 private:
  void Look();
  void Plan();

  EventLoop& loop_;
  Clock& clock_;
  const Say say_;
  reporting::JobSummary progress_;
  reporting::WaitReporter waiting_;
  server::Server* server_ = nullptr;
  std::optional<EventLoop::TimerId> timer_;
};

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_STDERR_REPORTER_H_
