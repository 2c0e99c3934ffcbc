// The acceptor of a rank's links: accepts connections, authenticates peers, and keeps their
// connections until they are asked for.
#ifndef COLLECTIVES_TCP_LINK_ACCEPTOR_H_
#define COLLECTIVES_TCP_LINK_ACCEPTOR_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>  // NOLINT: its own one
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/net/peer/peer_listener.h"
#include "base/net/wire.h"
#include "collectives/types.h"

namespace hvd::collectives::tcp {

// Accepts on a separate thread, so that a peer can connect even while this rank is busy. At each
// stage of the handshake one stranger per peer and kSpareStrangers are kept; see
// net::peer::PeerListener. Await and Drop belong to one thread.
class LinkAcceptor {
 public:
  static constexpr size_t kSpareStrangers = 128;                  // beside one connection per peer
  static constexpr absl::Duration kPatience = absl::Seconds(30);  // a peer may be starved of CPU

  // Listens at group.address.
  // Errors:
  //   - InvalidArgument: group.address is not a numeric address of this machine.
  //   - Unavailable, ResourceExhausted: the system call's error.
  static absl::StatusOr<std::unique_ptr<LinkAcceptor>> Start(const GroupInfo& group,
                                                             absl::Duration patience = kPatience);
  ~LinkAcceptor();

  // The loop of its thread, until Stop().
  EventLoop& loop() { return *loop_; }
  // The address for peers; kLinkAddressBytes.
  const std::string& address() const { return address_; }

  // Returns the connection that `peer` has opened; blocks until there is one. Later connections of
  // `peer` are refused.
  // Errors:
  //   - DeadlineExceeded: the deadline passed.
  //   - The cancellation's status: it was cancelled.
  absl::StatusOr<net::Wire> Await(int peer, absl::Time deadline, const Cancellation* cancellation);

  // Ends the thread: nothing is accepted any more. The destructor calls it, too.
  void Stop();

  // Closes the connections of peers that Await did not return, and those that come later. Strangers
  // are unaffected.
  void Drop();

 private:
  LinkAcceptor(const GroupInfo& group, absl::Duration patience, std::unique_ptr<EventLoop> loop,
               Fd listener, std::string address);

  void Keep(int peer, net::Wire wire);
  absl::Status NotCome(int peer);

  const GroupInfo group_;
  const std::unique_ptr<EventLoop> loop_;
  const std::string address_;
  const Fd news_;  // an eventfd: a peer has arrived

  net::peer::PeerListener listener_;  // used by thread_ only

  absl::Mutex mutex_;
  std::map<int, net::Wire> arrived_ ABSL_GUARDED_BY(mutex_);
  std::set<int> handed_over_ ABSL_GUARDED_BY(mutex_);
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_LINK_ACCEPTOR_H_
