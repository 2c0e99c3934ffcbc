// Hosts of elastic jobs: joining, draining, leaving and loss.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/membership/decisions/copy_plan.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

// How long an agent of a host that was removed from the list is turned away.
constexpr absl::Duration kOnItsWay = absl::Hours(1);

}  // namespace

// A new agent of an elastic job. If its host has another agent that is awaited after a restart,
// that agent's workers are lost first: two agents never run workers of one host.
void Membership::State::TakeInHost(const HostJoined& event, absl::Time now) {
  const std::string& name = event.host.host;
  if (ending.has_value()) return EndHost(event.agent, name, spec.failure_grace);
  // The host was removed from the list while its agent was starting, or away. It is turned away,
  // unless it brings the newest commit: then it leaves like a drained host.
  const bool is_unlisted = !hosts.only_offered && hosts.unlisted.count(name) > 0;
  // A host that is awaited after a restart may have that commit, too, but may also be lost.
  const bool is_held = std::any_of(hosts.begin(), hosts.end(), [&](const Host& other) {
    return other.agent.has_value() && !other.ended && other.commit >= event.commit;
  });
  const bool brings_commit = event.commit > 0 && !is_held;
  if (is_unlisted && !brings_commit) {
    EndHost(event.agent, name, spec.failure_grace);
    return;
  }
  Host* host = hosts.Find(name);
  const bool known = host != nullptr;
  if (!known) host = &hosts.Add(event.host);
  if (host->agent.has_value()) return;
  if (host->away.has_value()) {
    LoseAwayHost(host, "another agent has taken its place", now);
    if (verdict.has_value()) return On(HostJoined(event), now);
  }
  host->slots = event.host;
  host->withheld = 0;
  host->agent = event.agent;
  host->discovered = hosts.listed.count(name) > 0;
  host->ended = false;
  host->drain.reset();
  host->has_left = false;
  host->away_until = absl::InfinitePast();
  host->commit_address = event.commit_address;
  host->copies_from.clear();
  host->has_copy = false;
  host->commit = event.commit;
  if (known) MarkReachable(*host, now);
  StopStrangers(*host, event);
  if (!hosts.IsOffered(name)) return Hold(host, /*took_part=*/false);
  TakeIn(host);
  if (is_unlisted)
    StartDrain(host, spec.elastic->drain_grace, "it is not listed any more", true, now);
}

// Stops the workers that the agent runs but the job has given up, such as those of a host that was
// lost and has returned.
void Membership::State::StopStrangers(const Host& host, const HostJoined& event) {
  std::vector<WorkerId> strangers;
  for (const WorkerId id : event.known_workers) {
    const Worker* worker = workers.Find(id);
    if (worker == nullptr || worker->life.gone()) strangers.push_back(id);
  }
  if (strangers.empty()) return;
  effects.push_back(
      StopWorkersEffect{event.agent, host.slots.host, strangers, absl::ZeroDuration()});
}

// Applies a complete list of hosts: drains the hosts that are no longer listed, updates slots, and
// cancels drains of hosts that are listed again (only drains that an earlier list had caused).
void Membership::State::On(const HostsDiscovered& event, absl::Time now) {
  if (!elastic()) return OfferToStaticJob(event);
  if (verdict.has_value() || ending.has_value()) return;
  hosts.only_offered = event.is_offer;
  for (const auto& [name, slots] : std::exchange(hosts.listed, {}))
    hosts.unlisted.emplace(name, now);
  for (const HostSlots& host : event.hosts) {
    hosts.listed[host.host] = host.slots;
    hosts.unlisted.erase(host.host);
  }
  for (auto host = hosts.unlisted.begin(); host != hosts.unlisted.end();) {
    host = now - host->second > kOnItsWay ? hosts.unlisted.erase(host) : std::next(host);
  }
  for (Host& host : hosts) {
    const auto found = hosts.listed.find(host.slots.host);
    if (found == hosts.listed.end()) {
      const bool there = host.agent.has_value() || host.away.has_value();
      const bool took_part = (host.discovered || hosts.only_offered) && !host.held;
      const bool went = took_part && there && !host.ended;
      if (went) {
        StartDrain(&host, spec.elastic->drain_grace,
                   hosts.only_offered ? "it is not offered any more" : "it is not listed any more",
                   true, now);
      }
      continue;
    }
    host.discovered = true;
    if (host.held) {
      if (host.agent.has_value() && !host.ended && !host.drain.has_value()) TakeIn(&host);
      continue;
    }
    if (hosts.only_offered) {
      host.UseSlots(hosts.OfferedSlots(host));
    } else {
      host.slots.slots = found->second;
    }
    if (host.drain.has_value() && host.drain->by_discovery && !host.ended) UndoDrain(&host);
  }
}

void Membership::State::On(const HostDraining& event, absl::Time now) {
  Host* host = hosts.Find(event.host);
  if (!elastic() || verdict.has_value() || host == nullptr) return;
  if (!host->agent.has_value() && !host->away.has_value()) return;
  const bool own = event.grace > absl::ZeroDuration();
  StartDrain(host, own ? event.grace : spec.elastic->drain_grace,
             event.reason.empty() ? "it was asked to" : phrases::OneLine(event.reason), false, now);
  if (!event.at_once) return;
  for (Worker& worker : workers) {
    const bool is_there = !worker.life.gone() && &HostOf(worker) == host;
    if (is_there && !worker.life.stopped()) worker.stop_at = now;
  }
}

void Membership::State::StartDrain(Host* host, absl::Duration grace, const std::string& reason,
                                   bool by_discovery, absl::Time now) {
  if (host->drain.has_value()) {
    host->drain->by_discovery = host->drain->by_discovery && by_discovery;
    return;
  }
  host->drain = Drain{now, now + grace, reason, by_discovery};
  for (Worker& worker : workers) {
    if (!worker.life.gone() && &HostOf(worker) == host) worker.stop_at = now + grace;
  }
  Note(Notice::Kind::kHostDraining, absl::StrCat("host ", host->slots.host, " leaves: ", reason),
       nullptr, host);
  if (epochs.current == Epoch(0)) ExpectFewerAtStart(*host);
}

// A host that is drained before the first world may never return, so that world does not wait for
// its slots: it needs fewer workers, as far as the other hosts have too few slots.
void Membership::State::ExpectFewerAtStart(const Host& drained) {
  int slots = 0;
  for (const Host& host : hosts) {
    const bool is_there = host.agent.has_value() || host.away.has_value();
    const bool may_come = is_there || (host.expected && !host.has_left);
    if (may_come && !host.drain.has_value()) slots += host.slots.slots;
  }
  const int missing = std::max(0, start_workers() - slots);
  epochs.fewer_at_start += std::min(missing, drained.slots.slots);
}

// Cancels a drain. Workers that were already released or stopped leave nevertheless.
void Membership::State::UndoDrain(Host* host) {
  host->drain.reset();
  Note(Notice::Kind::kDrainCancelled,
       absl::StrCat("host ", host->slots.host, " does not leave: it is ",
                    hosts.only_offered ? "offered" : "listed", " again"),
       nullptr, host);
  for (Worker& worker : workers) {
    if (&HostOf(worker) != host || worker.life.leaving() || worker.life.failure_told()) continue;
    // One that has said that it fails, but hangs, is still stopped.
    if (worker.exception.empty()) worker.stop_at = absl::InfiniteFuture();
  }
}

std::string Membership::State::LeftText(const Host& host) {
  const bool overran = host.drain.has_value() && host.drain->overran;
  return absl::StrCat("host ", host.slots.host, " left", overran ? ", but not in good order" : "");
}

// The agent of a host has gone. That is no failure if the host was drained or its part had ended;
// but if it still had members, the drain has overrun and work is lost. Otherwise the host is lost,
// which counts as a failure if it had members.
void Membership::State::LoseElasticHost(Host* host, const std::string& reason, absl::Time now) {
  const bool announced = host->ended || host->drain.has_value();
  const std::string name = host->slots.host;
  const std::string why = absl::StrCat("host ", name, " was lost: ", phrases::OneLine(reason));
  bool had_members = false;
  for (Worker& worker : workers) {
    if (host->live == 0) break;
    if (worker.life.gone() || &HostOf(worker) != host) continue;
    const bool member = worker.life.member();
    had_members = had_members || member;
    MarkUnreachable(&worker, now);
    workers.End(&worker, worker.life.finished() ? Move::kEndWell : Move::kEndBadly, &hosts);
    EndCallsOf(&worker, absl::FailedPreconditionError(why));
    if (member) BreakEpoch(why);
  }
  if (announced && had_members) LeaveLate(host, phrases::OneLine(reason));
  const std::string left = LeftText(*host);
  host->has_left = host->drain.has_value();
  host->drain.reset();
  host->ended = false;
  if (announced) return Note(Notice::Kind::kHostLeft, left, nullptr, host);
  Note(Notice::Kind::kHostLost, why, nullptr, host);
  if (!had_members) return;
  ReportCutOff(now);
  const bool first = !std::exchange(epochs.lost_hosts, true);
  epochs.failed_world = true;
  failures.last = Verdict();
  failures.last.exit_code = 1;
  failures.last.host = name;
  failures.last.summary = why;
  // Hosts lost together have one cause (a switch, a spot price) and count once.
  if (first) CountFailure(now);
}

// Reports that a drain has failed: the host left, or was stopped, before all had committed, so work
// since the newest commit is lost. Once per drain.
void Membership::State::LeaveLate(Host* host, const std::string& why) {
  if (!host->drain.has_value() || std::exchange(host->drain->overran, true)) return;
  const bool others_go_on = std::any_of(workers.begin(), workers.end(), [&](const Worker& worker) {
    return worker.IsSurvivor() && &HostOf(worker) != host;
  });
  const bool is_for_good =
      ending.has_value() && (last_time >= host->drain->deadline || epochs.checkpoint.place.empty());
  Note(Notice::Kind::kDrainOverran,
       absl::StrCat("host ", host->slots.host, " did not leave in good order (", why, "): ",
                    epochs.starts_anew ? "the work that the script has not saved is lost"
                    : is_for_good      ? "the work since the newest checkpoint is lost"
                    : others_go_on && !ending.has_value()
                        ? "the others go back to their newest commit"
                        : "the work since the newest commit is lost"),
       nullptr, host);
}

void Membership::State::LeaveLate(const Worker* worker, const std::string& what) {
  LeaveLate(&hosts[worker->host],
            absl::StrCat("rank ", worker->place.rank, what, " before all had committed"));
}

// Lets the drained hosts go whose workers have left. One with a commit that no other host has stays
// until another one has taken it over, a checkpoint has it, or its grace is over.
void Membership::State::EndDrainedHosts(absl::Time now) {
  std::optional<decisions::CopyPlan> plan;
  const bool is_finishing = standing.IsFinishing();
  for (Host& host : hosts) {
    if (!host.drain.has_value() || host.ended || !host.agent.has_value()) continue;
    if (host.live > 0) continue;
    if (hosts.only_offered && host.drain->by_discovery) {
      Note(Notice::Kind::kHostLeft, LeftText(host), nullptr, &host);
      Hold(&host, /*took_part=*/true);
      plan.reset();
      continue;
    }
    if (!plan.has_value()) plan.emplace(standing);
    if (plan->MustGiveCommit(host, now)) continue;
    const bool has_time = ending.has_value() && now < host.drain->deadline;
    if (has_time && ending->MayStartWriter() && !is_finishing && commits.MayHaveToBeWritten(host))
      continue;
    if (!is_finishing) ReportLostCommit(&host, plan->elsewhere());
    host.ended = true;
    EndHost(*host.agent, host.slots.host, spec.failure_grace);
  }
}

// A host leaves for good with a commit that neither another host nor a checkpoint has: says so.
void Membership::State::ReportLostCommit(Host* host, const CommitsElsewhere& elsewhere) {
  const bool has_no_copies = host->commit_address.empty() && !host->drain->ends_job &&
                             host->commit > epochs.checkpoint.commit && !elsewhere.Has(*host);
  if (!has_no_copies && !elsewhere.IsAlone(*host)) return;
  const uint64_t kept = epochs.checkpoint.commit;
  host->drain->overran = true;
  Note(Notice::Kind::kDrainOverran,
       absl::StrCat("host ", host->slots.host, " leaves with commit ", CommitNumber(host->commit),
                    ", which neither another host nor a checkpoint has",
                    kept > 0
                        ? absl::StrCat("; the newest checkpoint is of commit ", CommitNumber(kept))
                        : ""),
       nullptr, host);
}

// At the end of the job: the drained hosts whose workers have left have left, too, although their
// agents go only now.
void Membership::State::ReportLeftHosts() {
  for (Host& host : hosts) {
    const bool leaves = host.drain.has_value() && host.agent.has_value() && host.live == 0;
    if (leaves) Note(Notice::Kind::kHostLeft, LeftText(host), nullptr, &host);
  }
}

// Removes hosts that are gone and not expected back, so that the state of a long job does not grow
// with every host it ever had. The health of their slots is kept, by name.
void Membership::State::ForgetDepartedHosts() {
  std::vector<bool> needed;
  for (const Host& host : hosts) {
    needed.push_back(host.expected || host.agent.has_value() || host.away.has_value() ||
                     hosts.listed.count(host.slots.host) > 0);
  }
  for (const Worker& worker : workers) needed[worker.host] = true;
  if (std::count(needed.begin(), needed.end(), false) == 0) return;
  const std::vector<int> places = hosts.Retain(needed);
  for (Worker& worker : workers) worker.host = places[worker.host];
}

}  // namespace hvd::rendezvous::membership
