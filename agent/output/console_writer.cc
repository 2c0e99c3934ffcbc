#include "agent/output/console_writer.h"

#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/protocol/agent_protocol.h"

namespace hvd::agent::output {
namespace {

console::OutputSinkOptions Unbounded(int out, int err) {
  console::OutputSinkOptions options;
  options.stdout_fd = out;
  options.stderr_fd = err;
  // The sink's limit would block Write, and with it the loop. full() slows the workers down
  // instead.
  options.max_backlog_bytes = std::numeric_limits<size_t>::max();
  return options;
}

}  // namespace

ConsoleWriter::ConsoleWriter(EventLoop& loop, int out, int err)
    : loop_(loop), sink_(Unbounded(out, err)) {
  sink_.OnBroken([this](bool is_stderr, int error) {
    sink_.Say(absl::StrCat(protocol::kAgentProgram, ": can't write to ",
                           is_stderr ? "stderr" : "stdout", " any more: ", std::strerror(error),
                           "; output is missing there\n"));
  });
}

void ConsoleWriter::Send(const pb::AgentFrame& frame) {
  std::string words = frame.refusal().message();
  if (words.empty()) words = frame.ready().warning();
  if (!words.empty()) sink_.Say(absl::StrCat(protocol::kAgentProgram, ": ", words, "\n"));
  const pb::WorkerOutput& output = frame.output();
  if (frame.has_output()) sink_.Write(output.rank(), output.is_stderr(), output.line());
  const size_t bytes = words.size() + output.line().size() + 1;
  waiting_ += bytes;
  unmarked_ += bytes;
  // One marker is in the sink's queue at a time; its callback confirms all output before it. Output
  // that arrives meanwhile is covered by the next marker. So the number of markers does not grow
  // with the number of lines.
  if (!std::exchange(marked_, true)) OnDrained(0);
}

void ConsoleWriter::OnDrained(size_t bytes) {
  waiting_ -= bytes;
  if (unmarked_ == 0) {
    marked_ = false;
    return SayIdle();
  }
  const size_t next = std::exchange(unmarked_, 0);
  sink_.NotifyDrained([this, next] { loop_.Post([this, next] { OnDrained(next); }); });
}

}  // namespace hvd::agent::output
