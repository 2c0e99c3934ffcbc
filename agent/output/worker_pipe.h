// A reader of one output stream of a worker.
#ifndef AGENT_OUTPUT_WORKER_PIPE_H_
#define AGENT_OUTPUT_WORKER_PIPE_H_

#include <cstdint>
#include <functional>

#include "agent/output/line_splitter.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace hvd::agent::output {

// Reads a pipe and passes on its lines. Not thread-safe: belongs to the loop's thread.
class WorkerPipe {
 public:
  // `on_end` is called once, from the loop or from ReadRest, when all writers have closed it; it
  // must not destroy the pipe.
  WorkerPipe(EventLoop& loop, Fd fd, LineSplitter::Take take, std::function<void()> on_end);
  ~WorkerPipe();

  // While paused nothing is read: the pipe fills up and the worker blocks (backpressure).
  void set_paused(bool paused);

  // Reads what the pipe holds now, even while paused. The amount is limited to a few times a pipe's
  // capacity, since a writer may go on.
  void ReadRest();
  // Passes on what was read of a line without an end.
  void EndLine() { splitter_.Finish(take_); }
  // Passes on the last line, complete or not, and stops reading.
  void Close();

  bool open() const { return fd_.valid(); }

 private:
  // Returns whether the pipe may hold more.
  bool ReadOnce();

  EventLoop& loop_;
  Fd fd_;
  LineSplitter splitter_;
  const LineSplitter::Take take_;
  const std::function<void()> on_end_;
};

}  // namespace hvd::agent::output

#endif  // AGENT_OUTPUT_WORKER_PIPE_H_
