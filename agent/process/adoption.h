// The adoption of a process that runs already, and has started the agent, as the one worker of that
// agent.
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

// Takes hold of process `pid`, which may be adopted.
// Errors: one line for the user.
//   - FailedPrecondition: it does not run, is another user's, or has not started this process; or
//     this process's stdin and stdout are no pipes to it.
absl::StatusOr<os::OtherProcess> FindAdoptee(pid_t pid);

// Belongs to the loop's thread. Lines of JSON go both ways (adoption_lines.h):
//
//   kWaiting --Start: {"start": ...}--> kWorking --{"exit": CODE}, the end--> kOver
//       +---- {"exit": CODE}, the process's end, or the end of its lines ------^
//
// The process lives on after its {"exit"}. Signals go to it alone: its process group is not ours.
class Adoption {
 public:
  // The time for the process to say {"exit"} after a {"stop"}, whatever happens; then it is killed.
  static constexpr absl::Duration kLeastGrace = absl::Seconds(5);
  // From the end of its lines, a sign of its end, until the process counts as one that will say
  // nothing more.
  static constexpr absl::Duration kLingerTime = absl::Seconds(1);

  // `in`: where its lines come from; `out`: where it reads. Both are borrowed and become
  // non-blocking.
  Adoption(EventLoop& loop, os::OtherProcess process, int in, int out,
           absl::Duration least_grace = kLeastGrace);
  ~Adoption();
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;

  // Watches the process. `on_withdrawn`: it is over before it was a worker.
  // Errors: those of EventLoop::Watch.
  absl::Status Watch(std::function<void()> on_withdrawn);

  // Makes it the worker, whose environment `own` becomes `wanted`. The result refers to this
  // object. Its destructor tells a process that works still to stop, waits until it has said that
  // it has, or has ended, and else kills it after the least grace.
  // Errors:
  //   - FailedPrecondition: it was the worker before, or has ended.
  absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(
      const std::map<std::string, std::string>& own,
      const std::map<std::string, std::string>& wanted, WorkerProcess::Callbacks callbacks);

  // Tells it why the agent can't do its part.
  void SendError(const std::string& error);
  // The same if it has not been the worker yet, of a job that is over.
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
  std::optional<int> exit_code_;  // that it has said
  bool lines_ended_ = false;
  bool killed_ = false;  // by this
  Phase phase_ = Phase::kWaiting;
  std::optional<EventLoop::TimerId> linger_timer_;
};

}  // namespace hvd::agent::process

#endif  // AGENT_PROCESS_ADOPTION_H_
