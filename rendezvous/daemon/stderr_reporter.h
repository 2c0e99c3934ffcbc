// Tells on the daemon's stderr what happens to its job.
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

// A line for each thing that happens, one now and then for what is waited for, and a summary at the
// end. Belongs to the loop's thread; what it is given must outlive it.
class StderrReporter {
 public:
  using Say = std::function<void(const std::string& line)>;

  // `progress`: of a job that another daemon has led before, what it knew.
  StderrReporter(EventLoop& loop, Clock& clock, reporting::JobSummary progress, Say say)
      : loop_(loop), clock_(clock), say_(std::move(say)), progress_(std::move(progress)) {}
  ~StderrReporter() { Stop(); }
  StderrReporter(const StderrReporter&) = delete;
  StderrReporter& operator=(const StderrReporter&) = delete;

  // From now on looks what the job waits for, until Stop.
  void Watch(server::Server& server);
  void Stop();

  void Tell(const membership::Notice& notice, absl::Time when);
  // Says in one line how it went, if there was anything.
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
