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

// Prints a line for each event, a line now and then while the job waits, and a summary at the end.
// Belongs to the loop's thread; the arguments must outlive it.
class StderrReporter {
 public:
  using Say = std::function<void(const std::string& line)>;

  // `progress`: the tally of a job that another daemon has led before.
  StderrReporter(EventLoop& loop, Clock& clock, reporting::JobSummary progress, Say say)
      : loop_(loop), clock_(clock), say_(std::move(say)), progress_(std::move(progress)) {}
  ~StderrReporter() { Stop(); }
  StderrReporter(const StderrReporter&) = delete;
  StderrReporter& operator=(const StderrReporter&) = delete;

  // From now on checks what the job waits for, until Stop.
  void Watch(server::Server& server);
  void Stop();

  void Report(const membership::Notice& notice, absl::Time when);
  // Prints a summary of the job in one line, if anything happened.
  void SumUp();

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
