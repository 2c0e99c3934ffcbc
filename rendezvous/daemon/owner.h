// The connection to the owner: the program that has started the daemon for one job (--owner). The
// owner gets the job's credentials over a socket, and the job ends when the owner ends.
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

// Used by the loop's thread only. The loop must outlive it.
class Owner {
 public:
  // Takes over the socket with this descriptor number, the value of --owner.
  // Errors:
  //   - InvalidArgument: it is not a connected unix socket; one line for the user.
  static absl::StatusOr<std::unique_ptr<Owner>> Open(EventLoop& loop, int descriptor);
  ~Owner();

  // Sends one line, a JSON object with the members:
  // - "addresses": those of the daemon;
  // - "credentials": the text of a token file;
  // - "server", "member": the certificates of the daemon and of agents and workers, each an object
  //   of PEM texts "ca", "certificate" and "key".
  // Errors:
  //   - Unavailable: the owner has ended.
  absl::Status Tell(const PersistentJob& job, const std::vector<std::string>& addresses);

  struct Callbacks {
    // The owner has sent the line "drain HOST".
    std::function<void(const std::string& host)> on_drain;
    // The owner has closed its end of the socket, or has exited; called once.
    std::function<void()> on_end;
  };

  // Starts to read the owner's lines. Lines that Callbacks does not list are ignored.
  // Errors: those of EventLoop::Watch.
  absl::Status Watch(Callbacks callbacks);

 private:
  Owner(EventLoop& loop, Fd socket) : loop_(loop), socket_(std::move(socket)) {}
  void OnReadable();
  void TakeLines();

  EventLoop& loop_;
  const Fd socket_;
  Callbacks callbacks_;
  std::string said_;  // an incomplete line
};

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_OWNER_H_
