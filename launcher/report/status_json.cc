#include "launcher/report/status_json.h"

#include <cstdint>
#include <optional>

#include "base/text/json_object.h"

namespace hvd::launcher::report {
namespace {

using text::JsonObject;

double Seconds(uint64_t milliseconds) { return static_cast<double>(milliseconds) / 1000; }

std::optional<double> SecondsIf(bool has, uint64_t milliseconds) {
  return has ? std::optional<double>(Seconds(milliseconds)) : std::nullopt;
}

template <typename Number>
std::optional<Number> NumberIf(bool has, Number number) {
  return has ? std::optional<Number>(number) : std::nullopt;
}

JsonObject WorkerObject(const pb::WorkerStatus& worker) {
  return JsonObject()
      .AddNumber("worker", worker.worker_id())
      .AddNumber("rank", worker.rank())
      .AddNumber("pid", worker.pid())
      .AddText("state", worker.state());
}

JsonObject HostObject(const pb::HostStatus& host) {
  return JsonObject()
      .AddText("host", host.host())
      .AddNumber("slots", host.slots())
      .AddText("machine", host.machine())
      .AddBool("attached", host.attached())
      .AddText("condition", host.condition())
      .AddList("workers", host.workers(), WorkerObject);
}

JsonObject HappeningObject(const pb::Happening& happening) {
  return JsonObject()
      .AddText("kind", happening.kind())
      .AddNumber("age_seconds", Seconds(happening.age_ms()))
      .AddText("text", happening.text());
}

}  // namespace

std::string StatusJson(const pb::GetStatusResponse& status) {
  return JsonObject()
      .AddText("job", status.job_id())
      .AddText("command", status.command())
      .AddBool("elastic", status.elastic())
      .AddText("state", status.state())
      .AddText("explanation", status.explanation())
      .AddNumber("wait_seconds_left", SecondsIf(status.has_wait_left_ms(), status.wait_left_ms()))
      .AddNumber("world", status.epoch())
      .AddNumber("worlds", status.worlds())
      .AddNumber("size", status.size())
      .AddNumber("min_np", status.min_workers())
      .AddNumber("max_np", status.max_workers())
      .AddNumber("failures", status.failures())
      .AddNumber("failures_left", NumberIf(status.elastic(), status.failures_left()))
      .AddNumber("commit", status.commit())
      .AddNumber("commit_age_seconds",
                 SecondsIf(status.has_commit_age_ms(), status.commit_age_ms()))
      .AddNumber("commits_per_second", NumberIf(status.commit_rate() > 0, status.commit_rate()))
      .AddNumber("checkpoint_commit", status.checkpoint_commit())
      .AddText("checkpoint", status.checkpoint())
      .AddNumber("lost_steps", status.lost_steps())
      .AddNumber("lost_seconds", Seconds(status.lost_ms()))
      .AddObject(
          "daemon",
          JsonObject().AddNumber("pid", status.daemon_pid()).AddText("host", status.daemon_host()))
      .AddList("hosts", status.hosts(), HostObject)
      .AddList("recent", status.recent(), HappeningObject)
      .Text();
}

}  // namespace hvd::launcher::report
