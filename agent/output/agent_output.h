// Where an agent's words and its workers' output go: to the launcher, or to this process's own
// stdout and stderr.
#ifndef AGENT_OUTPUT_AGENT_OUTPUT_H_
#define AGENT_OUTPUT_AGENT_OUTPUT_H_

#include <functional>
#include <utility>

#include "proto/agent.pb.h"

namespace hvd::agent::output {

// Never waits: what is not taken at once is kept, and whoever produces much asks full() first.
// Belongs to the loop's thread.
class AgentOutput {
 public:
  virtual ~AgentOutput() = default;

  // Dropped if nobody takes it any more.
  virtual void Send(const pb::AgentFrame& frame) = 0;

  // No more should be produced.
  virtual bool full() const = 0;
  // Everything has been taken.
  virtual bool idle() const = 0;

  // Called from the loop each time when everything has been taken, or can't be any more.
  void set_on_idle(std::function<void()> on_idle) { on_idle_ = std::move(on_idle); }

 protected:
  void SayIdle() const {
    if (on_idle_) on_idle_();
  }

 private:
  std::function<void()> on_idle_;
};

}  // namespace hvd::agent::output

#endif  // AGENT_OUTPUT_AGENT_OUTPUT_H_
