// The program that starts the daemon for a job of its own: it gets the job's credentials over a
// socket, and the job ends with it.
#ifndef RENDEZVOUS_DAEMON_OWNER_H_
#define RENDEZVOUS_DAEMON_OWNER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "rendezvous/daemon/persistent_job.h"

namespace hvd::rendezvous::daemon {

// Belongs to the loop's thread, which must outlive it.
class Owner {
 public:
  // `descriptor`: the number that the owner has given with --owner.
  // Errors:
  //   - InvalidArgument: it is not a connected unix socket; one line for the user.
  static absl::StatusOr<std::unique_ptr<Owner>> Open(EventLoop& loop, int descriptor);
  ~Owner();

  // Sends one line, a JSON object: "addresses" of the daemon; "credentials", the text of a token
  // file; "server" and "member", each with PEM texts "ca", "certificate" and "key": the daemon's
  // own and that of agents and workers.
  // Errors:
  //   - Unavailable: the owner has ended.
  absl::Status Tell(const PersistentJob& job, const std::vector<std::string>& addresses);

  struct Callbacks {
    // The owner has said "drain HOST", a line: that host leaves the job.
    std::function<void(const std::string& host)> on_drain;
    // The owner has closed its end, or has ended; called once.
    std::function<void()> on_end;
  };

  // From now on the owner is listened to. Other lines than those of Callbacks are ignored.
  // Errors: those of EventLoop::Watch.
  absl::Status Watch(Callbacks callbacks);

 private:
  Owner(EventLoop& loop, Fd socket) : loop_(loop), socket_(std::move(socket)) {}
  void OnReadable();
  void TakeLines();

  EventLoop& loop_;
  const Fd socket_;
  Callbacks callbacks_;
  std::string said_;  // the beginning of a line
};

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_OWNER_H_
