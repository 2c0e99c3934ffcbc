// The event log of a job: a machine-readable file with one JSON object per line.
#ifndef RENDEZVOUS_REPORTING_EVENT_LOG_H_
#define RENDEZVOUS_REPORTING_EVENT_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "base/os/line_writer.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::reporting {

// The kind's name in the log: "host_joined".
absl::string_view NoticeKindName(membership::Notice::Kind kind);
// All kinds, in the order of their numbers.
std::vector<membership::Notice::Kind> AllNoticeKinds();

// One line, with its '\n'. Fields, in this order: "time" (RFC 3339, UTC, microseconds), "kind",
// "world"; those of "host", "worker", "rank" that the notice has; "size" if a world has formed;
// "commit", "lost_steps" and "lost_seconds" if one has formed or begun; "text".
std::string EventLogLine(const membership::Notice& notice, absl::Time wall_time);

// The last line of a job: "time", kind "job_finished", "success", "exit_code"; "host" and "rank" if
// a worker is to blame; "text" (the verdict's summary).
std::string EventLogLine(const membership::Verdict& verdict, absl::Time wall_time);

// The line that replaces `count` dropped lines: "time", kind "lines_dropped", "count", "text".
std::string EventLogDroppedLine(uint64_t count, absl::Time wall_time);

// Appends to a file with one write per line, so that concurrent readers see complete lines.
// Thread-safe. Callers never block on a disk or a pipe that is slow, full or hangs; lines are
// dropped instead. A separate thread writes the lines (base/os/line_writer.h).
class EventLog {
 public:
  // Opens the file for appending; creates it if it is missing.
  // Errors:
  //   - InvalidArgument: the file can't be opened for appending; says why.
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::string& path);

  // Sets the callback for lost lines. It is called once, with a message for users, on a separate
  // thread, and must not block. It is not called after OnLost(nullptr) has returned.
  void OnLost(std::function<void(const std::string& what)> callback);

  // Write one line, with the current wall time. Never block.
  void Write(const membership::Notice& notice);
  void Write(const membership::Verdict& verdict);
  // Blocks until every line so far is written or lost, for at most os::LineWriter::kPatience.
  void Flush();

 private:
  EventLog(std::string path, Fd file);

  const std::string path_;
  os::LineWriter writer_;
};

}  // namespace hvd::rendezvous::reporting

#endif  // RENDEZVOUS_REPORTING_EVENT_LOG_H_
