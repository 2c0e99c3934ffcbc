// The schedule of agent starts in an elastic job: which hosts need an agent, and when. Pure.
#ifndef LAUNCHER_JOB_HOST_ROSTER_H_
#define LAUNCHER_JOB_HOST_ROSTER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hvd::launcher::job {

// Every listed host gets an agent: a new host at once, a host whose agent has failed after a pause
// that grows with each failure. A host whose agent ended regularly gets another one only after it
// was removed from the list and listed again. Not thread-safe.
class HostRoster {
 public:
  static constexpr absl::Duration kFirstPause = absl::Seconds(1);
  static constexpr absl::Duration kLongestPause = absl::Minutes(1);

  // Takes the current list of hosts. Returns those that are no longer listed and still have an
  // agent.
  std::vector<std::string> SetHosts(const std::vector<std::string>& hosts);

  // Listed hosts that need an agent now, in order of their names.
  std::vector<std::string> Due(absl::Time now) const;
  // When the next host needs an agent; InfiniteFuture: not before another event.
  absl::Time NextDue() const;

  // Events of a host's agent. REQUIRES: the host is listed, or has an agent.
  void Started(const std::string& host);
  void Ready(const std::string& host, absl::Time now);
  void Left(const std::string& host);  // the agent ended regularly
  // The agent ended in any other way, or could not be started. `refused`: the host was reached and
  // refused, so a retry is unlikely to succeed. Returns whether to warn the user, that is, whether
  // the reason is new and the host is still listed.
  bool Failed(const std::string& host, const std::string& why, bool refused, absl::Time now);

  // Why no listed host has an agent, "a: why; b: why"; empty if one has, or none failed.
  std::string WhyNone() const;
  // Whether there is at least one host and all hosts have refused.
  bool AllRefused() const;

 private:
  // A host that is listed, or has an agent:
  //
  //   new --> kWanted, kRefused --Started--> kRunning --not listed--> kUnlisted
  //            ^    ^     ^                   |   |                    |     ^
  //            |    |     +------Failed-------+   +--Left--> kLeft   listed  | not listed
  //            |  Failed                                               v     |
  //            +----+-------------Left, Failed----------------------- kRelisted
  //
  // A host without an agent is removed when it is no longer listed. A kUnlisted host is removed
  // when its agent ends.
  enum class State {
    kWanted,    // needs an agent
    kRefused,   // needs an agent; refused the last one
    kRunning,   // has an agent
    kUnlisted,  // has an agent; no longer listed
    kRelisted,  // has an agent; was unlisted in between
    kLeft,      // needs no agent: the last one ended regularly
  };
  struct Host {
    State state = State::kWanted;
    absl::Duration pause = kFirstPause;
    absl::Time next_try = absl::InfinitePast();
    absl::Time ready_since = absl::InfiniteFuture();
    std::string why;  // of the last failure
  };

  static bool NeedsAgent(const Host& host) {
    return host.state == State::kWanted || host.state == State::kRefused;
  }
  static bool HasAgent(const Host& host);

  std::map<std::string, Host> hosts_;
};

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_HOST_ROSTER_H_
