// The adoption of a running process as the only worker of the agent that it has started.
#ifndef AGENT_PROCESS_ADOPTION_H_
#define AGENT_PROCESS_ADOPTION_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/output/line_splitter.h"
#include "agent/process/worker_process.h"
#include "base/event_loop.h"
#include "base/os/other_process.h"

namespace hvd::agent::process {

// Opens process `pid` if it may be adopted.
// Errors: one line for the user.
//   - FailedPrecondition: it does not run, is another user's, or has not started this process; or
//     stdin and stdout of this process are not pipes to it.
absl::StatusOr<os::OtherProcess> FindAdoptee(pid_t pid);

// One adopted process, as a state machine. Not thread-safe: belongs to the loop's thread. The agent
// and the process exchange lines of JSON (adoption_lines.h):
//
//   kWaiting --Start: {"start": ...}--> kWorking --{"exit": CODE}, the end--> kOver
//       +---- {"exit": CODE}, the process's end, or the end of its lines ------^
//
// The process may continue after its {"exit"}. Signals are sent to the process alone, since its
// process group also contains processes that the agent did not start.
class Adoption {
 public:
  // The minimum time between a {"stop"} and the kill of a process that has not sent {"exit"}.
  static constexpr absl::Duration kLeastGrace = absl::Seconds(5);
  // The time between the end of the process's lines, which usually means that it exits, and the
  // conclusion that it will not send {"exit"}.
  static constexpr absl::Duration kLingerTime = absl::Seconds(1);

  // `in` carries lines from the process, `out` carries lines to it. Both are borrowed and made
  // non-blocking.
  Adoption(EventLoop& loop, os::OtherProcess process, int in, int out,
           absl::Duration least_grace = kLeastGrace);
  ~Adoption();
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;

  // Starts to watch the process. Calls `on_withdrawn` if the process ends or withdraws before it
  // has become a worker.
  // Errors: those of EventLoop::Watch.
  absl::Status Watch(std::function<void()> on_withdrawn);

  // Makes the process the worker; it has to change its environment from `own` to `wanted`. The
  // result refers to this object. The result's destructor asks a process that is still the worker
  // to stop, waits for its {"exit"} or its end, and kills it after the least grace.
  // Errors:
  //   - FailedPrecondition: the process was the worker before, or has ended.
  absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(
      const std::map<std::string, std::string>& own,
      const std::map<std::string, std::string>& wanted, WorkerProcess::Callbacks callbacks);

  // Sends the process the reason why the agent gives up.
  void SendError(const std::string& error);
  // Sends a process that has not become the worker the result of the job, which is over.
  void SendJobEnd(const std::string& summary);

 private:
  class Adopted;
  enum class Phase { kWaiting, kWorking, kOver };

  void Send(const std::string& line) const;
  // Returns whether something was read.
  bool ReadOnce();
  void OnReadable();
  void OnProcessEnd();
  ProcessEnd End() const;
  void Over(ProcessEnd end);
  void Forget();
  void StopAndWait();

  EventLoop& loop_;
  const os::OtherProcess process_;
  const int in_, out_;
  const absl::Duration least_grace_;
  std::function<void()> on_withdrawn_;
  WorkerProcess::Callbacks callbacks_;
  output::LineSplitter splitter_;
  std::optional<int> exit_code_;  // from {"exit"}
  bool lines_ended_ = false;
  bool killed_ = false;  // by this object
  Phase phase_ = Phase::kWaiting;
  std::optional<EventLoop::TimerId> linger_timer_;
};

}  // namespace hvd::agent::process

#endif  // AGENT_PROCESS_ADOPTION_H_
