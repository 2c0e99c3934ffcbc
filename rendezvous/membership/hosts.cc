#include "rendezvous/membership/hosts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/placement/machines.h"

namespace hvd::rendezvous::membership {

Host* Hosts::Find(const std::string& name) {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &hosts_[found->second];
}

Host& Hosts::Add(const HostSlots& slots) {
  places_.emplace(slots.host, static_cast<int>(hosts_.size()));
  hosts_.emplace_back().slots = slots;
  return hosts_.back();
}

void Hosts::Remove(const Host& host) {
  hosts_.erase(hosts_.begin() + IndexOf(host));
  Index();
}

std::vector<int> Hosts::Retain(const std::vector<bool>& needed) {
  std::vector<int> places(hosts_.size());
  std::vector<Host> kept;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    places[i] = static_cast<int>(kept.size());
    if (needed[i]) kept.push_back(std::move(hosts_[i]));
  }
  hosts_ = std::move(kept);
  Index();
  return places;
}

void Hosts::Index() {
  places_.clear();
  for (const Host& host : hosts_) places_.emplace(host.slots.host, IndexOf(host));
}

std::vector<int> Hosts::Machines() const {
  std::vector<const HostSlots*> slots;
  for (const Host& host : hosts_) slots.push_back(&host.slots);
  return placement::MachinesOf(slots);
}

int Hosts::AttachedMachines() const {
  std::set<absl::string_view> names;
  for (const Host& host : hosts_) {
    if (host.agent.has_value() && !host.held) names.insert(placement::MachineName(host.slots));
  }
  return static_cast<int>(names.size());
}

int Hosts::AttachedSlots() const {
  int slots = 0;
  for (const Host& host : hosts_) {
    if (host.agent.has_value()) slots += std::max(host.slots.slots, 0);
  }
  return slots;
}

int Hosts::OfferedSlots(const Host& host) const {
  const int capacity = host.slots.slots + host.withheld;
  if (!only_offered) return capacity;
  const auto found = listed.find(host.slots.host);
  return found == listed.end() ? 0 : std::min(found->second, capacity);
}

std::vector<std::string> Hosts::NamesOfAttached(bool held) const {
  std::vector<std::string> names;
  for (const Host& host : hosts_) {
    if (host.agent.has_value() && host.held == held) names.push_back(host.slots.host);
  }
  return names;
}

std::vector<std::string> Hosts::MissingNames() const {
  std::vector<std::string> names;
  for (const Host& host : hosts_) {
    if (host.expected && !host.agent.has_value()) names.push_back(host.slots.host);
  }
  return names;
}

std::string Hosts::Check() const {
  const auto sound = [](int slots) { return slots >= 0 && slots <= kMostSlots; };
  for (const Host& host : hosts_) {
    const std::string which = absl::StrCat("host ", host.slots.host);
    const auto found = places_.find(host.slots.host);
    if (found == places_.end() || found->second > IndexOf(host)) return which + " is not found";
    if (!sound(host.slots.slots)) return absl::StrCat(which, " has ", host.slots.slots, " slots");
    if (host.held && (host.slots.slots != 0 || host.live != 0)) {
      return which + " waits for an offer, and has slots or workers";
    }
    if (host.away.has_value() && !some_away) return which + " is away, and nobody waits for it";
  }
  for (const auto& [name, slots] : listed) {
    if (!sound(slots)) return absl::StrCat("host ", name, " is listed with ", slots, " slots");
    if (unlisted.count(name) > 0) return absl::StrCat("host ", name, " is listed and is not");
  }
  return "";
}

}  // namespace hvd::rendezvous::membership
