#include "rendezvous/membership/membership.h"

#include <algorithm>
#include <utility>

#include "rendezvous/membership/membership_state.h"
#include "rendezvous/membership/phrases.h"

namespace hvd {

Membership::State::State(JobSpec job_spec, absl::Time now)
    : spec(std::move(job_spec)), start_deadline(now + spec.start_timeout), rounds(0) {
  for (const HostSlots& slots : spec.expected_hosts) {
    Host host;
    host.slots = slots;
    host.expected = true;
    hosts.push_back(host);
  }
}

Membership::State::Worker* Membership::State::Find(WorkerId id) {
  for (Worker& worker : workers) {
    if (worker.id == id) return &worker;
  }
  return nullptr;
}

std::string Membership::State::Name(const Worker& worker) const {
  return RankOnHost(worker.place.rank, HostOf(worker).slots.host);
}

Membership::Membership(JobSpec spec, absl::Time now)
    : state_(std::make_unique<State>(std::move(spec), now)) {}

Membership::~Membership() = default;

std::vector<Effect> Membership::Apply(const Event& event, absl::Time now) {
  std::visit([this, now](const auto& e) { state_->On(e, now); }, event);
  // After the event, so that what comes just in time for a late tick still counts.
  state_->CheckDeadlines(now);
  return std::exchange(state_->effects, {});
}

absl::Time Membership::NextDeadline() const {
  if (state_->finished) return absl::InfiniteFuture();
  if (state_->verdict.has_value()) return state_->finish_deadline;
  if (!state_->started) return state_->start_deadline;
  return state_->settle_deadline;
}

std::string Membership::Explain() const { return state_->Explain(); }

Membership::View Membership::Describe() const { return state_->Describe(); }

}  // namespace hvd
