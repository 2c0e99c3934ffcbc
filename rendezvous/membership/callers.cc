#include "rendezvous/membership/callers.h"

#include "absl/strings/str_cat.h"

namespace hvd::rendezvous::membership {

absl::Status OverError(const Verdict& verdict) {
  return absl::FailedPreconditionError(absl::StrCat("the job is over: ", verdict.summary));
}

absl::Status CheckSpeaker(const Parts& parts, const WorkerKey& key, const Worker* worker) {
  // Workers that are gone are forgotten, but their processes may not know it.
  if (worker == nullptr && key.id.value() > 0 && key.id.value() <= parts.workers.last_id) {
    return absl::NotFoundError(absl::StrCat(
        "worker ", key.id.value(),
        " is no longer in the job: it was replaced while its host was cut off, or has exited"));
  }
  if (worker == nullptr) {
    return absl::NotFoundError(absl::StrCat("this job has no worker ", key.id.value()));
  }
  if (parts.verdict.has_value()) return OverError(*parts.verdict);
  if (worker->life.gone()) {
    return absl::FailedPreconditionError(absl::StrCat(parts.Name(*worker), " has exited"));
  }
  if (worker->superseded.count(key.incarnation) > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("a newer process of ", parts.Name(*worker), " has replaced this one"));
  }
  return absl::OkStatus();
}

absl::Status CheckMember(const Parts& parts, const WorkerKey& key, const Worker& worker,
                         Epoch wanted) {
  const bool is_member =
      parts.epochs.current > Epoch(0) && wanted == parts.epochs.current &&
      worker.last_world == parts.epochs.current && key.incarnation == worker.incarnation &&
      parts.epochs.world->members[worker.place.rank].worker.incarnation == key.incarnation;
  if (is_member) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(parts.Name(worker), " is not in world ",
                                                    wanted.value(), " (the current world is ",
                                                    parts.epochs.current.value(), ")"));
}

bool WasLast(const Parts& parts, const ProgressReported& event, const Worker& worker) {
  const bool has_ended =
      parts.verdict.has_value() || (parts.epochs.broken.has_value() && !parts.standing.SomeGoOn());
  return has_ended && !worker.life.gone() &&
         CheckMember(parts, event.worker, worker, event.epoch).ok();
}

}  // namespace hvd::rendezvous::membership
