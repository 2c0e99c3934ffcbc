#include "agent/worker_log.h"

namespace hvd::agent {

void WorkerLog::Add(const pb::AgentMessage& message) {
  // The exit of a worker replaces its earlier messages: an exit alone is enough for the daemon.
  if (message.has_started()) alive_[message.started().worker_id()] = {message};
  if (message.has_dying()) alive_[message.dying().worker_id()].push_back(message);
  if (!message.has_exited()) return;
  alive_.erase(message.exited().worker_id());
  exits_.push_back(message);
  if (exits_.size() > kMaxExits) exits_.pop_front();
}

std::vector<pb::AgentMessage> WorkerLog::Messages() const {
  std::vector<pb::AgentMessage> messages;
  for (const auto& [id, said] : alive_) messages.insert(messages.end(), said.begin(), said.end());
  messages.insert(messages.end(), exits_.begin(), exits_.end());
  return messages;
}

}  // namespace hvd::agent
