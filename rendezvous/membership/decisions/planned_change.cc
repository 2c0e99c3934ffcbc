#include "rendezvous/membership/decisions/planned_change.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership::decisions {

std::string WantedChange(const policy::JobSpec& spec, const Standing& standing, absl::Time now) {
  std::vector<std::string> leaving_hosts, resting_hosts, shrunk_hosts;
  int staying = 0, ready = 0, on_their_way = 0;
  absl::Time first_ready = absl::InfiniteFuture(), patience_ends = absl::InfiniteFuture();
  for (const Worker& worker : standing.workers()) {
    if (worker.IsSurvivor() && !standing.IsLeaving(worker)) ++staying;
    if (worker.IsSurvivor() && standing.IsLeaving(worker)) {
      const Host& host = standing.HostOf(worker);
      auto& of_its_kind = host.drain.has_value() ? leaving_hosts
                          : host.IsResting()     ? resting_hosts
                                                 : shrunk_hosts;
      of_its_kind.push_back(host.slots.host);
      const std::optional<Drain>& drain = host.drain;
      patience_ends =
          std::min(patience_ends, drain.has_value() ? drain->PatienceEnds() : absl::InfinitePast());
    }
    if (standing.IsReadyNewcomer(worker)) {
      ++ready;
      first_ready = std::min(first_ready, worker.ready_since);
    } else if (standing.IsLive(worker) && !worker.life.member()) {
      ++on_their_way;
    }
  }
  const bool some_leave = !leaving_hosts.empty() || !resting_hosts.empty() || !shrunk_hosts.empty();
  if (staying == 0 && !some_leave) return "";
  for (std::vector<std::string>* some : {&leaving_hosts, &resting_hosts, &shrunk_hosts}) {
    some->erase(std::unique(some->begin(), some->end()), some->end());
  }
  // If too few workers would remain, they wait for a replacement.
  const bool go = staying + ready >= spec.min_workers || now >= patience_ends;
  if (some_leave && go) {
    if (!leaving_hosts.empty()) return absl::StrCat(phrases::Hosts(leaving_hosts), " to leave");
    if (!resting_hosts.empty()) return absl::StrCat(phrases::Hosts(resting_hosts), " to rest");
    return absl::StrCat("fewer slots on ", phrases::Hosts(shrunk_hosts));
  }
  const int room = spec.max_workers - staying;
  if (room < 0 && !standing.IsFinishing()) {
    return absl::StrCat("at most ", phrases::Count(spec.max_workers, "worker"), " from now on");
  }
  if (ready == 0 || room <= 0 || standing.IsFinishing()) return "";
  const bool complete = ready >= room || on_their_way == 0;
  if (!complete && now < first_ready + spec.elastic->join_delay) return "";
  return absl::StrCat(phrases::Count(std::min(ready, room), "worker"), " to join");
}

absl::Time NextChange(const policy::JobSpec& spec, const Standing& standing, absl::Time now) {
  const Epochs& epochs = standing.epochs();
  if (epochs.changing.has_value() || standing.ComingTogether() || epochs.current == Epoch(0))
    return absl::InfiniteFuture();
  absl::Time next = absl::InfiniteFuture();
  for (const Worker& worker : standing.workers()) {
    if (standing.IsReadyNewcomer(worker)) {
      next = std::min(next, worker.ready_since + spec.elastic->join_delay);
    }
    const std::optional<Drain>& drain = standing.HostOf(worker).drain;
    if (worker.IsSurvivor() && drain.has_value()) {
      next = std::min(next, drain->PatienceEnds());
    }
  }
  return next > now ? next : absl::InfiniteFuture();
}

}  // namespace hvd::rendezvous::membership::decisions
