// Handling of stalls: samples the missing ranks, reports the stall to users, and at the time limit
// evicts those ranks (elastic jobs) or ends the job (static jobs).
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

// The time for an agent to send a worker's sample.
constexpr absl::Duration kSampleTime = absl::Seconds(2);
// The number of ranks that are described in one line; for further ranks only the numbers are
// listed.
constexpr size_t kMostDescribed = 4;
// The maximum number of sampled ranks per stall, so that a job of thousands does not collect all
// stacks.
constexpr size_t kMostSampled = 16;

std::vector<int> MissingRanks(const StallReported& report) {
  std::set<int> ranks;
  for (const StalledOperations& operations : report.waiting) {
    ranks.insert(operations.missing.begin(), operations.missing.end());
  }
  return {ranks.begin(), ranks.end()};
}

std::string Text(absl::Duration waited) {
  const absl::Duration unit = waited < absl::Seconds(1) ? absl::Milliseconds(1) : absl::Seconds(1);
  return text::DurationText(absl::Trunc(waited, unit));
}

}  // namespace

void Membership::State::On(const StallReported& event, absl::Time now) {
  const Worker* worker = workers.Find(event.worker.id);
  absl::Status status = CheckSpeaker(event.worker, worker);
  if (status.ok()) status = CheckMember(event.worker, *worker, event.epoch);
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
  for (const int rank : MissingRanks(event)) {
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

absl::Time Membership::State::NextStallDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Stall& stall : epochs.stalls) next = std::min(next, stall.deadline);
  return next;
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
  if (!stall.report.give_up) return Note(Notice::Kind::kStalled, Explain(stall));
  elastic() ? EvictStalled(stall, now) : FailForStall(stall, now);
}

// "Stalled for 1m in allreduce 'a' and 3 more, waiting for rank 1 on host b, which is at ..."
std::string Membership::State::Explain(const Stall& stall) const {
  std::vector<std::string> parts;
  for (const StalledOperations& operations : stall.report.waiting) {
    std::vector<std::string> described;
    std::vector<int> others;
    for (const int rank : operations.missing) {
      if (described.size() < kMostDescribed) {
        described.push_back(Describe(rank, stall));
      } else {
        others.push_back(rank);
      }
    }
    if (!others.empty()) described.push_back(phrases::Ranks(others));
    parts.push_back(absl::StrCat("in ", phrases::OneLine(operations.what), ", waiting for ",
                                 absl::StrJoin(described, ", and for ")));
  }
  return absl::StrCat("Stalled for ", Text(stall.report.waited), " ", absl::StrJoin(parts, "; "));
}

std::string Membership::State::Describe(int rank, const Stall& stall) const {
  const WorldMember& member = epochs.world->members[rank];
  const auto sample = stall.samples.find(member.worker.id);
  const std::string doing =
      sample == stall.samples.end() ? "" : absl::StrCat(", which ", sample->second.doing);
  return phrases::RankOnHost(rank, member.host) + doing;
}

// Evicts the missing ranks. The other members form the next world, with replacements.
void Membership::State::EvictStalled(const Stall& stall, absl::Time now) {
  for (const int rank : MissingRanks(stall.report)) {
    Worker* worker = workers.Find(epochs.world->members[rank].worker.id);
    if (!worker->life.member() || worker->life.gone() || worker->life.stopped()) continue;
    const auto sample = stall.samples.find(worker->id);
    const std::string doing =
        sample == stall.samples.end() ? "" : absl::StrCat("; it ", sample->second.doing);
    const std::string meaning =
        absl::StrCat("stalled: the others waited for ", Text(stall.report.waited), " for it in ",
                     phrases::OneLine(stall.report.waiting.front().what), doing);
    Evict(worker, absl::StrCat(Name(*worker), " ", meaning), meaning, now);
    if (verdict.has_value()) return;
  }
}

void Membership::State::FailForStall(const Stall& stall, absl::Time now) {
  Verdict failure;
  failure.exit_code = 1;
  failure.rank = MissingRanks(stall.report).front();
  failure.host = epochs.world->members[failure.rank].host;
  failure.exit_meaning = "stalled";
  failure.summary = Explain(stall);
  Conclude(std::move(failure), spec.failure_grace, now);
}

}  // namespace hvd::rendezvous::membership
