// Offers: a scheduler says which hosts may take part, and with how many slots. An agent whose host
// is not offered is held: it stays attached, and takes part once its host is offered.
#include "absl/strings/str_cat.h"
#include "rendezvous/membership/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {

// What has started keeps its places: only hosts that came before are concerned.
void Membership::State::OfferToStaticJob(const HostsDiscovered& event) {
  if (!event.is_offer || verdict.has_value() || started) return;
  hosts.only_offered = true;
  hosts.listed.clear();
  for (const HostSlots& host : event.hosts) hosts.listed[host.host] = host.slots;
  for (Host& host : hosts) {
    if (host.expected || !host.agent.has_value()) continue;
    if (hosts.IsOffered(host.slots.host)) {
      TakeIn(&host);
    } else if (!host.held) {
      Hold(&host, /*took_part=*/true);
    }
  }
  StartWhenComplete();
}

// REQUIRES: its agent is attached, and it has no workers.
void Membership::State::Hold(Host* host, bool took_part) {
  host->held = true;
  host->slots.slots = 0;
  host->drain.reset();
  effects.push_back(HoldHostEffect{*host->agent, host->slots.host, took_part});
  Note(Notice::Kind::kHostWaits,
       absl::StrCat("host ", host->slots.host, " waits until it is offered to the job"), nullptr,
       host);
}

// REQUIRES: its agent is attached, and it is offered.
void Membership::State::TakeIn(Host* host) {
  host->held = false;
  host->slots.slots = hosts.OfferedSlots(*host);
  Note(Notice::Kind::kHostJoined,
       absl::StrCat("host ", host->slots.host, " joined with ",
                    phrases::Count(host->slots.slots, "slot")),
       nullptr, host);
}

// Its agent is back after a restart.
void Membership::State::ResumeHeld(Host* host) {
  if (verdict.has_value() || host->ended || host->drain.has_value()) return;
  if (hosts.IsOffered(host->slots.host)) return TakeIn(host);
  effects.push_back(HoldHostEffect{*host->agent, host->slots.host});  // it may not have heard so
}

}  // namespace hvd::rendezvous::membership
