// The worker of a job with --elastic-restart: runs an unchanged command as its child, in each world
// anew. It joins worlds like any other worker, but has no data plane.
#ifndef AGENT_RESTARTER_RESTARTER_H_
#define AGENT_RESTARTER_RESTARTER_H_

#include <functional>
#include <memory>
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
//   kAsking ---> kRunning ------------------> kAwaiting ---> kEnded
//      ^             |                            |
//      +-- kChanging, kBroken <-------------------+   the world changes or breaks
//
// - The command fails: so does this worker, in the same way. If the world was broken before, by
//   another rank, it counts as a consequence, and the next world follows.
// - The command ends well: this worker waits until those of all ranks have, because a rank that
//   fails later makes all start again.
// - The job is over (kOver) or a signal has come (kSignalled): the end, once the command has ended.
class Restarter {
 public:
  // How long a command has between SIGTERM and SIGKILL when its world has ended.
  static constexpr absl::Duration kGrace = absl::Seconds(10);
  // After a failure: for the replacement of the rank that has failed to be there, or all would be
  // started twice.
  static constexpr absl::Duration kSettle = absl::Seconds(1);

  // Tells the agent the rank of the output from now on. Blocks; called on the thread, while no
  // command runs.
  using TellRank = std::function<absl::Status(int rank)>;

  Restarter(EventLoop& loop, worker_runtime::session::Session& session, std::string job,
            RankCommand command, TellRank tell_rank);

  // Runs until the worker ends; returns how. The process must then end in this way, without
  // destructors: a call to the daemon may still block its thread.
  os::ExitStatus Run();

  // A signal that ends the worker: it is passed on to the command.
  void OnSignal(int signal);

 private:
  using Answer = absl::StatusOr<worker_runtime::session::JoinAnswer>;

  enum class State {
    kAsking,     // for the next world, or is about to
    kRunning,    // the command, in a world that is whole as far as this worker knows
    kChanging,   // the command was told to end: another world is wanted
    kBroken,     // the command was told to end: its world is broken
    kAwaiting,   // the command has ended well; not yet those of all ranks
    kOver,       // the command was told to end: the job is over
    kSignalled,  // the command was told to end, by the signal that ends this worker
    kEnded,
  };

  // `worked`: in an earlier world.
  void Ask(bool worked);
  Answer JoinNextWorld(const pb::JoinWorldRequest& request);
  void OnAnswer(Answer answer);
  absl::Status Begin(worker_runtime::session::WorkerWorld world);
  void OnChange(Epoch epoch, worker_runtime::session::EpochEvent event, const std::string& reason);
  void EndCommand();
  void OnCommandExit();
  void OnCommandEnd(const os::ExitStatus& status);
  bool IsConsequence();
  void AwaitOthers();
  void OnAllDone(const absl::Status& done);
  // Asks for the next world, after `pause`.
  void LeaveWorld(absl::Duration pause);
  // Runs `call` on the thread, after the previous one has ended.
  void Call(std::function<void()> call);
  void Complain(const std::string& text) const;
  void End(os::ExitStatus status);

  EventLoop& loop_;
  worker_runtime::session::Session& session_;
  const std::string job_;
  const RankCommand command_;
  const TellRank tell_rank_;
  State state_ = State::kAsking;
  Fd store_port_;  // reserved, for the store of torch.distributed if this is rank 0
  std::optional<worker_runtime::session::WorkerWorld> world_;
  std::unique_ptr<worker_runtime::session::EpochWatch> watch_;
  std::optional<os::Process> process_;
  std::optional<EventLoop::TimerId> kill_timer_;
  std::thread thread_;
  os::ExitStatus end_;  // kEnded
};

// The program: runs a command as a worker of the agent that has started it. `argv` has the file
// and the command's own argv. Does not return.
[[noreturn]] void RunRestarterProgram(const std::vector<std::string>& argv);

}  // namespace hvd::agent::restarter

#endif  // AGENT_RESTARTER_RESTARTER_H_
