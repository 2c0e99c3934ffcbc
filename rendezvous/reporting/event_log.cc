#include "rendezvous/reporting/event_log.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os/protected_open.h"
#include "base/text/json_object.h"

namespace hvd::rendezvous::reporting {
namespace {

// The order of the fields is promised, and puts the text last, whose length varies most.
text::JsonObject Opening(absl::Time wall_time, absl::string_view kind) {
  return text::JsonObject().AddTime("time", wall_time).AddText("kind", kind);
}

std::string Line(text::JsonObject object, absl::string_view text) {
  return absl::StrCat(object.AddText("text", text).Text(), "\n");
}

}  // namespace

absl::string_view NoticeKindName(membership::Notice::Kind kind) {
  switch (kind) {
    case membership::Notice::Kind::kHostJoined:
      return "host_joined";
    case membership::Notice::Kind::kHostLost:
      return "host_lost";
    case membership::Notice::Kind::kHostDraining:
      return "host_draining";
    case membership::Notice::Kind::kHostLeft:
      return "host_left";
    case membership::Notice::Kind::kDrainOverran:
      return "drain_overran";
    case membership::Notice::Kind::kWorkerStarted:
      return "worker_started";
    case membership::Notice::Kind::kWorkerFailed:
      return "worker_failed";
    case membership::Notice::Kind::kWorkerLeft:
      return "worker_left";
    case membership::Notice::Kind::kEpochBroken:
      return "world_broken";
    case membership::Notice::Kind::kEpochChanging:
      return "world_changing";
    case membership::Notice::Kind::kWorldIdle:
      return "world_idle";
    case membership::Notice::Kind::kWorldFormed:
      return "world_formed";
    case membership::Notice::Kind::kWaiting:
      return "waiting";
    case membership::Notice::Kind::kSlotCooling:
      return "slot_cooling";
    case membership::Notice::Kind::kStalled:
      return "stalled";
    case membership::Notice::Kind::kStack:
      return "stack";
    case membership::Notice::Kind::kRestarted:
      return "daemon_restarted";
    case membership::Notice::Kind::kHostBack:
      return "host_back";
    case membership::Notice::Kind::kLimitsChanged:
      return "limits_changed";
    case membership::Notice::Kind::kHostWaits:
      return "host_waits";
    case membership::Notice::Kind::kCommitsKept:
      return "commits_kept";
    case membership::Notice::Kind::kCommitsNotKept:
      return "commits_not_kept";
    case membership::Notice::Kind::kWorldBegan:
      return "world_began";
    case membership::Notice::Kind::kCheckpointWritten:
      return "checkpoint_written";
    case membership::Notice::Kind::kCheckpointFailed:
      return "checkpoint_failed";
    case membership::Notice::Kind::kJobEnding:
      return "job_ending";
    case membership::Notice::Kind::kDrainCancelled:
      return "drain_cancelled";
  }
  return "";
}

std::vector<membership::Notice::Kind> AllNoticeKinds() {
  std::vector<membership::Notice::Kind> kinds;
  // The kinds are numbered without gaps from 0, and the switch above is complete, so the first
  // number without a name is the end.
  for (int number = 0;; ++number) {
    const auto kind = static_cast<membership::Notice::Kind>(number);
    if (NoticeKindName(kind).empty()) return kinds;
    kinds.push_back(kind);
  }
}

std::string EventLogLine(const membership::Notice& notice, absl::Time wall_time) {
  text::JsonObject line = Opening(wall_time, NoticeKindName(notice.kind));
  line.AddNumber("world", notice.epoch.value());
  if (!notice.host.empty()) line.AddText("host", notice.host);
  // Ids begin with 1, ranks with 0.
  if (notice.worker.value() != 0) line.AddNumber("worker", notice.worker.value());
  if (notice.rank >= 0) line.AddNumber("rank", notice.rank);
  const bool formed = notice.kind == membership::Notice::Kind::kWorldFormed;
  if (formed) line.AddNumber("size", notice.size);
  if (formed || notice.kind == membership::Notice::Kind::kWorldBegan) {
    line.AddNumber("commit", notice.commit)
        .AddNumber("lost_steps", notice.lost_steps)
        .AddNumber("lost_seconds", absl::ToDoubleSeconds(notice.lost_time));
  }
  return Line(std::move(line), notice.text);
}

std::string EventLogLine(const membership::Verdict& verdict, absl::Time wall_time) {
  text::JsonObject line = Opening(wall_time, "job_finished");
  line.AddBool("success", verdict.success).AddNumber("exit_code", verdict.exit_code);
  if (verdict.rank >= 0) line.AddText("host", verdict.host).AddNumber("rank", verdict.rank);
  return Line(std::move(line), verdict.summary);
}

std::string EventLogDroppedLine(uint64_t count, absl::Time wall_time) {
  return Line(Opening(wall_time, "lines_dropped").AddNumber("count", count),
              absl::StrCat(count, count == 1 ? " line is" : " lines are",
                           " missing here: they could not be written in time"));
}

EventLog::EventLog(std::string path, Fd file)
    : path_(std::move(path)), writer_(std::move(file), [](uint64_t count) {
        return EventLogDroppedLine(count, WallNow());
      }) {}

absl::StatusOr<std::unique_ptr<EventLog>> EventLog::Open(const std::string& path) {
  const auto unusable = [&path](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("can't write the event log ", path, ": ", why));
  };
  // Kept: a restarted daemon continues in the file.
  absl::StatusOr<Fd> file = os::OpenOutputFile(path, os::OldContent::kKept, 0644);
  if (!file.ok()) return unusable(file.status().message());
  return std::unique_ptr<EventLog>(new EventLog(path, *std::move(file)));
}

void EventLog::OnLost(std::function<void(const std::string& what)> callback) {
  if (callback == nullptr) return writer_.OnError(nullptr);
  writer_.OnError([path = path_, tell = std::move(callback)](int error) {
    tell(absl::StrCat("can't write the event log ", path, ": ", strerror(error),
                      "; lines are missing there"));
  });
}

void EventLog::Flush() { writer_.Flush(); }

void EventLog::Write(const membership::Notice& notice) {
  // The time of the event. The write may come much later, if the file hangs.
  writer_.Write(EventLogLine(notice, WallNow()));
}

void EventLog::Write(const membership::Verdict& verdict) {
  writer_.Write(EventLogLine(verdict, WallNow()));
}

}  // namespace hvd::rendezvous::reporting
