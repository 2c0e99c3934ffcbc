// The output interface of an agent, for its messages and its workers' output: to the launcher, or
// to this process's stdout and stderr.
#ifndef AGENT_OUTPUT_AGENT_OUTPUT_H_
#define AGENT_OUTPUT_AGENT_OUTPUT_H_

#include <functional>
#include <utility>

#include "proto/agent.pb.h"

namespace hvd::agent::output {

// Never blocks: output that can't be written at once is buffered. Producers of much output check
// full() first. Not thread-safe: belongs to the loop's thread.
class AgentOutput {
 public:
  virtual ~AgentOutput() = default;

  // Drops the frame if its destination is gone.
  virtual void Send(const pb::AgentFrame& frame) = 0;

  // Whether producers should pause.
  virtual bool full() const = 0;
  // Whether all output has been written.
  virtual bool idle() const = 0;

  // Sets the callback that the loop calls each time all output has been written, or can no longer
  // be written.
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
