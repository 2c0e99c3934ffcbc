#include "rehearsal/campaign_run.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/lifecycle/states.h"

namespace hvd::rehearsal {
namespace {

using rendezvous::lifecycle::JobState;
using rendezvous::lifecycle::WorkerState;

// What the survivors need to form a world and to go on, apart from the script's own time for a
// step. On a busy machine: measured are 0.2 s (docs/reliability.md).
constexpr absl::Duration kRecoveryTime = absl::Seconds(5);
// The time for a checkpoint to be written again.
constexpr absl::Duration kCheckpointTime = absl::Minutes(1);

std::string WhenText(const Fault& fault) {
  if (fault.step.has_value()) return absl::StrCat("commit ", *fault.step);
  return text::DurationText(*fault.time);
}

std::string TargetText(const Fault& fault) {
  if (fault.kind == FaultKind::kFullDisk) return "rank 0";
  if (fault.rank.has_value()) return absl::StrCat("rank ", *fault.rank);
  const bool is_about_host = FactsOf(fault.kind).is_about_host;
  if (!fault.host.empty()) return absl::StrCat(is_about_host ? "" : "a rank on ", fault.host);
  return is_about_host ? "a host" : "a rank";
}

// The ranks of the newest world on a host.
int RanksOn(const CampaignRun::View& view, const std::string& name) {
  int ranks = 0;
  for (const auto& host : view.hosts) {
    if (host.host.host != name) continue;
    ranks +=
        static_cast<int>(std::count_if(host.workers.begin(), host.workers.end(), [](const auto& w) {
          return w.state == WorkerState::kRunning;
        }));
  }
  return ranks;
}

std::string Ranks(int count) { return absl::StrCat(count, count == 1 ? " rank" : " ranks"); }

}  // namespace

absl::string_view NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAsPromised:
      return "as promised";
    case Verdict::kNotAsPromised:
      return "NOT as promised";
    case Verdict::kNotDone:
      return "NOT done";
  }
  return "";
}

CampaignRun::CampaignRun(Campaign campaign, absl::Duration grace,
                         settings::OnCorruption on_corruption, absl::Time now)
    : campaign_(std::move(campaign)),
      grace_(grace),
      on_corruption_(on_corruption),
      start_(now),
      is_waiting_(campaign_.faults.size(), true),
      waiting_(campaign_.faults.size()) {
  for (const Fault& fault : campaign_.faults) {
    rows_.push_back({fault.kind, TargetText(fault), WhenText(fault), ExpectedText(fault),
                     "the job ended before", std::nullopt, std::nullopt, Verdict::kNotDone});
  }
}

Expectation CampaignRun::ExpectationOf(const Fault& fault) const {
  const bool evicts = on_corruption_ == settings::OnCorruption::kEvict;
  if (fault.kind == FaultKind::kWrongGradientValue && evicts) return Expectation::kNextWorld;
  const bool continues =
      fault.kind == FaultKind::kStop && fault.lasts > absl::ZeroDuration();  // SIGCONT follows
  return continues ? Expectation::kGoesOn : FactsOf(fault.kind).expectation;
}

std::string CampaignRun::ExpectedText(const Fault& fault) const {
  if (fault.kind == FaultKind::kWrongGradientValue) {
    switch (on_corruption_) {
      case settings::OnCorruption::kOff:
        return "not noticed: --on-corruption is off";
      case settings::OnCorruption::kWarn:
        return "a line names the rank; training goes on";
      case settings::OnCorruption::kEvict:
        return "a next world, from the commit before it";
      case settings::OnCorruption::kEnd:
        break;  // CheckCampaign refuses it
    }
  }
  if (ExpectationOf(fault) == FactsOf(fault.kind).expectation)
    return std::string(FactsOf(fault.kind).expected);
  return "training goes on in the same world";
}

void CampaignRun::Observe(const Notice& notice, absl::Time when) {
  using Kind = Notice::Kind;
  if (notice.kind == Kind::kWorldBegan) began_with_[notice.epoch.value()] = notice.commit;
  if (!active_.has_value()) return;
  Active& active = *active_;
  const bool is_its_host = notice.host == active.order.host;
  switch (notice.kind) {
    case Kind::kWorldBegan:
      if (notice.epoch > active.epoch && notice.commit < active.commit)
        active.lost_commits = std::max(active.lost_commits, active.commit - notice.commit);
      return;
    case Kind::kEpochBroken:
      active.broken = notice.epoch;
      active.why_broken = notice.text;
      return;
    case Kind::kWorkerFailed:
      active.has_failed |=
          active.order.worker != WorkerId(0) && notice.worker == active.order.worker;
      return;
    case Kind::kHostLost:
      active.has_failed |= is_its_host && active.order.worker == WorkerId(0);
      return;
    case Kind::kHostDraining:
      active.is_draining |= is_its_host;
      return;
    case Kind::kHostLeft:
      active.has_left |= is_its_host;
      return;
    case Kind::kDrainOverran:
      active.has_overrun |= is_its_host;
      return;
    case Kind::kCheckpointFailed:
      active.disk_failure = notice.text;
      return;
    default:
      return;  // says nothing of a fault
  }
}

void CampaignRun::Observe(const View& view, absl::Time now) {
  if (view.has_begun) trains_since_ = std::min(trains_since_, now);
  NoteCommit(view, now);
  if (active_.has_value()) Judge(view, now);
}

void CampaignRun::NoteCommit(const View& view, absl::Time now) {
  const bool is_new = view.commit != newest_commit_ || view.epoch != newest_epoch_;
  if (!is_new) return;
  const absl::Time at = view.committed_at == absl::InfinitePast() ? now : view.committed_at;
  // A pause for another world is no step of the script's.
  if (view.epoch == newest_epoch_ && committed_at_ != absl::InfinitePast() &&
      !active_.has_value()) {
    longest_gap_ = std::max(longest_gap_, at - committed_at_);
  }
  committed_at_ = at;
  newest_commit_ = view.commit;
  newest_epoch_ = view.epoch;
}

bool CampaignRun::HasCommitIn(const View& view, Epoch after) const {
  const auto began = began_with_.find(view.epoch.value());
  return view.epoch > after && view.has_begun && began != began_with_.end() &&
         view.commit > began->second;
}

bool CampaignRun::IsSteady(const View& view) const {
  return view.state == JobState::kRunning && HasCommitIn(view, Epoch(0));
}

bool CampaignRun::IsDue(const Fault& fault, const View& view, absl::Time now) const {
  if (fault.step.has_value()) return view.commit >= *fault.step;
  return now >= trains_since_ + *fault.time;
}

std::optional<CampaignRun::Target> CampaignRun::FindTarget(size_t index, const View& view,
                                                           std::string* problem) const {
  const Fault& fault = campaign_.faults[index];
  const KindFacts& facts = FactsOf(fault.kind);
  const std::optional<int> rank =
      fault.kind == FaultKind::kFullDisk ? std::make_optional(0) : fault.rank;
  std::vector<Target> found;
  for (const auto& host : view.hosts) {
    if (!host.attached || (!fault.host.empty() && host.host.host != fault.host)) continue;
    bool has_ranks = false;
    for (const auto& worker : host.workers) {
      if (worker.state != WorkerState::kRunning || worker.rank < 0) continue;
      has_ranks = true;
      if (!facts.is_about_host && rank.value_or(worker.rank) == worker.rank)
        found.push_back({host.host.host, worker.id, worker.rank});
    }
    if (facts.is_about_host && has_ranks) found.push_back({host.host.host, WorkerId(0), -1});
  }
  if (found.empty()) return std::nullopt;
  const Target target = found[Draw(campaign_.seed, 2 * index + 1, found.size())];
  *problem = WhyImpossible(fault, target, view);
  return target;
}

std::string CampaignRun::WhyImpossible(const Fault& fault, const Target& target,
                                       const View& view) const {
  const KindFacts& facts = FactsOf(fault.kind);
  const int others = view.size - RanksOn(view, target.host);
  if (facts.needs_hosts && others <= 0) return "all ranks were on one host";
  if (fault.kind == FaultKind::kPreemption && others < view.min_workers) {
    return absl::StrCat("the other hosts had ", Ranks(others), ", fewer than --min-np ",
                        view.min_workers);
  }
  if (fault.kind == FaultKind::kFullDisk && view.checkpoint_place.empty())
    return "the job wrote no checkpoints: its state has no checkpoint_dir";
  return "";
}

absl::Duration CampaignRun::LimitOf(const Fault& fault, const Target& target,
                                    const View& view) const {
  if (fault.limit.has_value()) return *fault.limit;
  const Expectation expectation = ExpectationOf(fault);
  absl::Duration limit = kRecoveryTime + 2 * longest_gap_ + fault.lasts;
  if (expectation == Expectation::kNextWorld) limit += FactsOf(fault.kind).noticed_after;
  if (expectation == Expectation::kLeavesWell)
    limit += fault.grace > absl::ZeroDuration() ? fault.grace : grace_;
  if (expectation == Expectation::kDiskRecovers) limit += kCheckpointTime;
  const int lost = FactsOf(fault.kind).is_about_host ? RanksOn(view, target.host) : 1;
  const bool must_wait =
      expectation == Expectation::kNextWorld && view.size - lost < view.min_workers;
  // For replacements, which start as the first workers did.
  return must_wait ? limit + (trains_since_ - start_) : limit;
}

std::optional<Order> CampaignRun::Next(const View& view, absl::Time now) {
  if (active_.has_value() || !IsSteady(view)) return std::nullopt;
  for (size_t i = 0; i < campaign_.faults.size(); ++i) {
    const Fault& fault = campaign_.faults[i];
    if (!is_waiting_[i] || !IsDue(fault, view, now)) continue;
    std::string problem;
    const std::optional<Target> target = FindTarget(i, view, &problem);
    if (!target.has_value()) {  // now; e.g. a rank may be there again
      rows_[i].happened = absl::StrCat(TargetText(fault), " was not there when it was due");
      continue;
    }
    if (!problem.empty()) {  // now; e.g. a host may come back
      rows_[i].happened = problem;
      continue;
    }
    is_waiting_[i] = false;
    --waiting_;
    Active active;
    active.index = i;
    active.ordered_at = now;
    active.epoch = view.epoch;
    active.commit = view.commit;
    active.checkpoint = view.checkpoint;
    active.limit = LimitOf(fault, *target, view);
    Row& row = rows_[i];
    row.target = target->rank >= 0 ? absl::StrCat("rank ", target->rank, " on ", target->host)
                                   : target->host;
    row.when = absl::StrCat("commit ", view.commit, ", ", text::DurationText(now - trains_since_));
    row.limit = active.limit;
    active.order = {
        i + 1,
        fault.kind,
        target->host,
        target->worker,
        fault.lasts,
        fault.delay,
        fault.grace,
        absl::StrCat(FactsOf(fault.kind).name, " of ", row.target, " after commit ", view.commit)};
    active_ = std::move(active);
    return active_->order;
  }
  return std::nullopt;
}

void CampaignRun::Answer(uint64_t order, const std::string& problem, absl::Time now) {
  if (!active_.has_value() || active_->order.id != order) return;
  if (!problem.empty()) return Conclude(Verdict::kNotDone, problem);
  if (!active_->done_at.has_value()) active_->done_at = now;
}

// What the agent does itself has happened by the time at which it was ordered; a worker does it
// later, at an occasion.
absl::Time CampaignRun::BeganAt(const Active& active) const {
  switch (active.order.kind) {
    case FaultKind::kException:
    case FaultKind::kCutLink:
    case FaultKind::kWrongGradientValue:
    case FaultKind::kSlowRank:
    case FaultKind::kSlowLink:
      return active.done_at.value_or(active.ordered_at);
    case FaultKind::kKill:
    case FaultKind::kStop:
    case FaultKind::kFullDisk:
    case FaultKind::kPreemption:
    case FaultKind::kLostHost:
      return active.ordered_at;
  }
  return active.ordered_at;
}

absl::Time CampaignRun::EndOf(const Active& active) const {
  const Fault& fault = campaign_.faults[active.index];
  return (fault.lasts > absl::ZeroDuration() ? active.ordered_at : BeganAt(active)) + fault.lasts;
}

void CampaignRun::Conclude(Verdict verdict, const std::string& happened,
                           std::optional<absl::Time> recovered_at) {
  Row& row = rows_[active_->index];
  row.happened = happened;
  row.verdict = verdict;
  if (recovered_at.has_value())
    row.took = std::max(*recovered_at - BeganAt(*active_), absl::ZeroDuration());
  // A late commit is none in time, even if nobody looked meanwhile.
  if (verdict == Verdict::kAsPromised && row.took.has_value() && *row.took > active_->limit)
    row.verdict = Verdict::kNotAsPromised;
  active_.reset();
}

void CampaignRun::Judge(const View& view, absl::Time now) {
  bool is_judged = false;
  switch (ExpectationOf(campaign_.faults[active_->index])) {
    case Expectation::kNextWorld:
      is_judged = JudgeNextWorld(view);
      break;
    case Expectation::kGoesOn:
      is_judged = JudgeGoesOn(view);
      break;
    case Expectation::kLeavesWell:
      is_judged = JudgeLeavesWell(view);
      break;
    case Expectation::kDiskRecovers:
      is_judged = JudgeDisk(view);
      break;
  }
  if (is_judged || now <= BeganAt(*active_) + active_->limit) return;
  const std::string limit = text::DurationText(active_->limit);
  const bool was_done = active_->done_at.has_value() || active_->has_failed;
  if (!was_done) return Conclude(Verdict::kNotDone, absl::StrCat("it did not happen in ", limit));
  Conclude(Verdict::kNotAsPromised,
           absl::StrCat("no such end in ", limit, ": ",
                        view.explanation.empty() ? "the job trains" : view.explanation));
}

bool CampaignRun::JudgeNextWorld(const View& view) {
  const Active& active = *active_;
  // Without a majority all ranks go back, and none fails.
  const bool needs_failure = active.order.kind != FaultKind::kCutLink &&
                             active.order.kind != FaultKind::kWrongGradientValue;
  const bool has_happened = needs_failure ? active.has_failed : active.done_at.has_value();
  if (!has_happened || !HasCommitIn(view, std::max(active.epoch, active.broken))) return false;
  const std::string went_on =
      absl::StrCat("world ", view.epoch.value(), " of ", Ranks(view.size), " went on from commit ",
                   began_with_.at(view.epoch.value()));
  if (active.lost_commits > 0) {
    Conclude(
        Verdict::kNotAsPromised,
        absl::StrCat(went_on, "; ", active.lost_commits, " commits that had returned were lost"),
        committed_at_);
  } else {
    Conclude(Verdict::kAsPromised, went_on, committed_at_);
  }
  return true;
}

bool CampaignRun::JudgeGoesOn(const View& view) {
  const Active& active = *active_;
  // If rank 0 has the wrong value, all ranks go back.
  const bool may_break = active.order.kind == FaultKind::kWrongGradientValue;
  if (active.broken > Epoch(0) && may_break) return JudgeNextWorld(view);
  if (active.broken > Epoch(0)) {
    Conclude(Verdict::kNotAsPromised,
             absl::StrCat("world ", active.broken.value(), " broke: ", active.why_broken));
    return true;
  }
  const bool went_on =
      active.done_at.has_value() && view.commit > active.commit && committed_at_ >= EndOf(active);
  if (!went_on) return false;
  Conclude(Verdict::kAsPromised,
           absl::StrCat("commit ", view.commit, " after it, in the same world"), committed_at_);
  return true;
}

bool CampaignRun::JudgeLeavesWell(const View& view) {
  const Active& active = *active_;
  if (active.broken > Epoch(0)) {
    Conclude(Verdict::kNotAsPromised,
             absl::StrCat("world ", active.broken.value(), " broke: ", active.why_broken));
    return true;
  }
  if (active.has_overrun) {
    Conclude(Verdict::kNotAsPromised, "the host was not drained within the grace");
    return true;
  }
  if (!active.has_left || !HasCommitIn(view, active.epoch)) return false;
  Conclude(Verdict::kAsPromised,
           absl::StrCat("the host left; world ", view.epoch.value(), " of ", Ranks(view.size),
                        " went on from commit ", began_with_.at(view.epoch.value())),
           committed_at_);
  return true;
}

bool CampaignRun::JudgeDisk(const View& view) {
  const Active& active = *active_;
  if (active.broken > Epoch(0)) {
    Conclude(Verdict::kNotAsPromised,
             absl::StrCat("world ", active.broken.value(), " broke: ", active.why_broken));
    return true;
  }
  const bool has_recovered = !active.disk_failure.empty() && view.checkpoint_failure.empty() &&
                             view.checkpoint > active.checkpoint && committed_at_ >= EndOf(active);
  if (!has_recovered) return false;
  Conclude(Verdict::kAsPromised,
           absl::StrCat("said: ", active.disk_failure, "; later a checkpoint of commit ",
                        view.checkpoint),
           committed_at_);
  return true;
}

void CampaignRun::End() {
  if (!active_.has_value()) return;
  Conclude(Verdict::kNotAsPromised, "the job ended before training had gone on");
}

size_t CampaignRun::CountAsPromised() const {
  return std::count_if(rows_.begin(), rows_.end(),
                       [](const Row& row) { return row.verdict == Verdict::kAsPromised; });
}

}  // namespace hvd::rehearsal
