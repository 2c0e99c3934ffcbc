// The hosts of a job, their agents, and the drains under way.
#ifndef RENDEZVOUS_MEMBERSHIP_HOSTS_H_
#define RENDEZVOUS_MEMBERSHIP_HOSTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::membership {

// A host that is to leave cleanly.
struct Drain {
  absl::Time since;
  absl::Time deadline;
  std::string reason;
  bool by_discovery = false;  // taken back if the host is listed again
  bool overran = false;       // some of its workers had to be stopped

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [since, deadline, reason, by_discovery, overran] = *this;
    fields("since_ns", since, "deadline_ns", deadline, "reason", reason, "by_discovery",
           by_discovery, "overran", overran);
  }
};

struct Host {
  HostSlots slots;
  bool expected = false;             // by the JobSpec
  bool discovered = false;           // it was in a list of HostsDiscovered
  std::optional<Incarnation> agent;  // of the attached agent; empty: not attached, or lost
  bool ended = false;                // EndJob was sent
  std::optional<Drain> drain;
  std::optional<Incarnation> away;  // of the agent that may attach again after Restarted
  absl::Time away_until = absl::InfinitePast();  // stays until an agent attaches
  int live = 0;                                  // workers there that are not gone
  std::string store_address = {};                // as in HostJoined
  int withheld = 0;                 // slots that its agent has besides, which are not offered
  bool held = false;                // its agent waits for an offer
  std::string commit_address = {};  // as in HostJoined
  std::string copies_from = {};     // the address from which it was told to take copies of commits
  uint64_t kept_commit = 0;         // the newest of these copies; 0: none

  // Of all the slots that its agent has, so many may be used.
  void UseSlots(int usable) {
    withheld += slots.slots - usable;
    slots.slots = usable;
  }

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [slots, expected, discovered, agent, ended, drain, away, away_until, live, store_address,
           withheld, held, commit_address, copies_from, kept_commit] = *this;
    fields("slots", slots, "expected", expected, "discovered", discovered, "agent", agent, "ended",
           ended, "drain", drain, "away", away, "away_until_ns", away_until, "live", live,
           "store_address", store_address, "withheld", withheld, "held", held, "commit_address",
           commit_address, "copies_from", copies_from, "kept_commit", kept_commit);
  }
};

// In the order of joining, expected ones first, in the JobSpec's order: workers refer to their host
// by its index here.
//
// Invariants:
// - a host is found by its name; of several hosts of one name, which nobody should have listed, the
//   first is found;
// - `some_away` is set while a host is away;
// - no host has more than kMostSlots slots, which are gone through one by one;
// - no name is both listed and unlisted;
// - a host that is held has no slots and no workers.
//
// Not thread-safe.
class Hosts {
 public:
  // Far more than a host can have.
  static constexpr int kMostSlots = 1 << 20;

  std::vector<Host>::iterator begin() { return hosts_.begin(); }
  std::vector<Host>::iterator end() { return hosts_.end(); }
  std::vector<Host>::const_iterator begin() const { return hosts_.begin(); }
  std::vector<Host>::const_iterator end() const { return hosts_.end(); }
  size_t size() const { return hosts_.size(); }
  Host& operator[](size_t index) { return hosts_[index]; }
  const Host& operator[](size_t index) const { return hosts_[index]; }

  // Null: there is none.
  Host* Find(const std::string& name);
  // REQUIRES: it is an element of this.
  int IndexOf(const Host& host) const { return static_cast<int>(&host - hosts_.data()); }

  Host& Add(const HostSlots& slots);
  // REQUIRES: no worker refers to a host at or after its index.
  void Remove(const Host& host);
  // Removes the others, by index. Returns the new index for each old one.
  std::vector<int> Retain(const std::vector<bool>& needed);

  // The machine of each host, by index: see placement::MachinesOf.
  std::vector<int> Machines() const;
  // The number that a slot of a host has on the host's machine, where no two are the same.
  int64_t SlotOnMachine(int host, int slot) const {
    return static_cast<int64_t>(host) * kMostSlots + slot;
  }

  // Machines with an attached host.
  int AttachedMachines() const;

  // Whether it may take part, and with how many slots.
  bool IsOffered(const std::string& name) const { return !only_offered || listed.count(name) > 0; }
  int OfferedSlots(const Host& host) const;

  int AttachedSlots() const;
  // Those that are not held, and those that are.
  std::vector<std::string> AttachedNames() const { return NamesOfAttached(false); }
  std::vector<std::string> HeldNames() const { return NamesOfAttached(true); }
  // Expected hosts that are not attached.
  std::vector<std::string> MissingNames() const;

  // Empty: the invariants hold; else the violated one.
  std::string Check() const;

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("hosts", hosts_, "some_away", some_away, "listed", listed, "unlisted", unlisted,
           "only_offered", only_offered);
    if (Fields::kReads) Index();
  }

  bool some_away = false;                      // some hosts may be
  std::map<std::string, int> listed;           // slots by host, of the newest HostsDiscovered
  std::map<std::string, absl::Time> unlisted;  // hosts that went off the list, and when
  bool only_offered = false;                   // the list is an offer: no others take part

 private:
  void Index();
  std::vector<std::string> NamesOfAttached(bool held) const;

  std::vector<Host> hosts_;
  std::map<std::string, int> places_;  // index by name
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_HOSTS_H_
