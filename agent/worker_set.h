// The set of this host's workers.
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

// Starts and stops workers, reports their events to the daemon, and forwards their output at the
// pace of its reader. Not thread-safe: belongs to the loop's thread.
// REQUIRES: this process is a subreaper and has no other children.
class WorkerSet {
 public:
  // Takes WorkerStarted, WorkerDying, WorkerExited and WorkerSampled messages.
  using Report = std::function<void(pb::AgentMessage)>;

  // `adoption`: the adopted process, which is then the only worker; borrowed. nullptr: workers are
  // children.
  // `check_interval`: between two checks of workers (Worker::CheckStopped and CheckReplaced).
  WorkerSet(EventLoop& loop, output::AgentOutput& output, LaunchPlan plan, WorkerPlace place,
            absl::Duration check_interval, process::Adoption* adoption, Report report);
  ~WorkerSet();

  // Makes the workers that are started after this call those of an elastic job, in which one that a
  // signal has stopped is killed.
  void MakeElastic() { place_.elastic = true; }

  // Sets the job of the workers that are started after this call.
  void set_job_id(const std::string& job_id) { place_.job_id = job_id; }

  // Sets the host's address, and the interface that has it, for the workers that are started after
  // this call.
  void set_own_address(const std::string& address, const std::string& interface) {
    place_.own_address = address;
    place_.interface = interface;
  }

  // Starts a worker and reports the start or the reason of its failure. Does nothing if this worker
  // was requested before.
  void Start(const pb::StartWorker& start);
  void Stop(const std::vector<uint64_t>& ids, absl::Duration grace);
  void StopAll(absl::Duration grace);

  // Checks that process `asker` may receive the resources of the worker that `hello` names. 0: the
  // process is in another PID namespace.
  // Errors:
  //   - PermissionDenied: there is no such worker, or `asker` does not belong to it; gives the
  //     reason.
  absl::Status Admit(const pb::WorkerHello& hello, pid_t asker) const;

  // As Worker::Follow, WatchProcess and OfferStackPipe. REQUIRES: Has(id).
  bool Follow(uint64_t id, pid_t asker) { return workers_.at(id)->Follow(asker); }
  absl::StatusOr<int> WatchProcess(uint64_t id) { return workers_.at(id)->WatchProcess(); }
  absl::StatusOr<int> OfferStackPipe(uint64_t id) { return workers_.at(id)->OfferStackPipe(); }
  absl::StatusOr<int> OfferFaultPage(uint64_t id) { return workers_.at(id)->OfferFaultPage(); }

  // The worker, or nullptr: it has ended. Borrowed until the loop goes on.
  Worker* Find(uint64_t id) {
    const auto found = workers_.find(id);
    return found == workers_.end() ? nullptr : found->second.get();
  }

  // As Worker::SetOutputRank. REQUIRES: Has(id).
  void SetOutputRank(uint64_t id, uint32_t rank) { workers_.at(id)->SetOutputRank(rank); }

  // Sends the signal to the workers that have a handler for it. An adopted process gets none: it is
  // not this agent's, and its starter signals it.
  void Signal(int signal);

  // Samples the worker's stack and reports it. Does nothing if the worker has ended.
  void Sample(uint64_t id);

  // The commit arena of worker `id`'s slot, a memfd: it holds the commits of the slot's earlier
  // workers and takes those of `id`. Borrowed. The memory is freed when this object and all workers
  // are gone. REQUIRES: Has(id).
  // Errors:
  //   - codes of errno: no memory or descriptor available.
  absl::StatusOr<int> CommitArena(uint64_t id);

  // Resumes the reading of the workers' output, after earlier output has been written.
  void ResumeOutput();

  // Reaps orphans, which have become this process's children, and kills those whose worker has
  // ended.
  void ReapOrphans();

  bool Has(uint64_t id) const { return workers_.count(id) > 0; }
  bool empty() const { return workers_.empty(); }
  // The log of the set's reports on workers.
  const WorkerLog& log() const { return log_; }
  // Sets the callback for each time the last worker has ended.
  void set_on_empty(std::function<void()> on_empty) { on_empty_ = std::move(on_empty); }

 private:
  void OnOutput(pb::WorkerOutput output);
  void OnDying(uint64_t id);
  void OnLost(uint64_t id);
  void OnExited(pb::WorkerExited exited);
  void Send(pb::AgentMessage message);
  void CheckLater();
  void Check();
  bool OutlivedItsWorker(pid_t pid) const;

  EventLoop& loop_;
  output::AgentOutput& output_;
  const LaunchPlan plan_;
  WorkerPlace place_;
  const absl::Duration check_interval_;
  process::Adoption* const adoption_;
  const Report report_;
  std::map<uint64_t, std::unique_ptr<Worker>> workers_;
  std::map<uint32_t, Fd> arenas_;  // by slot
  WorkerLog log_;
  bool paused_ = false;
  std::optional<EventLoop::TimerId> check_timer_;  // only while a worker is to be checked
  std::function<void()> on_empty_;
};

}  // namespace hvd::agent

#endif  // AGENT_WORKER_SET_H_
