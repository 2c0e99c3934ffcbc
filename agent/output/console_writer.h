// The output of an agent without a launcher: stdout and stderr, in horovodrun's format.
#ifndef AGENT_OUTPUT_CONSOLE_WRITER_H_
#define AGENT_OUTPUT_CONSOLE_WRITER_H_

#include <string>

#include "agent/output/agent_output.h"
#include "base/console/output_sink.h"
#include "base/event_loop.h"

namespace hvd::agent::output {

// Writes workers' lines with the prefix "[rank]<stdout>:", and the agent's messages to stderr. A
// write error, e.g. a full disk, is reported once and has no other effect. Belongs to the loop's
// thread.
// REQUIRES: the loop no longer runs when this is destroyed.
class ConsoleWriter : public AgentOutput {
 public:
  static constexpr size_t kFullBytes = 1 << 20;

  // The descriptors are borrowed. They stay in blocking mode, since others may share them.
  ConsoleWriter(EventLoop& loop, int out, int err);

  void Send(const pb::AgentFrame& frame) override;
  bool full() const override { return waiting_ >= kFullBytes; }
  bool idle() const override { return waiting_ == 0; }

 private:
  void OnDrained(size_t bytes);

  EventLoop& loop_;
  size_t waiting_ = 0;   // bytes given to the sink and not yet confirmed
  size_t unmarked_ = 0;  // of these, not followed by a marker
  bool marked_ = false;  // a marker is in the sink's queue
  console::OutputSink sink_;
};

}  // namespace hvd::agent::output

#endif  // AGENT_OUTPUT_CONSOLE_WRITER_H_
