#include "base/console/output_sink.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/console/output_format.h"

namespace hvd::console {

OutputSink::OutputSink(OutputSinkOptions options)
    : options_(std::move(options)), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (options_.has_status_line) {
    line_.emplace(options_.stderr_fd);
    // Lines that go to a file or pipe do not disturb the status line.
    meets_line_[0] = isatty(options_.stdout_fd) != 0;
  }
  thread_ = std::thread([this] { Run(); });
}

OutputSink::~OutputSink() {
  // First: the thread may be blocked by a reader that has stopped reading.
  Abandon();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
  close(wake_fd_);
}

void OutputSink::OnBroken(std::function<void(bool is_stderr, int error)> callback) {
  on_broken_ = std::move(callback);
}

void OutputSink::Write(int rank, bool is_stderr, absl::string_view line, absl::string_view host,
                       bool shown) {
  if (!shown && options_.files == nullptr) return;
  const Target target = is_stderr ? Target::kStderr : Target::kStdout;
  if (options_.json) {
    std::string object = OutputAsJson(options_.wall_now(), rank, host, is_stderr, line);
    return Enqueue({target, rank, std::move(object), false, nullptr, shown}, /*may_wait=*/true);
  }
  std::optional<absl::Time> time;
  if (options_.timestamps) time = options_.wall_now();
  const bool ended = !line.empty() && (line.back() == '\n' || line.back() == '\r');
  std::string text = absl::StrCat(LinePrefix(rank, is_stderr, time), line);
  Enqueue({target, rank, std::move(text), !ended, nullptr, shown}, /*may_wait=*/true);
}

void OutputSink::Say(absl::string_view text) {
  Enqueue({Target::kStderr, -1, Own(text), false, nullptr, true}, /*may_wait=*/false);
}

// A message of the launcher, in the output format of the sink.
std::string OutputSink::Own(absl::string_view words) const {
  return options_.json ? WordsAsJson(options_.wall_now(), words) : std::string(words);
}

void OutputSink::Enqueue(Chunk chunk, bool may_wait) {
  absl::MutexLock lock(&mutex_);
  if (may_wait) {
    mutex_.Await(absl::Condition(
        +[](OutputSink* sink) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sink->mutex_) {
          // The size of this line does not count: a line longer than the limit could never enter.
          return sink->abandoned_ || sink->backlog_bytes_ < sink->options_.max_backlog_bytes;
        },
        this));
  }
  if (abandoned_ && !chunk.IsOwn()) return;
  backlog_bytes_ += chunk.text.size();
  queue_.push_back(std::move(chunk));
}

void OutputSink::SetStatus(absl::string_view text) {
  absl::MutexLock lock(&mutex_);
  if (abandoned_ || !options_.has_status_line || status_ == text) return;
  status_ = std::string(text);
  status_is_new_ = true;
}

bool OutputSink::HasBacklog() {
  absl::MutexLock lock(&mutex_);
  return writing_ || !queue_.empty();
}

void OutputSink::NotifyDrained(std::function<void()> on_drained) {
  {
    absl::MutexLock lock(&mutex_);
    if (!abandoned_) {
      queue_.push_back({Target::kStderr, -1, "", false, std::move(on_drained), true});
      return;
    }
  }
  on_drained();
}

bool OutputSink::AwaitDrained(absl::Duration patience) {
  struct Drained {
    absl::Mutex mutex;
    bool is_so = false;
  };
  const auto drained = std::make_shared<Drained>();
  NotifyDrained([drained] {
    absl::MutexLock lock(&drained->mutex);
    drained->is_so = true;
  });
  absl::MutexLock lock(&drained->mutex);
  return Clock::Real().AwaitWithDeadline(drained->mutex, absl::Condition(&drained->is_so),
                                         Clock::Real().Now() + patience);
}

void OutputSink::Abandon() {
  std::deque<Chunk> dropped;
  {
    absl::MutexLock lock(&mutex_);
    abandoned_ = true;
    dropped.swap(queue_);
    backlog_bytes_ = 0;
    for (Chunk& chunk : dropped) {
      if (!chunk.IsOwn() || chunk.on_drained) continue;
      backlog_bytes_ += chunk.text.size();
      queue_.push_back(std::move(chunk));
    }
  }
  // Wakes a poll of the writing thread. The callbacks run without the lock, since they may call the
  // sink.
  eventfd_write(wake_fd_, 1);
  for (const Chunk& chunk : dropped) {
    if (chunk.on_drained) chunk.on_drained();
  }
}

// Waits for output or a new status, and takes all of it. Returns false when the sink is destroyed
// and nothing is left to write.
bool OutputSink::AwaitWork(std::deque<Chunk>& batch, std::string& status) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  mutex_.Await(absl::Condition(
      +[](OutputSink* sink) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sink->mutex_) {
        return sink->stopping_ || sink->status_is_new_ || !sink->queue_.empty();
      },
      this));
  if (queue_.empty() && stopping_) return false;
  writing_ = !queue_.empty();
  batch.swap(queue_);
  status = status_;
  status_is_new_ = false;
  return true;
}

void OutputSink::Run() {
  std::deque<Chunk> batch;
  std::string status;
  while (AwaitWork(batch, status)) {
    // An empty status means that the line is removed. This must happen before on_drained reports
    // that everything is written.
    if (line_.has_value() && status.empty()) PutRaw(Target::kStderr, line_->Erase());
    for (const Chunk& chunk : batch) {
      if (chunk.on_drained) {
        chunk.on_drained();
        continue;
      }
      Put(chunk);
      // Only now: a batch that was taken but not written still fills memory. The minimum is for
      // Abandon, which may have set the number to 0 meanwhile.
      absl::MutexLock lock(&mutex_);
      backlog_bytes_ -= std::min(backlog_bytes_, chunk.text.size());
    }
    batch.clear();
    if (line_.has_value()) PutRaw(Target::kStderr, line_->Draw(status));
  }
  if (line_.has_value()) PutRaw(Target::kStderr, line_->Erase());
}

void OutputSink::Put(const Chunk& chunk) {
  // The file first: it is complete even if the console's reader is slow or gone.
  if (chunk.rank >= 0 && options_.files != nullptr) {
    const absl::Status status =
        options_.files->Write(chunk.rank, chunk.target == Target::kStderr, chunk.text);
    if (!status.ok() && !told_file_error_) {
      told_file_error_ = true;
      PutConsole(Target::kStderr, Own(absl::StrCat("horovodrun: ", std::string(status.message()),
                                                   "; the output is incomplete there\n")));
    }
  }
  if (!chunk.shown) return;
  PutConsole(chunk.target, chunk.needs_newline ? chunk.text + "\n" : chunk.text);
}

void OutputSink::PutConsole(Target target, absl::string_view data) {
  const bool meets_line = line_.has_value() && meets_line_[target == Target::kStderr];
  if (meets_line) PutRaw(Target::kStderr, line_->Erase());
  PutRaw(target, data);
  if (meets_line) line_->Passed(data);
}

void OutputSink::PutRaw(Target target, absl::string_view data) {
  bool& broken = broken_[target == Target::kStderr];
  if (broken ||
      WriteAll(target == Target::kStdout ? options_.stdout_fd : options_.stderr_fd, data)) {
    return;
  }
  // Only the first broken stream is reported.
  const int error = errno;
  broken = true;
  if (told_broken_ || !on_broken_) return;
  told_broken_ = true;
  on_broken_(target == Target::kStderr, error);
}

// Returns false if `fd` can no longer be written, with the reason in errno. Stops early if
// abandoned.
bool OutputSink::WriteAll(int fd, absl::string_view data) {
  while (!data.empty()) {
    if (!AwaitWritable(fd)) return true;
    // At most PIPE_BUF bytes: a pipe that poll reports as writable takes these without blocking.
    // The descriptors may be shared with other processes, so they are not made non-blocking.
    const ssize_t written = write(fd, data.data(), std::min<size_t>(data.size(), PIPE_BUF));
    if (written >= 0) {
      data.remove_prefix(written);
    } else if (errno != EINTR && errno != EAGAIN) {
      return false;
    }
  }
  return true;
}

// Waits until `fd` is writable. Returns false if the sink is abandoned and `fd` is not writable.
bool OutputSink::AwaitWritable(int fd) {
  while (true) {
    pollfd fds[2] = {{fd, POLLOUT, 0}, {wake_fd_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno == EINTR) continue;
    // True also for errors of `fd`, which write() then reports, and for a writable `fd` of an
    // abandoned sink.
    return fds[0].revents != 0 || fds[1].revents == 0;
  }
}

}  // namespace hvd::console
