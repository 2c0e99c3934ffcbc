// The log of an agent's worker events, which is replayed to the daemon after a reconnection. Pure.
#ifndef AGENT_WORKER_LOG_H_
#define AGENT_WORKER_LOG_H_

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "proto/agent.pb.h"

namespace hvd::agent {

// Not thread-safe.
class WorkerLog {
 public:
  // The number of exits that are kept; older ones are dropped.
  static constexpr size_t kMaxExits = 1000;

  // Records the daemon's request for a worker; false if it was recorded before.
  bool AddKnown(uint64_t id) { return known_.insert(id).second; }
  // Records a WorkerStarted, WorkerDying or WorkerExited.
  void Add(const pb::AgentMessage& message);

  // Every worker that the daemon has ever asked for.
  std::vector<uint64_t> Known() const { return {known_.begin(), known_.end()}; }
  // The starts (and deaths) of the workers that have not ended, then the exits, oldest first.
  std::vector<pb::AgentMessage> Messages() const;

 private:
  std::set<uint64_t> known_;
  std::map<uint64_t, std::vector<pb::AgentMessage>> alive_;
  std::deque<pb::AgentMessage> exits_;
};

}  // namespace hvd::agent

#endif  // AGENT_WORKER_LOG_H_
