#include "rendezvous/membership/membership.h"

#include <algorithm>
#include <utility>

#include "proto/snapshot.pb.h"
#include "rendezvous/membership/effect_fields.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/membership/views/explanation.h"
#include "rendezvous/membership/views/job_view.h"
#include "rendezvous/snapshot/fields.h"

namespace hvd::rendezvous::membership {

void Membership::State::Note(Notice::Kind kind, std::string text, const Worker* worker,
                             const Host* host) {
  // A static job's verdict contains all other information, so only these kinds are sent for it.
  const bool tells = kind == Notice::Kind::kStalled || kind == Notice::Kind::kStack ||
                     kind == Notice::Kind::kRestarted || kind == Notice::Kind::kHostBack ||
                     kind == Notice::Kind::kJobEnding;
  if (!elastic() && !tells) return;
  Notice notice;
  notice.kind = kind;
  notice.epoch = epochs.current;
  notice.text = std::move(text);
  if (worker != nullptr) {
    notice.worker = worker->id;
    const bool was_member = worker->last_world > Epoch(0);
    notice.rank = was_member ? worker->place.rank : -1;
    // At the time of its exit the other workers may already be in a later world.
    if (kind == Notice::Kind::kWorkerFailed && was_member) notice.epoch = worker->last_world;
    notice.host = HostOf(*worker).slots.host;
  }
  if (host != nullptr) notice.host = host->slots.host;
  if (kind == Notice::Kind::kWorldFormed) {
    notice.size = static_cast<int>(epochs.world->members.size());
    notice.commit = CommitNumber(epochs.formed_commit);
  }
  effects.push_back(std::move(notice));
}

Membership::Membership(policy::JobSpec spec, absl::Time now, const ReconcileThrottle& throttle)
    : state_(std::make_unique<State>(std::move(spec), now, throttle)) {}

Membership::~Membership() = default;

std::vector<Effect> Membership::Apply(const Event& event, absl::Time now) {
  // A tick before the deadline changes nothing.
  if (std::holds_alternative<Tick>(event) && now < NextDeadline()) return {};
  // A watch changes nothing, because it is not in the journal (see Job::Record): what is due by now
  // waits for the tick, which is. Otherwise a world could form that a replay does not form.
  if (const auto* watch = std::get_if<WatchRequested>(&event)) {
    state_->On(*watch, now);
    return std::exchange(state_->effects, {});
  }
  state_->last_time = now;
  std::visit([this, now](const auto& e) { state_->On(e, now); }, event);
  // Deadlines are checked after the event is applied: if an event arrives before a late tick, it
  // counts as in time.
  state_->CheckDeadlines(now);
  state_->ReportStalls(now);
  state_->ReconcileInTime(now);
  return std::exchange(state_->effects, {});
}

absl::Time Membership::NextDeadline() const {
  if (state_->finished) return absl::InfiniteFuture();
  if (state_->verdict.has_value()) return state_->finish_deadline;
  absl::Time next = state_->settle_deadline;
  if (state_->hosts.some_away) {
    for (const Host& host : state_->hosts) {
      if (host.away.has_value()) next = std::min(next, host.away_until);
    }
  }
  if (!state_->started) next = std::min(next, state_->start_deadline);
  // Reconcile handles the elastic deadlines, so they can wait for the throttled run.
  if (state_->reconcile_due) return std::min(next, state_->next_reconcile);
  if (!state_->started) return next;
  return std::min({next, state_->NextElasticDeadline(), state_->epochs.NextStallDeadline()});
}

WorldPtr Membership::world() const { return state_->epochs.world; }

std::string Membership::Explain() const { return views::Explain(*state_); }

std::optional<Verdict> Membership::Ended() const {
  return state_->finished ? state_->verdict : std::nullopt;
}

std::string Membership::Check() const { return state_->Check(); }

Membership::View Membership::Describe() const { return views::Describe(*state_); }

std::vector<Membership::AttachedHost> Membership::Attached() const {
  return views::Attached(*state_);
}

pb::journal::MembershipState Membership::Save() const {
  pb::journal::MembershipState saved;
  snapshot::FieldWriter writer(&saved);
  state_->Keep(writer);
  return saved;
}

absl::StatusOr<std::unique_ptr<Membership>> Membership::Load(
    policy::JobSpec spec, const pb::journal::MembershipState& saved,
    const ReconcileThrottle& throttle) {
  if (!saved.has_last_time_ns()) return absl::DataLossError("this is no state of a job");
  if (!snapshot::HasNumbersInRange(saved)) return absl::DataLossError("a number is too large");
  auto machine = std::make_unique<Membership>(std::move(spec), absl::UnixEpoch(), throttle);
  State& state = *machine->state_;
  snapshot::FieldReader reader(saved);
  state.Keep(reader);
  if (const std::string wrong = state.Check(); !wrong.empty()) return absl::DataLossError(wrong);
  return machine;
}

}  // namespace hvd::rendezvous::membership
