#include "rendezvous/server/event_log.h"

#include <errno.h>
#include <fcntl.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/json.h"

namespace hvd {
namespace {

std::string Opening(absl::Time wall_time, absl::string_view kind) {
  return absl::StrCat("{\"time\":", JsonTime(wall_time), ",\"kind\":\"", kind, "\"");
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
    case Notice::Kind::kStalled:
      return "stalled";
    case Notice::Kind::kStack:
      return "stack";
  }
  return "unknown";
}

std::string EventLogLine(const Notice& notice, absl::Time wall_time) {
  std::string line = Opening(wall_time, NoticeKindName(notice.kind));
  absl::StrAppend(&line, ",\"epoch\":", notice.epoch.value());
  if (!notice.host.empty()) absl::StrAppend(&line, ",\"host\":", JsonString(notice.host));
  if (notice.worker.value() != 0) absl::StrAppend(&line, ",\"worker\":", notice.worker.value());
  if (notice.rank >= 0) absl::StrAppend(&line, ",\"rank\":", notice.rank);
  if (notice.kind == Notice::Kind::kWorldFormed) {
    absl::StrAppend(&line, ",\"size\":", notice.size, ",\"commit\":", notice.commit);
  }
  absl::StrAppend(&line, ",\"text\":", JsonString(notice.text), "}\n");
  return line;
}

std::string EventLogLine(const Verdict& verdict, absl::Time wall_time) {
  std::string line = Opening(wall_time, "job_finished");
  absl::StrAppend(&line, ",\"success\":", verdict.success ? "true" : "false",
                  ",\"exit_code\":", verdict.exit_code);
  if (verdict.rank >= 0) {
    absl::StrAppend(&line, ",\"host\":", JsonString(verdict.host), ",\"rank\":", verdict.rank);
  }
  absl::StrAppend(&line, ",\"text\":", JsonString(verdict.summary), "}\n");
  return line;
}

absl::StatusOr<std::unique_ptr<EventLog>> EventLog::Open(const std::string& path) {
  Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid()) {
    return absl::InvalidArgumentError(
        absl::StrCat("can't write the event log ", path, ": ", strerror(errno)));
  }
  return std::unique_ptr<EventLog>(new EventLog(path, std::move(file)));
}

void EventLog::OnLost(std::function<void(const std::string& what)> callback) {
  absl::MutexLock lock(&mu_);
  on_lost_ = std::move(callback);
}

void EventLog::Write(const Notice& notice) { Append(EventLogLine(notice, WallNow())); }

void EventLog::Write(const Verdict& verdict) { Append(EventLogLine(verdict, WallNow())); }

void EventLog::Append(absl::string_view line) {
  absl::MutexLock lock(&mu_);
  if (WriteAll(file_.get(), line).ok()) return;
  const int error = errno;
  if (const auto tell = std::exchange(on_lost_, nullptr)) {
    tell(absl::StrCat("can't write the event log ", path_, ": ", strerror(error),
                      "; lines are missing there"));
  }
}

}  // namespace hvd
