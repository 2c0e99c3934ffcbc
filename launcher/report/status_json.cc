#include "launcher/report/status_json.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text/json.h"

namespace hvd::launcher::report {
namespace {

using text::JsonString;

std::string Seconds(uint64_t milliseconds) {
  return absl::StrFormat("%.15g", static_cast<double>(milliseconds) / 1000);
}

// `has`: false gives null.
std::string SecondsOrNull(bool has, uint64_t milliseconds) {
  return has ? Seconds(milliseconds) : "null";
}

std::string NumberOrNull(bool has, double number) { return has ? absl::StrCat(number) : "null"; }

std::string Bool(bool value) { return value ? "true" : "false"; }

void AppendWorker(std::string* text, const pb::WorkerStatus& worker) {
  absl::StrAppend(text, "{\"worker\":", worker.worker_id(), ",\"rank\":", worker.rank(),
                  ",\"pid\":", worker.pid(), ",\"state\":", JsonString(worker.state()), "}");
}

void AppendHost(std::string* text, const pb::HostStatus& host) {
  absl::StrAppend(text, "{\"host\":", JsonString(host.host()), ",\"slots\":", host.slots(),
                  ",\"machine\":", JsonString(host.machine()),
                  ",\"attached\":", Bool(host.attached()),
                  ",\"condition\":", JsonString(host.condition()), ",\"workers\":[",
                  absl::StrJoin(host.workers(), ",", AppendWorker), "]}");
}

void AppendHappening(std::string* text, const pb::Happening& happening) {
  absl::StrAppend(text, "{\"kind\":", JsonString(happening.kind()),
                  ",\"age_seconds\":", Seconds(happening.age_ms()),
                  ",\"text\":", JsonString(happening.text()), "}");
}

}  // namespace

std::string StatusJson(const pb::GetStatusResponse& status) {
  return absl::StrCat(
      "{\"job\":", JsonString(status.job_id()), ",\"command\":", JsonString(status.command()),
      ",\"elastic\":", Bool(status.elastic()), ",\"state\":", JsonString(status.state()),
      ",\"explanation\":", JsonString(status.explanation()),
      ",\"wait_seconds_left\":", SecondsOrNull(status.has_wait_left_ms(), status.wait_left_ms()),
      ",\"world\":", status.epoch(), ",\"worlds\":", status.worlds(), ",\"size\":", status.size(),
      ",\"min_np\":", status.min_workers(), ",\"max_np\":", status.max_workers(),
      ",\"failures\":", status.failures(),
      ",\"failures_left\":", NumberOrNull(status.elastic(), status.failures_left()),
      ",\"commit\":", status.commit(),
      ",\"commit_age_seconds\":", SecondsOrNull(status.has_commit_age_ms(), status.commit_age_ms()),
      ",\"commits_per_second\":", NumberOrNull(status.commit_rate() > 0, status.commit_rate()),
      ",\"checkpoint\":", JsonString(status.checkpoint()), ",\"lost_steps\":", status.lost_steps(),
      ",\"lost_seconds\":", Seconds(status.lost_ms()), ",\"daemon\":{\"pid\":", status.daemon_pid(),
      ",\"host\":", JsonString(status.daemon_host()), "},\"hosts\":[",
      absl::StrJoin(status.hosts(), ",", AppendHost), "],\"recent\":[",
      absl::StrJoin(status.recent(), ",", AppendHappening), "]}");
}

}  // namespace hvd::launcher::report
