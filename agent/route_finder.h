// The search for a route to the daemon: the first of the daemon's addresses that accepts a
// connection, and this host's source address on that route.
#ifndef AGENT_ROUTE_FINDER_H_
#define AGENT_ROUTE_FINDER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace hvd::agent {

struct Route {
  std::string daemon_address;  // the candidate, "address:port"
  std::string own_address;     // numeric, without a port
};

// Connects to all candidates in parallel; the first that accepts wins. Not thread-safe: belongs to
// the loop's thread. The destructor cancels the search; `done` is not called after it.
class RouteFinder {
 public:
  // Errors:
  //   - Unavailable: no candidate can be reached; says why for each.
  using Done = std::function<void(absl::StatusOr<Route>)>;

  // Calls `done` once from the loop, after `timeout` at the latest. `done` may destroy the finder.
  RouteFinder(EventLoop& loop, const std::vector<std::string>& candidates, absl::Duration timeout,
              Done done);
  ~RouteFinder();

 private:
  void Try(const std::string& candidate);
  void OnConnected(int fd, const std::string& candidate);
  void Fail(const std::string& candidate, const std::string& why);
  void Finish(absl::StatusOr<Route> result);

  EventLoop& loop_;
  Done done_;
  std::map<int, Fd> attempts_;
  std::vector<std::string> failures_;
  EventLoop::TimerId deadline_;
};

}  // namespace hvd::agent

#endif  // AGENT_ROUTE_FINDER_H_
