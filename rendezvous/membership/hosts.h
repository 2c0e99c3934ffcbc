// The hosts of a job, with their agents and drains.
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

// The drain of a host: its removal at the next commit.
struct Drain {
  absl::Time since;
  absl::Time deadline;
  std::string reason;
  bool by_discovery = false;  // cancelled if the host is listed again
  bool overran = false;       // some of its workers had to be stopped
  bool ends_job = false;      // all hosts leave; none will replace them

  // The end of the wait for a replacement, if too few workers would remain: half of the grace, so
  // that the other half is left for the commit.
  absl::Time PatienceEnds() const { return ends_job ? since : since + (deadline - since) / 2; }

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [since, deadline, reason, by_discovery, overran, ends_job] = *this;
    fields("since_ns", since, "deadline_ns", deadline, "reason", reason, "by_discovery",
           by_discovery, "overran", overran, "ends_job", ends_job);
  }
};

struct Host {
  HostSlots slots;
  bool expected = false;             // in JobSpec::expected_hosts
  bool discovered = false;           // it was in a list of HostsDiscovered
  std::optional<Incarnation> agent;  // empty: no agent is attached
  bool ended = false;                // EndJob was sent
  std::optional<Drain> drain;
  std::optional<Incarnation> away;  // the agent that is awaited after a restart of the daemon
  // Deadline for that; unchanged until an agent attaches.
  absl::Time away_until = absl::InfinitePast();
  int live = 0;                     // its workers that are not gone
  std::string store_address = {};   // as in HostJoined
  int withheld = 0;                 // further slots of its agent that are not offered
  bool held = false;                // its agent waits for an offer
  std::string commit_address = {};  // as in HostJoined
  std::string copies_from = {};  // commit_address of the host whose commits it keeps; empty: none
  // The newest commit in its agent's memory, as last told: left by a worker of this host, or a
  // copy. Every worker of this host can take it over. 0: none.
  uint64_t commit = 0;
  bool has_copy = false;  // a copy has been completed since copies_from was set
  bool has_left = false;  // it was drained and has gone, and may never return
  // While it rests, its slots are not used; see membership_reach.cc. InfinitePast: it does not.
  absl::Time rests_until = absl::InfinitePast();
  std::string rests_from = {};  // the host that it does not reach
  int rests = 0;                // in a row
  // commit_address of a host whose commits it could not copy last; empty: there is none.
  std::string no_copies_from = {};

  // Whether its agent is there, or awaited after a restart, and stays in the job for now.
  bool IsThere() const { return (agent.has_value() || away.has_value()) && !ended; }
  bool IsResting() const { return rests_until != absl::InfinitePast(); }
  // Whether workers may be started there.
  bool TakesPart() const {
    return agent.has_value() && !ended && !drain.has_value() && !IsResting();
  }

  // Sets the number of usable slots; the agent's other slots are withheld.
  void UseSlots(int usable) {
    withheld += slots.slots - usable;
    slots.slots = usable;
  }

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [slots, expected, discovered, agent, ended, drain, away, away_until, live, store_address,
           withheld, held, commit_address, copies_from, commit, has_copy, has_left, rests_until,
           rests_from, rests, no_copies_from] = *this;
    fields("slots", slots, "expected", expected, "discovered", discovered, "agent", agent, "ended",
           ended, "drain", drain, "away", away, "away_until_ns", away_until, "live", live,
           "store_address", store_address, "withheld", withheld, "held", held, "commit_address",
           commit_address, "copies_from", copies_from, "commit", commit, "has_copy", has_copy,
           "has_left", has_left, "rests_until_ns", rests_until, "rests_from", rests_from, "rests",
           rests, "no_copies_from", no_copies_from);
  }
};

// The expected hosts, in the JobSpec's order, then the others in the order of joining. Workers
// refer to their host by its index.
//
// Invariants:
// - Find returns the host of a name; if a JobSpec lists a name twice by mistake, the first one;
// - `some_away` is true while any host is away;
// - no host has more than kMostSlots slots: loops visit every slot;
// - no name is in both `listed` and `unlisted`;
// - a held host has no usable slots and no workers.
//
// Not thread-safe.
class Hosts {
 public:
  // An upper bound of the slots of a host, far above any real one.
  static constexpr int kMostSlots = 1 << 20;

  std::vector<Host>::iterator begin() { return hosts_.begin(); }
  std::vector<Host>::iterator end() { return hosts_.end(); }
  std::vector<Host>::const_iterator begin() const { return hosts_.begin(); }
  std::vector<Host>::const_iterator end() const { return hosts_.end(); }
  std::vector<Host>::const_reverse_iterator rbegin() const { return hosts_.rbegin(); }
  std::vector<Host>::const_reverse_iterator rend() const { return hosts_.rend(); }
  size_t size() const { return hosts_.size(); }
  Host& operator[](size_t index) { return hosts_[index]; }
  const Host& operator[](size_t index) const { return hosts_[index]; }

  // Returns null if there is no such host.
  Host* Find(const std::string& name);
  // REQUIRES: it is an element of this.
  int IndexOf(const Host& host) const { return static_cast<int>(&host - hosts_.data()); }

  Host& Add(const HostSlots& slots);
  // REQUIRES: no worker refers to a host at or after its index.
  void Remove(const Host& host);
  // Removes the hosts whose `needed` is false. Returns the new index for each old index.
  std::vector<int> Retain(const std::vector<bool>& needed);

  // The machine of each host, by index: see placement::MachinesOf.
  std::vector<int> Machines() const;
  // A number for the slot that is unique among all slots of the host's machine.
  int64_t SlotOnMachine(int host, int slot) const {
    return static_cast<int64_t>(host) * kMostSlots + slot;
  }

  // The number of machines with an attached host.
  int AttachedMachines() const;

  // Whether the host may take part, and with how many slots.
  bool IsOffered(const std::string& name) const { return !only_offered || listed.count(name) > 0; }
  int OfferedSlots(const Host& host) const;

  int AttachedSlots() const;
  // The attached hosts that take part, and those that wait for an offer.
  std::vector<std::string> AttachedNames() const { return NamesOfAttached(false); }
  std::vector<std::string> HeldNames() const { return NamesOfAttached(true); }
  // Expected hosts that are not attached.
  std::vector<std::string> MissingNames() const;

  // Returns the violated invariant, or an empty string if all hold.
  std::string Check() const;

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("hosts", hosts_, "some_away", some_away, "listed", listed, "unlisted", unlisted,
           "only_offered", only_offered);
    if (Fields::kReads) Index();
  }

  bool some_away = false;                      // false: no host is away; true: there may be one
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
