// Restart of the daemon: agents attach again, and hosts whose agents do not return in time are
// lost. A restarted daemon knows the state from the journal, but not which of its last effects
// reached agents and workers; so commands that may have been lost are sent again. While the daemon
// runs, in contrast, the end of an agent's stream is the loss of the host at once: see On(HostLost)
// in membership_hosts.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/decisions/free_slots.h"
#include "rendezvous/membership/decisions/torch_groups.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {

// Handles an agent that attached before: after a restart of the daemon, or with a new stream that
// replaces its old one. Compares the workers that the agent knows with those of the journal, and
// repeats the commands that it has not received. Returns false for a new agent.
bool Membership::State::Reattach(const HostJoined& event) {
  Host* host = hosts.Find(event.host.host);
  if (host == nullptr || (host->away != event.agent && host->agent != event.agent)) return false;
  if (host->away.has_value() && !verdict.has_value()) {
    Note(Notice::Kind::kHostBack, absl::StrCat("host ", host->slots.host, " is there again"),
         nullptr, host);
  }
  host->away.reset();
  host->away_until = absl::InfinitePast();
  host->agent = event.agent;
  if (!started) host->store_address = event.store_address;
  host->commit_address = event.commit_address;
  host->copies_from.clear();
  host->has_copy = false;
  host->commit = event.commit;
  StopStrangers(*host, event);
  if (host->held) ResumeHeld(host);
  std::vector<WorkerId> to_stop;
  const std::vector<int> most = elastic() ? decisions::MostOnMachines(hosts, spec.max_workers)
                                          : std::vector<int>(hosts.size());
  for (Worker& worker : workers) {
    if (worker.life.gone() || &HostOf(worker) != host) continue;
    const bool known =
        std::count(event.known_workers.begin(), event.known_workers.end(), worker.id) > 0;
    const bool is_unwanted = verdict.has_value() || worker.life.stopped();
    if (known) {
      if (is_unwanted) to_stop.push_back(worker.id);
    } else if (is_unwanted || (elastic() && standing.IsLeaving(worker))) {
      // The agent never started it, so no WorkerExited will come.
      EndCallsOf(&worker, absl::FailedPreconditionError(absl::StrCat(Name(worker), " has ended")));
      workers.End(&worker, worker.life.failure_counted() ? Move::kEndBadly : Move::kEndWell,
                  &hosts);
    } else {
      effects.push_back(StartWorkerEffect{
          event.agent, host->slots.host, worker.id, worker.place, worker.slot, most[worker.host],
          elastic() ? TorchGroup() : decisions::TorchGroupOf(worker, hosts, workers)});
    }
  }
  if (!to_stop.empty()) {
    effects.push_back(
        StopWorkersEffect{event.agent, host->slots.host, to_stop, absl::ZeroDuration()});
  }
  if (verdict.has_value()) {
    host->ended = false;  // the agent may not have received EndJob
    FinishWhenAllGone();
  } else if (host->ended) {
    // The agent may not have received EndJob. EndDrainedHosts decides again: another host may be
    // there now that can take over its commit.
    host->ended = false;
  }
  return true;
}

// The first event of a resumed job. No stream or call has survived the restart: every attached host
// becomes an awaited one, and parked calls are dropped without an answer, since the workers repeat
// them.
void Membership::State::On(const Restarted& event, absl::Time now) {
  int awaited = 0;
  for (Host& host : hosts) {
    if (host.agent.has_value()) {
      ++awaited;
      hosts.some_away = true;
      host.away = host.agent;
      host.away_until = now + spec.reattach_timeout;
      host.agent.reset();
    }
  }
  if (!verdict.has_value()) {
    Note(Notice::Kind::kRestarted,
         awaited == 0 ? "the daemon was started again"
                      : absl::StrCat("the daemon was started again and waits for ",
                                     phrases::Count(awaited, "host"), " to be there again"));
  }
  for (Worker& worker : workers) {
    worker.join.reset();
    const bool is_ending = worker.life.failure_told() && !worker.life.stopped();
    if (is_ending) worker.stop_at = now + spec.elastic->rejoin_timeout;
  }
  epochs.watches.TakeAll();
  epochs.rounds.Forget();
  // Nobody could ask while the daemon was away, so these waits start again.
  if (!started) start_deadline = now + start_patience;
  if (epochs.together_since != absl::InfiniteFuture()) epochs.together_since = now;
  epochs.quorum_since = absl::InfiniteFuture();
}

void Membership::State::LoseAwayHosts(absl::Time now) {
  if (verdict.has_value() || !hosts.some_away) return;
  for (size_t i = 0; i < hosts.size() && !verdict.has_value();) {
    if (!hosts[i].away.has_value() || now < hosts[i].away_until) {
      ++i;
      continue;
    }
    LoseAwayHost(  // may remove the host, so that the next one moves to index i
        &hosts[i],
        absl::StrCat("its agent did not come back within ",
                     text::DurationText(spec.reattach_timeout), " of the daemon's restart"),
        now);
  }
  hosts.some_away = std::any_of(hosts.begin(), hosts.end(),
                                [](const Host& host) { return host.away.has_value(); });
}

void Membership::State::LoseAwayHost(Host* host, const std::string& reason, absl::Time now) {
  host->agent = host->away;
  host->away.reset();
  On(HostLost{host->slots.host, *host->agent, reason}, now);
}

}  // namespace hvd::rendezvous::membership
