// Handling of stalls: samples the missing ranks, reports the stall to users, and at the time limit
// evicts those ranks (elastic jobs) or ends the job (static jobs).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "rendezvous/membership/callers.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/membership/views/stall_text.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

// The time for an agent to send a worker's sample.
constexpr absl::Duration kSampleTime = absl::Seconds(2);
// The maximum number of sampled ranks per stall, so that a job of thousands does not collect all
// stacks.
constexpr size_t kMostSampled = 16;

}  // namespace

void Membership::State::On(const StallReported& event, absl::Time now) {
  const Worker* worker = workers.Find(event.worker.id);
  absl::Status status = CheckSpeaker(*this, event.worker, worker);
  if (status.ok()) status = CheckMember(*this, event.worker, *worker, event.epoch);
  if (status.ok() && epochs.broken.has_value()) {
    status = absl::FailedPreconditionError(absl::StrCat("the world is broken: ", *epochs.broken));
  }
  if (status.ok() && !epochs.IsSound(event)) {
    status = absl::InvalidArgumentError(
        "a stall report must name operations, and ranks of the world that they wait for");
  }
  Answer(event.call, status);
  if (!status.ok()) return;
  Stall stall;
  stall.report = event;
  stall.deadline = now + kSampleTime;
  for (const int rank : views::MissingRanks(event)) {
    const Worker* missing = workers.Find(epochs.world->members[rank].worker.id);
    const Host& host = HostOf(*missing);
    if (missing->life.gone() || !host.agent.has_value() || stall.awaited.size() == kMostSampled)
      continue;
    stall.awaited.insert(missing->id);
    effects.push_back(SampleWorkerEffect{*host.agent, host.slots.host, missing->id});
  }
  epochs.stalls.push_back(std::move(stall));
}

void Membership::State::On(const WorkerSampled& event, absl::Time now) {
  for (Stall& stall : epochs.stalls) {
    if (stall.awaited.erase(event.worker) == 0) continue;
    stall.samples[event.worker] = {phrases::OneLine(event.doing), event.stack};
  }
}

// Reports the stalls whose samples have all arrived or whose deadline has passed; drops those of
// past epochs.
void Membership::State::ReportStalls(absl::Time now) {
  for (auto next = epochs.stalls.begin(); next != epochs.stalls.end();) {
    const bool is_past = verdict.has_value() || epochs.IsPast(*next);
    if (!is_past && !next->awaited.empty() && now < next->deadline) {
      ++next;
      continue;
    }
    const Stall stall = std::move(*next);
    next = epochs.stalls.erase(next);
    if (!is_past) ReportStall(stall, now);
  }
}

void Membership::State::ReportStall(const Stall& stall, absl::Time now) {
  for (const auto& [id, sample] : stall.samples) {
    if (sample.stack.empty()) continue;
    const Worker* worker = workers.Find(id);
    Note(Notice::Kind::kStack,
         absl::StrCat("stack of ", Name(*worker), ": ", absl::StrJoin(sample.stack, " < ")),
         worker);
  }
  if (!stall.report.give_up)
    return Note(Notice::Kind::kStalled, views::StallText(stall, *epochs.world));
  if (elastic()) return EvictStalled(stall, now);
  Conclude(views::StallVerdict(stall, *epochs.world), spec.failure_grace, now);
}

// Evicts the missing ranks. The other members form the next world, with replacements.
void Membership::State::EvictStalled(const Stall& stall, absl::Time now) {
  for (const int rank : views::MissingRanks(stall.report)) {
    Worker* worker = workers.Find(epochs.world->members[rank].worker.id);
    if (!worker->life.member() || worker->life.gone() || worker->life.stopped()) continue;
    const std::string meaning = views::EvictionText(stall, worker->id);
    Evict(worker, absl::StrCat(Name(*worker), " ", meaning), meaning, now);
    if (verdict.has_value()) return;
  }
}

}  // namespace hvd::rendezvous::membership
