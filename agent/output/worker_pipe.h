// A reader of one output stream of a worker.
#ifndef AGENT_OUTPUT_WORKER_PIPE_H_
#define AGENT_OUTPUT_WORKER_PIPE_H_

#include <cstdint>
#include <functional>

#include "agent/output/line_splitter.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace hvd::agent::output {

// Reads a pipe and gives its lines. Belongs to the loop's thread.
class WorkerPipe {
 public:
  // `on_end` is called once, from the loop or from ReadRest, when all writers have closed it; it
  // must not destroy the pipe.
  WorkerPipe(EventLoop& loop, Fd fd, LineSplitter::Take take, std::function<void()> on_end);
  ~WorkerPipe();

  // While paused it reads nothing, so that the worker has to wait.
  void set_paused(bool paused);

  // Reads what is there now, paused or not, but at most a few times what a pipe can hold.
  void ReadRest();
  // Gives the last line, whole or not, and reads no more.
  void Close();

  bool open() const { return fd_.valid(); }

 private:
  // Returns whether more may be there.
  bool ReadOnce();

  EventLoop& loop_;
  Fd fd_;
  LineSplitter splitter_;
  const LineSplitter::Take take_;
  const std::function<void()> on_end_;
};

}  // namespace hvd::agent::output

#endif  // AGENT_OUTPUT_WORKER_PIPE_H_
