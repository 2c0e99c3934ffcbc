// The worker of a job with --elastic-restart: runs an unchanged command as its child, in each world
// anew. It joins worlds like any other worker, but has no data plane.
#ifndef AGENT_RESTARTER_RESTARTER_H_
#define AGENT_RESTARTER_RESTARTER_H_

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/os/process.h"
#include "worker_runtime/session/rendezvous_session.h"

namespace hvd::agent::restarter {

// The command, resolved by the agent.
struct RankCommand {
  std::string file;
  std::vector<std::string> argv;
};

// Not thread-safe: belongs to the loop's thread, which must be the process's first thread, because
// the command dies with the thread that has started it. Calls to the daemon that may block for long
// run on a thread of this object.
//
//   asking ---> running ---> finishing ---> the end
//      ^           |             |
//      +-----------+-------------+   the world changes or breaks
//
// - The command fails: so does this worker, in the same way. If the world was broken before, by
//   another rank, it counts as a consequence, and the next world follows.
// - The command ends well: this worker waits until those of all ranks have, because a rank that
//   fails later makes all start again.
class Restarter {
 public:
  // How long a command has between SIGTERM and SIGKILL when its world has ended.
  static constexpr absl::Duration kGrace = absl::Seconds(10);
  // After a failure: for the replacement of the rank that has failed to be there, or all would be
  // started twice.
  static constexpr absl::Duration kSettle = absl::Seconds(1);

  Restarter(EventLoop& loop, worker_runtime::session::Session& session, std::string job,
            RankCommand command);

  // Runs until the worker ends; returns how. The process must then end in this way, without
  // destructors: a call to the daemon may still block its thread.
  os::ExitStatus Run();

  // A signal that ends the worker: it is passed on to the command.
  void OnSignal(int signal);

 private:
  using Answer = absl::StatusOr<worker_runtime::session::JoinAnswer>;

  void Ask();
  void OnAnswer(Answer answer);
  absl::Status Begin(worker_runtime::session::WorkerWorld world);
  void OnChange(Epoch epoch, worker_runtime::session::EpochEvent event, const std::string& reason);
  void EndCommand();
  void OnCommandExit();
  bool IsConsequence();
  void AwaitOthers();
  void OnAllDone(const absl::Status& done);
  void LeaveWorld();
  // Runs `call` on the thread, after the previous one has ended.
  void Call(std::function<void()> call);
  void Complain(const std::string& text) const;
  void End(os::ExitStatus status);

  EventLoop& loop_;
  worker_runtime::session::Session& session_;
  const std::string job_;
  const RankCommand command_;
  Fd store_port_;  // reserved, for the store of torch.distributed if this is rank 0
  std::optional<worker_runtime::session::WorkerWorld> world_;
  std::unique_ptr<worker_runtime::session::EpochWatch> watch_;
  std::optional<os::Process> process_;
  std::optional<EventLoop::TimerId> kill_timer_;
  std::thread thread_;
  bool has_worked_ = false;  // in the newest world
  bool is_leaving_ = false;  // the world: it changes or is broken
  bool is_broken_ = false;   // the world
  bool is_over_ = false;     // the job
  bool is_ending_ = false;   // this process: a signal said so
  os::ExitStatus end_;
};

// The program: runs a command as a worker of the agent that has started it. `argv` has the file
// and the command's own argv. Does not return.
[[noreturn]] void RunRestarterProgram(const std::vector<std::string>& argv);

}  // namespace hvd::agent::restarter

#endif  // AGENT_RESTARTER_RESTARTER_H_
