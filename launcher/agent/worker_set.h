// The workers of this host.
#ifndef LAUNCHER_AGENT_WORKER_SET_H_
#define LAUNCHER_AGENT_WORKER_SET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "base/event_loop.h"
#include "launcher/agent/frame_writer.h"
#include "launcher/agent/worker.h"
#include "proto/agent.pb.h"

namespace hvd {

// Starts and stops workers, reports on them to the daemon and sends their output to the launcher,
// no faster than it is taken. Belongs to the loop's thread. REQUIRES: this process is a subreaper,
// and has no other children.
class WorkerSet {
 public:
  // Takes WorkerStarted and WorkerExited messages.
  using Report = std::function<void(pb::AgentMessage)>;

  WorkerSet(EventLoop& loop, FrameWriter& writer, LaunchPlan plan, WorkerPlace place,
            Report report);

  // Reports that it was started, or why it could not be.
  void Start(const pb::StartWorker& start);
  void Stop(const std::vector<uint64_t>& ids, absl::Duration grace);
  void StopAll(absl::Duration grace);

  // Tells its workers to go on writing: the launcher has taken what there was.
  void ResumeOutput();

  // Reaps what has come to this process because its parent ended, and kills what has outlived its
  // worker.
  void ReapOrphans();

  bool Has(uint64_t id) const { return workers_.count(id) > 0; }
  bool empty() const { return workers_.empty(); }
  // Called each time when the last worker is gone.
  void set_on_empty(std::function<void()> on_empty) { on_empty_ = std::move(on_empty); }

 private:
  void OnOutput(pb::WorkerOutput output);
  void OnExited(pb::WorkerExited exited);
  bool OutlivedItsWorker(pid_t pid) const;

  EventLoop& loop_;
  FrameWriter& writer_;
  const LaunchPlan plan_;
  const WorkerPlace place_;
  const Report report_;
  std::map<uint64_t, std::unique_ptr<Worker>> workers_;
  bool paused_ = false;
  std::function<void()> on_empty_;
};

}  // namespace hvd

#endif  // LAUNCHER_AGENT_WORKER_SET_H_
