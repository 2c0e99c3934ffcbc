// The event log of a job, a file for programs: one JSON object per line.
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

// The kind as the log has it: "host_joined".
absl::string_view NoticeKindName(membership::Notice::Kind kind);
// All kinds, in the order of their numbers.
std::vector<membership::Notice::Kind> AllNoticeKinds();

// One line, with its '\n'. Fields, in this order: "time" (RFC 3339, UTC, microseconds), "kind",
// "epoch"; those of "host", "worker", "rank", "size", "commit" that the notice has; "text".
std::string EventLogLine(const membership::Notice& notice, absl::Time wall_time);

// The last line of a job: "time", kind "job_finished", "success", "exit_code"; "host" and "rank" if
// a worker is to blame; "text" (the verdict's summary).
std::string EventLogLine(const membership::Verdict& verdict, absl::Time wall_time);

// The line in place of `count` others: "time", kind "lines_dropped", "count", "text".
std::string EventLogDroppedLine(uint64_t count, absl::Time wall_time);

// Appends to a file, one write per whole line, so that readers that follow it see whole lines.
// Thread-safe. A disk or a reader that is slow, full or hangs costs lines, not the job: the log has
// a thread that writes them (base/os/line_writer.h).
class EventLog {
 public:
  // Makes the file if there is none.
  // Errors:
  //   - InvalidArgument: it can't be opened for appending; says why.
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::string& path);

  // Called once, with one line for users, when lines are lost; from a separate thread; must not
  // block. After OnLost(nullptr) has returned, no call comes.
  void OnLost(std::function<void(const std::string& what)> callback);

  // Stamped with the present wall time. Never waits.
  void Write(const membership::Notice& notice);
  void Write(const membership::Verdict& verdict);
  // Waits until every line so far is written or lost, for os::LineWriter::kPatience at most.
  void Flush();

 private:
  EventLog(std::string path, Fd file);

  const std::string path_;
  os::LineWriter writer_;
};

}  // namespace hvd::rendezvous::reporting

#endif  // RENDEZVOUS_REPORTING_EVENT_LOG_H_
