#include "rendezvous/reporting/job_json.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/text/json.h"

namespace hvd::rendezvous::reporting {
namespace {

using membership::Membership;

// The names of states are this program's own words; any other text may come from users or their
// errors, and is escaped.
void AppendWorker(std::string* text, const Membership::WorkerView& worker) {
  absl::StrAppend(text, "{\"worker\":", worker.id.value(), ",\"rank\":", worker.rank,
                  ",\"pid\":", worker.pid, ",\"state\":\"", lifecycle::StateName(worker.state),
                  "\"}");
}

void AppendHost(std::string* text, const Membership::HostView& host) {
  absl::StrAppend(text, "{\"host\":", text::JsonString(host.host.host),
                  ",\"slots\":", host.host.slots,
                  ",\"machine\":", text::JsonString(host.host.machine),
                  ",\"attached\":", host.attached ? "true" : "false",
                  ",\"condition\":", text::JsonString(host.condition), ",\"workers\":[",
                  absl::StrJoin(host.workers, ",", AppendWorker), "]}");
}

}  // namespace

std::string JobJson(absl::string_view job_id, const Membership::View& view) {
  return absl::StrCat(
      "{\"job\":", text::JsonString(job_id), ",\"state\":\"", lifecycle::StateName(view.state),
      "\",\"world\":", view.epoch.value(), ",\"size\":", view.size,
      ",\"min_np\":", view.min_workers, ",\"max_np\":", view.max_workers,
      ",\"explanation\":", text::JsonString(view.explanation), ",\"failures\":", view.failures,
      ",\"failures_left\":", view.failures_left, ",\"commit\":", view.commit,
      ",\"checkpoint\":", view.checkpoint, ",\"lost_steps\":", view.lost_steps,
      ",\"lost_seconds\":", absl::ToDoubleSeconds(view.lost_time), ",\"hosts\":[",
      absl::StrJoin(view.hosts, ",", AppendHost), "]}");
}

}  // namespace hvd::rendezvous::reporting
