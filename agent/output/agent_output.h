// The destination of an agent's messages and its workers' output: the launcher, or this process's
// stdout and stderr.
#ifndef AGENT_OUTPUT_AGENT_OUTPUT_H_
#define AGENT_OUTPUT_AGENT_OUTPUT_H_

#include <functional>
#include <utility>

#include "proto/agent.pb.h"

namespace hvd::agent::output {

// Never waits: output that is not taken at once is kept. Producers of much output check full()
// first. Belongs to the loop's thread.
class AgentOutput {
 public:
  virtual ~AgentOutput() = default;

  // Drops the frame if its destination is gone.
  virtual void Send(const pb::AgentFrame& frame) = 0;

  // Whether producers should pause.
  virtual bool full() const = 0;
  // Whether everything has been taken.
  virtual bool idle() const = 0;

  // Called from the loop each time when everything has been taken, or can't be taken any more.
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
