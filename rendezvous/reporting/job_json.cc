#include "rendezvous/reporting/job_json.h"

#include <optional>

#include "absl/time/time.h"
#include "base/text/json_object.h"
#include "rendezvous/reporting/checkpoint_text.h"

namespace hvd::rendezvous::reporting {
namespace {

using membership::Membership;
using text::JsonObject;

JsonObject WorkerObject(const Membership::WorkerView& worker) {
  return JsonObject()
      .AddNumber("worker", worker.id.value())
      .AddNumber("rank", worker.rank)
      .AddNumber("pid", worker.pid)
      .AddText("state", lifecycle::StateName(worker.state));
}

JsonObject HostObject(const Membership::HostView& host) {
  return JsonObject()
      .AddText("host", host.host.host)
      .AddNumber("slots", host.host.slots)
      .AddText("machine", host.host.machine)
      .AddBool("attached", host.attached)
      .AddText("condition", host.condition)
      .AddList("workers", host.workers, WorkerObject);
}

}  // namespace

std::string JobJson(absl::string_view job_id, const Membership::View& view) {
  return JsonObject()
      .AddText("job", job_id)
      .AddText("state", lifecycle::StateName(view.state))
      .AddNumber("world", view.epoch.value())
      .AddNumber("size", view.size)
      .AddNumber("min_np", view.min_workers)
      .AddNumber("max_np", view.max_workers)
      .AddText("explanation", view.explanation)
      .AddNumber("failures", view.failures)
      .AddNumber("failures_left",
                 view.elastic ? std::optional<int>(view.failures_left) : std::nullopt)
      .AddNumber("commit", view.commit)
      .AddNumber("checkpoint_commit", view.checkpoint)
      .AddText("checkpoint", CheckpointText(view))
      .AddNumber("lost_steps", view.lost_steps)
      .AddNumber("lost_seconds", absl::ToDoubleSeconds(view.lost_time))
      .AddList("hosts", view.hosts, HostObject)
      .Text();
}

}  // namespace hvd::rendezvous::reporting
