#include "rendezvous/server/event_log.h"

#include <errno.h>
#include <fcntl.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"

namespace hvd {
namespace {

// The bytes of the UTF-8 sequence that `text` starts with; 0: it starts with none.
size_t SequenceLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80                     ? 1
                        : first >= 0xC2 && first <= 0xDF ? 2
                        : first >= 0xE0 && first <= 0xEF ? 3
                        : first >= 0xF0 && first <= 0xF4 ? 4
                                                         : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

// A JSON string, quotes included. Host names and what workers say can be any bytes; those that are
// no UTF-8 become U+FFFD.
std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length == 0) {
      quoted += "\\ufffd";
    } else if (text[0] == '"' || text[0] == '\\') {
      quoted += '\\';
      quoted += text[0];
    } else if (static_cast<unsigned char>(text[0]) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", text[0]);
    } else {
      absl::StrAppend(&quoted, text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  quoted += '"';
  return quoted;
}

std::string Opening(absl::Time wall_time, absl::string_view kind) {
  return absl::StrCat("{\"time\":\"",
                      absl::FormatTime("%Y-%m-%d%ET%H:%M:%E6SZ", wall_time, absl::UTCTimeZone()),
                      "\",\"kind\":\"", kind, "\"");
}

}  // namespace

absl::string_view NoticeKindName(Notice::Kind kind) {
  switch (kind) {
    case Notice::Kind::kHostJoined:
      return "host_joined";
    case Notice::Kind::kHostLost:
      return "host_lost";
    case Notice::Kind::kHostDraining:
      return "host_draining";
    case Notice::Kind::kHostLeft:
      return "host_left";
    case Notice::Kind::kDrainOverran:
      return "drain_overran";
    case Notice::Kind::kWorkerStarted:
      return "worker_started";
    case Notice::Kind::kWorkerFailed:
      return "worker_failed";
    case Notice::Kind::kWorkerLeft:
      return "worker_left";
    case Notice::Kind::kEpochBroken:
      return "epoch_broken";
    case Notice::Kind::kEpochChanging:
      return "epoch_changing";
    case Notice::Kind::kWorldFormed:
      return "world_formed";
    case Notice::Kind::kWaiting:
      return "waiting";
    case Notice::Kind::kSlotCooling:
      return "slot_cooling";
  }
  return "unknown";
}

std::string EventLogLine(const Notice& notice, absl::Time wall_time) {
  std::string line = Opening(wall_time, NoticeKindName(notice.kind));
  absl::StrAppend(&line, ",\"epoch\":", notice.epoch.value());
  if (!notice.host.empty()) absl::StrAppend(&line, ",\"host\":", Quoted(notice.host));
  if (notice.worker.value() != 0) absl::StrAppend(&line, ",\"worker\":", notice.worker.value());
  if (notice.rank >= 0) absl::StrAppend(&line, ",\"rank\":", notice.rank);
  if (notice.kind == Notice::Kind::kWorldFormed) {
    absl::StrAppend(&line, ",\"size\":", notice.size, ",\"commit\":", notice.commit);
  }
  absl::StrAppend(&line, ",\"text\":", Quoted(notice.text), "}\n");
  return line;
}

std::string EventLogLine(const Verdict& verdict, absl::Time wall_time) {
  std::string line = Opening(wall_time, "job_finished");
  absl::StrAppend(&line, ",\"success\":", verdict.success ? "true" : "false",
                  ",\"exit_code\":", verdict.exit_code);
  if (verdict.rank >= 0) {
    absl::StrAppend(&line, ",\"host\":", Quoted(verdict.host), ",\"rank\":", verdict.rank);
  }
  absl::StrAppend(&line, ",\"text\":", Quoted(verdict.summary), "}\n");
  return line;
}

absl::StatusOr<std::unique_ptr<EventLog>> EventLog::Open(const std::string& path) {
  Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid()) {
    return absl::InvalidArgumentError(
        absl::StrCat("can't write the event log ", path, ": ", strerror(errno)));
  }
  return std::unique_ptr<EventLog>(new EventLog(std::move(file)));
}

void EventLog::Write(const Notice& notice) { Append(EventLogLine(notice, WallNow())); }

void EventLog::Write(const Verdict& verdict) { Append(EventLogLine(verdict, WallNow())); }

void EventLog::Append(absl::string_view line) {
  absl::MutexLock lock(&mu_);
  (void)WriteAll(file_.get(), line);
}

}  // namespace hvd
