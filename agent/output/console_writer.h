// The output of an agent that nobody launched: to stdout and stderr, as horovodrun shows it.
#ifndef AGENT_OUTPUT_CONSOLE_WRITER_H_
#define AGENT_OUTPUT_CONSOLE_WRITER_H_

#include <string>

#include "agent/output/agent_output.h"
#include "base/console/output_sink.h"
#include "base/event_loop.h"

namespace hvd::agent::output {

// Workers' lines with "[rank]<stdout>:" in front; the agent's own words to stderr. What can't be
// written, to a full disk, is told once and costs nothing else. Belongs to the
// loop's thread. REQUIRES: the loop runs no more when it is destroyed.
class ConsoleWriter : public AgentOutput {
 public:
  static constexpr size_t kFullBytes = 1 << 20;

  // The descriptors are borrowed, and not made non-blocking: others may share them.
  ConsoleWriter(EventLoop& loop, int out, int err);

  void Send(const pb::AgentFrame& frame) override;
  bool full() const override { return waiting_ >= kFullBytes; }
  bool idle() const override { return waiting_ == 0; }

 private:
  void OnDrained(size_t bytes);

  EventLoop& loop_;
  size_t waiting_ = 0;   // bytes that may not have been written yet
  size_t unmarked_ = 0;  // of these, without a mark behind them
  bool marked_ = false;  // a mark is on its way
  console::OutputSink sink_;
};

}  // namespace hvd::agent::output

#endif  // AGENT_OUTPUT_CONSOLE_WRITER_H_
