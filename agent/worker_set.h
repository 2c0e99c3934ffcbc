// The workers of this host.
#ifndef AGENT_WORKER_SET_H_
#define AGENT_WORKER_SET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/output/agent_output.h"
#include "agent/worker.h"
#include "agent/worker_log.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "proto/agent.pb.h"

namespace hvd::agent {

// Starts and stops workers, reports on them to the daemon, and forwards their output no faster than
// it is taken. Belongs to the loop's thread. REQUIRES: this process is a subreaper, and has no
// other children.
class WorkerSet {
 public:
  // Takes WorkerStarted, WorkerDying, WorkerExited and WorkerSampled messages.
  using Report = std::function<void(pb::AgentMessage)>;

  // `adoption`: the process that is the only worker; borrowed. nullptr: workers are children.
  WorkerSet(EventLoop& loop, output::AgentOutput& output, LaunchPlan plan, WorkerPlace place,
            process::Adoption* adoption, Report report);
  ~WorkerSet();

  // Workers that are started from now on run as those of an elastic job. A worker that a signal has
  // stopped is killed after Worker::kStoppedChecks times `check_interval`.
  void MakeElastic(absl::Duration check_interval);

  // The job of the workers that are started from now on.
  void set_job_id(const std::string& job_id) { place_.job_id = job_id; }

  // Starts a worker and reports that, or why it could not be started. Does nothing if the worker
  // was asked for before.
  void Start(const pb::StartWorker& start);
  void Stop(const std::vector<uint64_t>& ids, absl::Duration grace);
  void StopAll(absl::Duration grace);

  // Whether `asker` (0: it can't be seen from here) may receive its worker's resources.
  // Errors:
  //   - PermissionDenied: there is no such worker, or `asker` does not belong to it; says why.
  absl::Status Admit(const pb::WorkerHello& hello, pid_t asker) const;

  // As Worker::Follow, WatchProcess and OfferStackPipe. REQUIRES: Has(id).
  bool Follow(uint64_t id, pid_t asker) { return workers_.at(id)->Follow(asker); }
  absl::StatusOr<int> WatchProcess(uint64_t id) { return workers_.at(id)->WatchProcess(); }
  absl::StatusOr<int> OfferStackPipe(uint64_t id) { return workers_.at(id)->OfferStackPipe(); }

  // Samples what the worker is doing, and reports it. Does nothing if it has ended.
  void Sample(uint64_t id);

  // The memory with the commits of the predecessors of worker `id` in its slot, and for its own
  // commits; borrowed. It is freed when this object and all workers are gone. REQUIRES: Has(id).
  // Errors:
  //   - codes of errno: no memory or descriptor available.
  absl::StatusOr<int> CommitArena(uint64_t id);

  // Lets the workers write again: their earlier output has been taken.
  void ResumeOutput();

  // Reaps orphans that became this process's children, and kills those that have outlived their
  // worker.
  void ReapOrphans();

  bool Has(uint64_t id) const { return workers_.count(id) > 0; }
  bool empty() const { return workers_.empty(); }
  // The log of the set's reports on workers.
  const WorkerLog& log() const { return log_; }
  // Called each time when the last worker is gone.
  void set_on_empty(std::function<void()> on_empty) { on_empty_ = std::move(on_empty); }

 private:
  void OnOutput(pb::WorkerOutput output);
  void OnDying(uint64_t id);
  void OnExited(pb::WorkerExited exited);
  void Send(pb::AgentMessage message);
  void CheckStopped();
  bool OutlivedItsWorker(pid_t pid) const;

  EventLoop& loop_;
  output::AgentOutput& output_;
  const LaunchPlan plan_;
  WorkerPlace place_;
  process::Adoption* const adoption_;
  const Report report_;
  std::map<uint64_t, std::unique_ptr<Worker>> workers_;
  std::map<uint32_t, Fd> arenas_;  // by slot
  WorkerLog log_;
  bool paused_ = false;
  absl::Duration check_interval_;                  // zero: never
  std::optional<EventLoop::TimerId> check_timer_;  // only while workers run
  std::function<void()> on_empty_;
};

}  // namespace hvd::agent

#endif  // AGENT_WORKER_SET_H_
