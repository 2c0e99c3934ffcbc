// The machine as bytes and back.
#include <utility>

#include "rendezvous/membership/event_archive.h"
#include "rendezvous/membership/membership_state.h"

namespace hvd::rendezvous::membership {

template <typename Archive>
void Membership::State::Keep(Archive& archive) {
  Epochs& e = epochs;
  archive(last_time, hosts, workers, workers.live, started, start_patience, start_deadline);
  archive(e.current, e.world, e.broken, e.rounds, e.watches, e.stalls);
  archive(hosts.some_away, next_reconcile, reconcile_due);
  archive(failures, settle_deadline, dying_deadline, verdict, grace, finish_deadline, finished);
  archive(budget, health, hosts.listed, hosts.unlisted, workers.last_id, e.changing);
  archive(e.together_since, e.quorum_since, e.told_waiting, e.formed_at, e.formed_commit);
  archive(e.newest_commit, e.failed_world, e.lost_hosts, e.failed_starts, e.without_progress);
  archive(last_failure, early_exceptions);
  archive.Since(2, e.left, e.broken_at, e.reported_commit, e.committed_at);
  archive.Since(2, e.lost_steps, e.lost_time, e.idle_until);
}

std::string Membership::Save() const {
  ArchiveWriter writer;
  writer(*state_);
  return writer.Take();
}

absl::StatusOr<std::unique_ptr<Membership>> Membership::Load(policy::JobSpec spec,
                                                             absl::string_view saved,
                                                             const ReconcileThrottle& throttle,
                                                             uint32_t layout) {
  auto machine = std::make_unique<Membership>(std::move(spec), absl::UnixEpoch(), throttle);
  State& state = *machine->state_;
  ArchiveReader reader(saved, layout);
  reader(state);
  const bool sound = reader.complete() && state.epochs.world != nullptr;
  if (!sound || !state.workers.HaveHosts(state.hosts))
    return absl::DataLossError("this is no state of a job");
  return machine;
}

}  // namespace hvd::rendezvous::membership
