// The set of hosts of an elastic job that need an agent, and when. Pure.
#ifndef LAUNCHER_JOB_HOST_ROSTER_H_
#define LAUNCHER_JOB_HOST_ROSTER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hvd::launcher::job {

// Every listed host has an agent, or gets one: at once when it is new, and again after a growing
// pause when that failed. A host that has left in good order gets one only when it is listed anew.
// Not thread-safe.
class HostRoster {
 public:
  static constexpr absl::Duration kFirstPause = absl::Seconds(1);
  static constexpr absl::Duration kLongestPause = absl::Minutes(1);

  // Takes the current list of hosts. Returns those that are no longer listed and still have an
  // agent.
  std::vector<std::string> SetHosts(const std::vector<std::string>& hosts);

  // Listed hosts that need an agent now, in order of their names.
  std::vector<std::string> Due(absl::Time now) const;
  // When the next host needs an agent; InfiniteFuture: not by time alone.
  absl::Time NextDue() const;

  // Events of a host's agent. REQUIRES: the host is listed, or has an agent.
  void Started(const std::string& host);
  void Ready(const std::string& host, absl::Time now);
  void Left(const std::string& host);  // the agent ended in good order
  // The agent ended otherwise, or could not be started. `refused`: the host was reached and
  // refused, so that a retry is not likely to do better. Returns whether to warn the user: the
  // reason is new, and the host is still listed.
  bool Failed(const std::string& host, const std::string& why, bool refused, absl::Time now);

  // Why no listed host has an agent, "a: why; b: why"; empty if one has, or none failed.
  std::string WhyNone() const;
  // Whether there are hosts and every one has refused.
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
  // Without an agent, one that is not listed any more is forgotten. One that is kUnlisted is when
  // its agent ends.
  enum class State {
    kWanted,    // needs an agent
    kRefused,   // likewise, and has refused the last
    kRunning,   // has an agent
    kUnlisted,  // likewise, but is not listed
    kRelisted,  // likewise, but was not listed for a while
    kLeft,      // needs none: the last has ended in good order
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
