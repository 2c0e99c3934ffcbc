#include "base/os/line_writer.h"

#include <poll.h>

#include <cerrno>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/signal_free_thread.h"

namespace hvd::os {

// The state that the writer and its thread share. The thread takes all waiting lines at once and
// writes them without the lock. Lines that Add refuses for lack of room are newer than all accepted
// ones, so they are reported after these (`refused`); lines that can't be written are counted in
// missing_. The report on missing lines is written before the next line.
class LineWriter::Worker {
 public:
  Worker(Fd file, DroppedLine dropped_line)
      : file_(std::move(file)), dropped_line_(std::move(dropped_line)) {}

  void OnError(std::function<void(int error)> callback) {
    absl::MutexLock lock(&callback_mutex_);
    on_error_ = std::move(callback);
  }

  void Add(std::string line) {
    absl::MutexLock lock(&mutex_);
    if (waiting_bytes_ + line.size() > kMostWaitingBytes) {
      ++refused_;
      return;
    }
    waiting_bytes_ += line.size();
    lines_.push_back(std::move(line));
  }

  void Flush() {
    absl::MutexLock lock(&mutex_);
    const auto idle = [this] {
      mutex_.AssertHeld();
      return !writing_ && refused_ == 0 && lines_.empty();
    };
    hangs_ = !Await(absl::Condition(&idle));
  }

  // Tells the thread to end after the remaining lines. Returns false if it has not ended in time.
  // After a Flush that timed out it does not wait again.
  bool End() {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    return hangs_ ? ended_ : Await(absl::Condition(&ended_));
  }

  // The body of the thread.
  void Run() {
    std::deque<std::string> lines;
    uint64_t refused = 0;
    while (Next(lines, refused)) {
      for (const std::string& line : lines) Put(line);
      lines.clear();
      missing_ += std::exchange(refused, 0);  // newer than the accepted lines
      if (missing_ > 0) Put("");
    }
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }

 private:
  // Waits up to kPatience for `condition`; returns whether it holds.
  bool Await(const absl::Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Clock& clock = Clock::Real();
    return clock.AwaitWithDeadline(mutex_, condition, clock.Now() + kPatience);
  }

  // Waits for work and takes it. Returns false when the writer ends and nothing is left to write.
  bool Next(std::deque<std::string>& lines, uint64_t& refused) {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    const auto something = [this] {
      mutex_.AssertHeld();
      return ending_ || refused_ > 0 || !lines_.empty();
    };
    mutex_.Await(absl::Condition(&something));
    lines.swap(lines_);
    waiting_bytes_ = 0;
    refused = std::exchange(refused_, 0);
    writing_ = true;
    return refused > 0 || !lines.empty();
  }

  // Writes the report on missing lines, if any, and then the line. A line that was written only
  // partly (torn_) is ended first, so that the report begins on a new line.
  void Put(const std::string& line) {
    std::string text = torn_ ? "\n" : "";
    if (missing_ > 0) text += dropped_line_(missing_);
    const size_t before = text.size();
    text += line;
    const size_t written = WriteSomeOf(text);
    if (written >= before) missing_ = 0;
    torn_ = written == 0 ? torn_ : text[written - 1] != '\n';
    if (written == text.size()) return;
    ReportError(errno);
    if (!line.empty()) ++missing_;
  }

  // Returns the number of bytes written; if fewer than all, errno has the reason.
  size_t WriteSomeOf(absl::string_view text) {
    const size_t size = text.size();
    while (!text.empty()) {
      const IoResult result = WriteSome(file_.get(), text);
      if (result.end) break;
      if (result.would_block) AwaitRoom();
      text.remove_prefix(result.bytes);
    }
    return size - text.size();
  }

  // The descriptor should block, but another program that shares the terminal may have made it
  // non-blocking.
  void AwaitRoom() {
    pollfd room = {file_.get(), POLLOUT, 0};
    poll(&room, 1, -1);
  }

  void ReportError(int error) {
    absl::MutexLock lock(&callback_mutex_);
    if (const auto report = std::exchange(on_error_, nullptr)) report(error);
  }

  const Fd file_;  // this and the next three: used by the thread only
  const DroppedLine dropped_line_;
  uint64_t missing_ = 0;  // lines lost since the last written one
  bool torn_ = false;     // the file ends within a line
  absl::Mutex callback_mutex_;
  std::function<void(int error)> on_error_ ABSL_GUARDED_BY(callback_mutex_);
  absl::Mutex mutex_;
  std::deque<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // the thread has lines that were in `lines_`
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;    // a Flush has timed out
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

LineWriter::LineWriter(Fd file, DroppedLine dropped_line)
    : worker_(std::make_shared<Worker>(std::move(file), std::move(dropped_line))),
      thread_(StartSignalFreeThread([worker = worker_] { worker->Run(); })) {}

LineWriter::~LineWriter() {
  const bool ended = worker_->End();
  worker_->OnError(nullptr);
  // A thread that hangs in a system call can't be joined. It is detached instead, and keeps the
  // worker alive by its reference.
  ended ? thread_.join() : thread_.detach();
}

void LineWriter::OnError(std::function<void(int error)> callback) {
  worker_->OnError(std::move(callback));
}

void LineWriter::Flush() { worker_->Flush(); }

void LineWriter::Write(std::string line) { worker_->Add(std::move(line)); }

}  // namespace hvd::os
