// Reports of agents about the commits in their memory, and orders to copy those of another host.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/membership/decisions/copy_plan.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {

void Membership::State::On(const CommitLeft& event, absl::Time) {
  Host* const host = hosts.Find(event.host);
  if (host != nullptr) host->commit = event.commit;
}

void Membership::State::On(const CommitKept& event, absl::Time) {
  Host* const host = hosts.Find(event.host);
  if (host == nullptr) return;
  host->commit = event.commit;
  // Without a source, its agent has been asked to drop its copy.
  if (verdict.has_value() || host->copies_from.empty()) return;
  if (!event.failure.empty()) return NoteUncopied(host, event.failure);
  host->no_copies_from.clear();
  if (std::exchange(host->has_copy, true)) return;
  Note(Notice::Kind::kCommitsKept,
       absl::StrCat("host ", host->slots.host, " keeps copies of the commits, beginning with ",
                    CommitNumber(event.commit)),
       nullptr, host);
}

// The host can't copy the commits of another one: from now on any other host is asked first.
void Membership::State::NoteUncopied(Host* host, const std::string& failure) {
  host->no_copies_from = host->copies_from;
  const auto source = std::find_if(hosts.begin(), hosts.end(), [host](const Host& other) {
    return other.commit_address == host->copies_from;
  });
  if (source == hosts.end()) return;
  Note(Notice::Kind::kCommitsNotKept,
       absl::StrCat("host ", host->slots.host, " can't copy the commits of host ",
                    source->slots.host, ": ", phrases::OneLine(failure)),
       nullptr, host);
}

// Chooses the keeper of copies and notifies the agents.
void Membership::State::SteerCopies() {
  const decisions::CopyPlan plan(standing);
  const decisions::CopyPlan::Copying wanted = plan.Wanted();
  if (wanted.keeper == nullptr && !workers.SomeSurvive()) return;
  for (Host& host : hosts) {
    if (!host.agent.has_value() || host.ended || plan.IsNotReplacedYet(host, wanted)) continue;
    TellToKeep(&host, &host == wanted.keeper ? wanted.holder : nullptr);
  }
}

// Sends KeepCommits if the host's source of copies changes. Null `holder`: it drops its copy, if it
// may. REQUIRES: its agent is attached.
void Membership::State::TellToKeep(Host* host, const Host* holder) {
  const std::string address = holder == nullptr ? "" : holder->commit_address;
  if (host->copies_from == address) return;
  if (holder == nullptr && !decisions::CopyPlan(standing).MayDrop()) return;
  host->copies_from = address;
  host->has_copy = host->has_copy && holder != nullptr;
  effects.push_back(KeepCommitsEffect{*host->agent, host->slots.host,
                                      holder == nullptr ? "" : holder->slots.host, address});
}

}  // namespace hvd::rendezvous::membership
