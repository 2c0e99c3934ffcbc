// The machine as bytes and back.
#include <algorithm>
#include <utility>

#include "rendezvous/membership/event_archive.h"
#include "rendezvous/membership/membership_state.h"

namespace hvd::rendezvous::membership {

template <typename Archive>
void Membership::State::Keep(Archive& archive) {
  archive(last_time, hosts, workers, live, started, start_patience, start_deadline);
  archive(epoch, world, broken, rounds, watches, stalls, some_away, next_look, look_due);
  archive(failures, settle_deadline, dying_deadline, verdict, grace, finish_deadline, finished);
  archive(budget, health, listed, unlisted, last_worker_id, changing);
  archive(together_since, quorum_since, told_waiting, formed_at, formed_commit, newest_commit);
  archive(failed_world, lost_hosts, failed_starts, without_progress, last_failure);
  archive(early_exceptions);
  archive.Since(2, left, broken_at, reported_commit, committed_at, lost_steps, lost_time);
  archive.Since(2, idle_until);
}

std::string Membership::Save() const {
  ArchiveWriter writer;
  writer(*state_);
  return writer.Take();
}

absl::StatusOr<std::unique_ptr<Membership>> Membership::Load(JobSpec spec, absl::string_view saved,
                                                             const Looks& looks, uint32_t layout) {
  auto machine = std::make_unique<Membership>(std::move(spec), absl::UnixEpoch(), looks);
  State& state = *machine->state_;
  state.hosts.clear();
  ArchiveReader reader(saved, layout);
  reader(state);
  const auto hosts = static_cast<int>(state.hosts.size());
  const bool sound = std::all_of(
      state.workers.begin(), state.workers.end(),
      [hosts](const State::Worker& w) { return w.place.host >= 0 && w.place.host < hosts; });
  state.IndexHosts();
  if (!reader.complete() || !sound || state.world == nullptr)
    return absl::DataLossError("this is no state of a job");
  return machine;
}

}  // namespace hvd::rendezvous::membership
