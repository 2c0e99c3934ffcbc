#include "worker_runtime/timeline/trace_file.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/os/protected_open.h"
#include "base/signal_free_thread.h"
#include "worker_runtime/timeline/trace_format.h"

namespace hvd::worker_runtime::timeline {
namespace {

absl::Status WriteFully(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::ResourceExhaustedError(strerror(errno));
    text.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

// The queue between the engine and the writer thread, and the thread's state. Shared by TraceFile
// and the thread, which may outlive it.
class TraceFile::Writer {
 public:
  Writer(Fd fd, std::string path, std::vector<std::string> hosts, absl::Time origin, OnLost on_lost)
      : path_(std::move(path)),
        on_lost_(std::move(on_lost)),
        fd_(std::move(fd)),
        format_(hosts, origin),
        dropped_chunks_(hosts.size(), 0),
        finished_(hosts.size(), false) {}

  void Add(int rank, std::string chunk, bool last);
  void Close();
  absl::Status AwaitClosed(absl::Duration timeout);
  // The writer thread's main function.
  void Run();

 private:
  static constexpr size_t kMostWaitingBytes = 64 << 20;

  struct Part {
    int rank = 0;
    std::string chunk;
  };

  std::string FormatParts(const std::deque<Part>& parts);
  // Returns notes about ranks whose events are incomplete, for the end of the file.
  std::string Notes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status Incomplete(absl::string_view why) const {
    return absl::ResourceExhaustedError(
        absl::StrCat("the timeline's file '", path_, "' is not complete: ", why));
  }

  const std::string path_;
  const OnLost on_lost_;
  Fd fd_;               // used by the writer thread only
  TraceFormat format_;  // used by the writer thread only
  absl::Mutex mutex_;
  std::deque<Part> parts_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> dropped_chunks_ ABSL_GUARDED_BY(mutex_);  // by rank
  std::vector<bool> finished_ ABSL_GUARDED_BY(mutex_);            // by rank
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Open(const std::string& path,
                                                           std::vector<std::string> hosts,
                                                           absl::Time origin, OnLost on_lost) {
  absl::StatusOr<Fd> fd = os::OpenOutputFile(path, os::OldContent::kDropped, 0666);
  if (!fd.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the timeline's file '", path, "' can't be written: ", fd.status().message()));
  }
  return absl::WrapUnique(new TraceFile(std::make_shared<Writer>(
      *std::move(fd), path, std::move(hosts), origin, std::move(on_lost))));
}

TraceFile::TraceFile(std::shared_ptr<Writer> writer)
    : writer_(std::move(writer)), thread_(StartSignalFreeThread([own = writer_] { own->Run(); })) {}

TraceFile::~TraceFile() {
  Close();
  // A thread that hangs in write() is left behind; it owns a reference to the writer.
  const bool closed = !absl::IsDeadlineExceeded(AwaitClosed(kPatience));
  closed ? thread_.join() : thread_.detach();
}

void TraceFile::Add(int rank, std::string chunk, bool last) {
  writer_->Add(rank, std::move(chunk), last);
}

void TraceFile::Close() { writer_->Close(); }

absl::Status TraceFile::AwaitClosed(absl::Duration timeout) {
  return writer_->AwaitClosed(timeout);
}

void TraceFile::Writer::Add(int rank, std::string chunk, bool last) {
  absl::MutexLock lock(&mutex_);
  if (closing_ || rank < 0 || static_cast<size_t>(rank) >= finished_.size()) return;
  // A slow disk must not fill the memory of rank 0, nor block its engine: chunks are dropped.
  if (waiting_bytes_ + chunk.size() <= kMostWaitingBytes) {
    waiting_bytes_ += chunk.size();
    parts_.push_back({rank, std::move(chunk)});
  } else {
    ++dropped_chunks_[rank];
  }
  if (!last) return;
  finished_[rank] = true;
  closing_ =
      std::all_of(finished_.begin(), finished_.end(), [](bool finished) { return finished; });
}

void TraceFile::Writer::Close() {
  absl::MutexLock lock(&mutex_);
  closing_ = true;
}

absl::Status TraceFile::Writer::AwaitClosed(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  Clock& clock = Clock::Real();
  if (clock.AwaitWithDeadline(mutex_, absl::Condition(&closed_), clock.Now() + timeout)) {
    return status_;
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "the timeline's file '", path_, "' is not complete: some ranks have not sent their events"));
}

std::string TraceFile::Writer::FormatParts(const std::deque<Part>& parts) {
  std::string text;
  for (const Part& part : parts) {
    // A chunk that can't be read becomes a note: it must not end the file.
    absl::StatusOr<std::string> events = format_.Add(part.rank, part.chunk);
    text += events.ok() ? *events : format_.Note(part.rank, "CHUNKS_UNREADABLE", 1);
  }
  return text;
}

std::string TraceFile::Writer::Notes() {
  std::string text;
  for (size_t rank = 0; rank < finished_.size(); ++rank) {
    const uint64_t dropped = dropped_chunks_[rank];
    if (dropped > 0) text += format_.Note(static_cast<int>(rank), "CHUNKS_DROPPED", dropped);
    if (!finished_[rank]) text += format_.Note(static_cast<int>(rank), "LAST_EVENTS_MISSING", 1);
  }
  return text;
}

void TraceFile::Writer::Run() {
  // After the first error nothing more is written, but parts are still taken, so that the queue
  // does not fill up.
  absl::Status status;
  auto write_out = [&](const std::string& text) {
    if (!status.ok()) return;
    status = WriteFully(fd_.get(), text);
    if (!status.ok() && on_lost_ != nullptr) on_lost_(Incomplete(status.message()));
  };
  write_out(format_.Begin());
  for (bool closing = false; !closing;) {
    std::deque<Part> parts;
    {
      absl::MutexLock lock(&mutex_);
      auto ready = [this] {
        mutex_.AssertHeld();
        return closing_ || !parts_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      closing = closing_;
      parts.swap(parts_);
      waiting_bytes_ = 0;
    }
    // Without the lock: formatting and writing take long, and Add must not wait for them.
    write_out(FormatParts(parts));
  }
  std::string notes;
  {
    absl::MutexLock lock(&mutex_);
    notes = Notes();
  }
  write_out(notes + format_.End());
  fd_.reset();
  absl::MutexLock lock(&mutex_);
  if (!status.ok()) status_ = Incomplete(status.message());
  closed_ = true;
}

std::string TracePathOf(const std::string& path, uint64_t epoch) {
  if (epoch <= 1) return path;
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  // A dot in a folder's name, or at the begin of the file's name, begins no extension.
  const bool has_extension =
      dot != std::string::npos && dot > (slash == std::string::npos ? 0 : slash + 1);
  const size_t end = has_extension ? dot : path.size();
  return absl::StrCat(path.substr(0, end), ".epoch", epoch, path.substr(end));
}

}  // namespace hvd::worker_runtime::timeline
