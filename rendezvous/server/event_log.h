// What happens to a job, as a file for programs: one JSON object a line.
#ifndef RENDEZVOUS_SERVER_EVENT_LOG_H_
#define RENDEZVOUS_SERVER_EVENT_LOG_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "rendezvous/membership/events.h"

namespace hvd {

// The kind as the log has it: "host_joined".
absl::string_view NoticeKindName(Notice::Kind kind);

// One line, with its '\n'. Fields, in this order: "time" (RFC 3339, UTC, microseconds), "kind",
// "epoch"; those of "host", "worker", "rank", "size", "commit" that the notice has; "text".
std::string EventLogLine(const Notice& notice, absl::Time wall_time);

// The last line of a job: "time", kind "job_finished", "success", "exit_code"; "host" and "rank" if
// a worker is to blame; "text" (the verdict's summary).
std::string EventLogLine(const Verdict& verdict, absl::Time wall_time);

// Appends to a file, a whole line a write, so that readers that follow it see whole lines.
// Thread-safe. A disk that is full costs lines, not the job.
class EventLog {
 public:
  // Makes the file if there is none.   InvalidArgument: it can't be opened for appending; says why.
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::string& path);

  // Called once, with one line for people, when lines are lost. Set it before the first Write.
  void OnLost(std::function<void(const std::string& what)> callback);

  // Stamped with the present wall time.
  void Write(const Notice& notice);
  void Write(const Verdict& verdict);

 private:
  EventLog(std::string path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}
  void Append(absl::string_view line);

  const std::string path_;
  absl::Mutex mu_;
  std::function<void(const std::string& what)> on_lost_ ABSL_GUARDED_BY(mu_);
  const Fd file_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hvd

#endif  // RENDEZVOUS_SERVER_EVENT_LOG_H_
