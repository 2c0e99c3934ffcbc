// The search for a route to the daemon: the first of the daemon's addresses at which it is found,
// and this host's source address on that route.
#ifndef AGENT_ROUTE_FINDER_H_
#define AGENT_ROUTE_FINDER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/net/wire.h"

namespace hvd::agent {

struct Route {
  std::string daemon_address;  // the candidate, "address:port"
  std::string own_address;     // numeric, without a port
};

// Connects to all candidates in parallel. The first at which the daemon proves itself wins: at an
// address of the daemon's machine there may be another program here. A candidate that hangs up is
// tried again: a daemon to which a crowd of strangers connects does so. Of a single candidate no
// proof is needed, since there is no choice, and every connection to it will ask for one.
// Not thread-safe: belongs to the loop's thread. The destructor cancels the search; `done` is not
// called after it.
class RouteFinder {
 public:
  // Errors:
  //   - Unavailable: the daemon was found at no candidate; says why for each.
  using Done = std::function<void(absl::StatusOr<Route>)>;

  // Calls `done` once from the loop: after `timeout` at the latest if no candidate accepts a
  // connection by then, or else after three times that. `done` may destroy the finder.
  // `tls` names the daemon as the server; it may be null for a single candidate.
  RouteFinder(EventLoop& loop, const std::vector<std::string>& candidates,
              std::shared_ptr<const net::TlsContext> tls, absl::Duration timeout, Done done);
  ~RouteFinder();

 private:
  struct Attempt {
    std::string candidate;
    std::string own_address;  // empty: not connected yet
    Fd fd;
    net::Wire wire;  // takes the descriptor when it is connected
  };

  void OnLate(absl::Duration timeout);
  void Try(const std::string& candidate);
  void Advance(int fd);
  void OnConnected(int fd);
  void Prove(int fd);
  void Drop(int fd, const std::string& why);
  void TryAgainLater(int fd);
  void FinishIfAllFailed();
  void StopTrying();
  void Fail(const std::string& candidate, const std::string& why);
  void Finish(absl::StatusOr<Route> result);

  EventLoop& loop_;
  const std::shared_ptr<const net::TlsContext> tls_;  // null: no proof is needed
  Done done_;
  std::map<int, Attempt> attempts_;                  // by the descriptor
  std::map<EventLoop::TimerId, std::string> later_;  // the candidates that have hung up
  std::vector<std::string> failures_;
  EventLoop::TimerId deadline_;
  bool is_late_ = false;  // the first time limit has passed, but a candidate has accepted
};

}  // namespace hvd::agent

#endif  // AGENT_ROUTE_FINDER_H_
