// The asynchronous writer of workers' output and the launcher's messages. A thread writes them to
// stdout, stderr and the files of --output-filename, so that a slow terminal or a paused pager
// never blocks the launcher.
#ifndef BASE_CONSOLE_OUTPUT_SINK_H_
#define BASE_CONSOLE_OUTPUT_SINK_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/console/rank_files.h"
#include "base/console/terminal_line.h"

namespace hvd::console {

struct OutputSinkOptions {
  int stdout_fd = 1;  // borrowed
  int stderr_fd = 2;  // borrowed
  bool timestamps = false;
  bool json = false;                     // a JSON object a line, see output_format.h
  std::function<absl::Time()> wall_now;  // required for timestamps and JSON
  std::unique_ptr<RankFiles> files;      // may be null
  bool has_status_line = false;          // requires CanHaveTerminalLine(stderr_fd)
  size_t max_backlog_bytes = 8 << 20;
};

// Thread-safe. Callbacks come from the sink's thread and must not destroy the sink.
class OutputSink {
 public:
  explicit OutputSink(OutputSinkOptions options);
  // Stops after the current write and drops the backlog.
  ~OutputSink();
  OutputSink(const OutputSink&) = delete;
  OutputSink& operator=(const OutputSink&) = delete;

  // Sets the callback for a write error on stdout or stderr. It is called once, with errno: EPIPE
  // if the reader of a pipe is gone. Later output for that stream is dropped. Call this before the
  // first Write.
  void OnBroken(std::function<void(bool is_stderr, int error)> callback);

  // Writes one line of a worker, including its '\n' or '\r', if any. Blocks while the backlog is
  // full, so that the workers are slowed down to the reader's pace. `host` is for JSON. If `shown`
  // is false, the line only goes to the files.
  void Write(int rank, bool is_stderr, absl::string_view line, absl::string_view host = "",
             bool shown = true);

  // Writes a message of the launcher, in whole lines, to stderr. Never blocks.
  void Say(absl::string_view text);

  // Sets the text of the status line; empty: no status line. The line is shown below all other
  // output, and erased while other output is written. The destructor removes it. Never blocks. Does
  // nothing if has_status_line() is false.
  void SetStatus(absl::string_view text);
  bool has_status_line() const { return options_.has_status_line; }

  // Whether output is waiting to be written.
  bool HasBacklog();

  // Calls `on_drained` as soon as all output of earlier calls has been written or dropped.
  void NotifyDrained(std::function<void()> on_drained);

  // Waits until then. Returns false if that takes longer than `patience`.
  bool AwaitDrained(absl::Duration patience);

  // Drops the backlog and all later output of workers, and unblocks all callers, for an immediate
  // end. Messages of the launcher are still written if their stream takes them at once.
  void Abandon();

 private:
  enum class Target { kStdout, kStderr };
  struct Chunk {
    Target target;
    int rank;  // -1: a message of the launcher
    std::string text;
    bool needs_newline;  // on the console only: a worker's last line without a line end
    std::function<void()> on_drained;  // not null: a marker without text
    bool shown = true;                 // false: only for the files
    bool IsOwn() const { return rank < 0; }
  };

  std::string Own(absl::string_view words) const;
  void Enqueue(Chunk chunk, bool may_wait);
  void Run();
  bool AwaitWork(std::deque<Chunk>& batch, std::string& status);
  void Put(const Chunk& chunk);
  void PutConsole(Target target, absl::string_view data);
  void PutRaw(Target target, absl::string_view data);
  bool WriteAll(int fd, absl::string_view data);
  bool AwaitWritable(int fd);

  const OutputSinkOptions options_;
  std::function<void(bool is_stderr, int error)> on_broken_;
  bool broken_[2] = {false, false};  // up to line_: used by the writing thread only
  bool told_broken_ = false;
  bool told_file_error_ = false;
  std::optional<TerminalLine> line_;
  bool meets_line_[2] = {false, true};  // whether stdout, stderr go to the status line's terminal
  int wake_fd_;                         // an eventfd: readable once abandoned

  absl::Mutex mutex_;
  std::deque<Chunk> queue_ ABSL_GUARDED_BY(mutex_);
  size_t backlog_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string status_ ABSL_GUARDED_BY(mutex_);
  bool status_is_new_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hvd::console

#endif  // BASE_CONSOLE_OUTPUT_SINK_H_
