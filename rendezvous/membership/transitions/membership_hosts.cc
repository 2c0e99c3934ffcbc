// The hosts of a job: attaching, offers, and loss. Also starts the workers of a static job once all
// hosts are attached.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/membership/decisions/torch_groups.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"
#include "rendezvous/placement/static_ranks.h"

namespace hvd::rendezvous::membership {
// Handles an agent that has attached: one that returns, one of an elastic job, or else a host of a
// static job, which takes part only before the job has started.
void Membership::State::On(const HostJoined& event, absl::Time now) {
  if (Reattach(event)) return FollowOfferOfStaticJob(event.host.host);
  if (elastic() && !verdict.has_value()) return TakeInHost(event, now);
  Host* known = hosts.Find(event.host.host);
  const bool attached = known != nullptr && known->agent.has_value();
  if (attached && !verdict.has_value()) return;
  if (verdict.has_value() || started) {
    // All slots are assigned already, or the job is over.
    EndHost(event.agent, event.host.host, spec.failure_grace);
    return;
  }
  // No worker was started there yet, so another agent may replace the awaited one.
  if (known != nullptr && !known->expected) {
    hosts.Remove(*known);
    known = nullptr;
  }
  Host& host = known != nullptr ? *known : hosts.Add(event.host);
  host.away.reset();
  host.agent = event.agent;
  host.slots.machine = event.host.machine;
  host.store_address = event.store_address;
  if (!host.expected) {
    if (!hosts.IsOffered(event.host.host)) return Hold(&host, /*took_part=*/false);
    host.UseSlots(hosts.OfferedSlots(host));
  }
  StartWhenComplete();
}

// Starts no worker before all hosts are attached: a job that fails for lack of a host must not have
// run any user code.
void Membership::State::StartWhenComplete() {
  const bool complete = std::none_of(hosts.begin(), hosts.end(), [](const Host& host) {
    return host.expected && !host.agent.has_value();
  });
  if (!complete || hosts.AttachedSlots() < spec.max_workers) return;
  started = true;
  std::vector<HostSlots> slots;
  for (const Host& host : hosts) slots.push_back(host.slots);
  const auto rank_order =
      spec.keep_host_order ? placement::RankOrder::kByHost : placement::RankOrder::kByMachine;
  const std::vector<placement::PlacedSlot> plan =
      placement::AssignStaticRanks(slots, spec.max_workers, rank_order);
  for (const auto& [on, slot, place] : plan) {
    Worker worker;
    worker.id = StaticWorkerId(place.rank);
    worker.host = on;
    worker.place = place;
    worker.slot = slot;
    const Worker& added = workers.Add(worker, &hosts);
    const Host& host = hosts[on];
    effects.push_back(StartWorkerEffect{*host.agent, host.slots.host, worker.id, place, worker.slot,
                                        /*most_on_machine=*/0,
                                        decisions::TorchGroupOf(added, hosts, workers)});
  }
}

void Membership::State::On(const HostLost& event, absl::Time now) {
  Host* const host = hosts.Find(event.host);
  if (host == nullptr || host->agent != event.agent) return;
  host->agent.reset();
  const bool was_held = std::exchange(host->held, false);
  if (elastic() && !verdict.has_value()) {
    if (was_held && !host->drain.has_value()) return;  // a held host had no part in the job
    return LoseElasticHost(host, event.reason, now);
  }
  if (started) {
    LoseStartedHost(*host, event.reason, now);
  } else if (!host->expected) {
    hosts.Remove(*host);  // another host may provide its slots
  } else if (!verdict.has_value()) {
    root_cause.HostLost(host->slots.host, event.reason);
    DecideOutcome(event.reason, now);
  }
}

// The loss of a host whose workers have all exited has no effect on the job.
void Membership::State::LoseStartedHost(const Host& host, absl::string_view reason,
                                        absl::Time now) {
  const std::string why =
      absl::StrCat("host ", host.slots.host, " was lost: ", phrases::OneLine(reason));
  bool had_workers = false;
  for (Worker& worker : workers) {
    if (host.live == 0) break;
    if (&HostOf(worker) != &host || worker.life.gone()) continue;
    had_workers = true;
    workers.End(&worker, Move::kEndBadly, &hosts);
    EndCallsOf(&worker, absl::FailedPreconditionError(why));
  }
  if (verdict.has_value()) {
    if (had_workers) AnswerWatches();
    FinishWhenAllGone();
  } else if (had_workers) {
    root_cause.HostLost(host.slots.host, reason);
    DecideOutcome(why, now);
  }
}

void Membership::State::On(const WorkerStarted& event, absl::Time now) {
  Worker* worker = workers.Find(event.worker);
  if (worker != nullptr && !worker->life.gone()) worker->pid = event.pid;
}

// Offers: a scheduler names the hosts that may take part, with their slots. The agent of a host
// that is not offered is held: it stays attached, and takes part once its host is offered.

// Applies an offer to a static job. No effect once it has started: its workers' places do not
// change.
void Membership::State::OfferToStaticJob(const HostsDiscovered& event) {
  if (!event.is_offer || verdict.has_value() || started) return;
  hosts.only_offered = true;
  hosts.listed.clear();
  for (const HostSlots& host : event.hosts) hosts.listed[host.host] = host.slots;
  for (Host& host : hosts) FollowOffer(&host);
  StartWhenComplete();
}

// Holds or takes in the host according to the offer. A host whose agent is away follows when the
// agent is back.
void Membership::State::FollowOffer(Host* host) {
  if (host->expected || !host->agent.has_value()) return;
  if (!hosts.IsOffered(host->slots.host)) {
    if (!host->held) Hold(host, /*took_part=*/true);
  } else if (host->held || host->slots.slots != hosts.OfferedSlots(*host)) {
    TakeIn(host);
  }
}

void Membership::State::FollowOfferOfStaticJob(const std::string& host) {
  if (elastic() || verdict.has_value() || started) return;
  FollowOffer(hosts.Find(host));
  StartWhenComplete();
}

// REQUIRES: its agent is attached, and it has no workers.
void Membership::State::Hold(Host* host, bool took_part) {
  host->held = true;
  host->UseSlots(0);
  host->drain.reset();
  effects.push_back(HoldHostEffect{*host->agent, host->slots.host, took_part});
  Note(Notice::Kind::kHostWaits,
       absl::StrCat("host ", host->slots.host, " waits until it is offered to the job"), nullptr,
       host);
}

// REQUIRES: its agent is attached, and it is offered.
void Membership::State::TakeIn(Host* host) {
  host->held = false;
  host->UseSlots(hosts.OfferedSlots(*host));
  Note(Notice::Kind::kHostJoined,
       absl::StrCat("host ", host->slots.host, " joined with ",
                    phrases::Count(host->slots.slots, "slot")),
       nullptr, host);
}

// The agent of a held host has attached again after a restart.
void Membership::State::ResumeHeld(Host* host) {
  if (verdict.has_value() || host->ended || host->drain.has_value()) return;
  if (hosts.IsOffered(host->slots.host)) return TakeIn(host);
  effects.push_back(HoldHostEffect{
      *host->agent, host->slots.host});  // the agent may not have received the first one
}

}  // namespace hvd::rendezvous::membership
