#include "rendezvous/membership/parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {

Parts::Parts(policy::JobSpec job_spec, absl::Time now)
    : spec(std::move(job_spec)),
      start_patience(elastic() ? std::max(spec.start_timeout, spec.elastic->elastic_timeout)
                               : spec.start_timeout),
      start_deadline(now + start_patience),
      failures(elastic() ? spec.elastic->budget : policy::FailureBudget()),
      health(elastic() ? spec.elastic->cooldown : std::nullopt) {
  for (const HostSlots& slots : spec.expected_hosts) hosts.Add(slots).expected = true;
}

int Parts::start_workers() const {
  if (spec.start_workers == 0) return spec.max_workers;
  return std::clamp(spec.start_workers - epochs.fewer_at_start, spec.min_workers, spec.max_workers);
}

int Parts::least_workers() const {
  return epochs.current == Epoch(0) ? start_workers() : spec.min_workers;
}

absl::Time Parts::WaitEnds() const {
  if (ending.has_value()) return ending->deadline;
  return epochs.together_since + spec.elastic->elastic_timeout;
}

std::string Parts::Name(const Worker& worker) const {
  const std::string& host = HostOf(worker).slots.host;
  if (elastic() && worker.last_world == Epoch(0)) {
    return absl::StrCat("worker ", worker.id.value(), " on host ", host);
  }
  return phrases::RankOnHost(worker.place.rank, host);
}

std::string Parts::Check() const {
  for (const std::string& wrong : {hosts.Check(), workers.Check(hosts), epochs.Check(workers)}) {
    if (!wrong.empty()) return wrong;
  }
  // Watches may be parked while the workers use their grace; see StopRequested.
  const bool some_wait = workers.SomeAsk() || (finished && !epochs.watches.empty());
  if (verdict.has_value() && some_wait) return "a call is parked after the verdict";
  if (finished && !verdict.has_value()) return "the job has ended without a verdict";
  if (settle_deadline != absl::InfiniteFuture() && !root_cause.HasEnd()) {
    return "a cause is awaited, and nothing has failed";
  }
  if (!elastic() && workers.SomeFail()) return "a worker of a static job said that it fails";
  if (elastic() && !workers.empty() && workers.last_id < std::prev(workers.end())->id.value()) {
    return "the newest worker is not the last";
  }
  return "";
}

}  // namespace hvd::rendezvous::membership
