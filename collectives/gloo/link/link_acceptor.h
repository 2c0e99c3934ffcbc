// The acceptor of a rank's links: accepts connections, authenticates peers, and keeps their
// connections until they are asked for.
#ifndef COLLECTIVES_GLOO_LINK_LINK_ACCEPTOR_H_
#define COLLECTIVES_GLOO_LINK_LINK_ACCEPTOR_H_

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
#include "base/net/acceptor.h"
#include "base/net/strangers.h"
#include "base/net/wire.h"
#include "collectives/gloo/link/link_opening.h"
#include "collectives/types.h"

namespace hvd::collectives::gloo::link {

// Accepts on a separate thread, so that a peer can connect even while this rank is busy.
//
// A connection that is not authenticated yet is a stranger. It is closed after `patience`, or at
// once after a wrong proof. At each stage of the handshake at most one stranger per peer and
// kSpareStrangers are kept; net::Strangers decides which one goes.
// While the process has no file descriptor left, new connections wait in the listener's backlog.
//
// Await and Drop belong to one thread.
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

  // The address for peers; kLinkAddressBytes.
  const std::string& address() const { return address_; }

  // Returns the connection that `peer` has opened; blocks until there is one. Later connections of
  // `peer` are refused.
  // Errors:
  //   - DeadlineExceeded: the deadline passed.
  //   - The cancellation's status: it was cancelled.
  absl::StatusOr<net::Wire> Await(int peer, absl::Time deadline, const Cancellation* cancellation);

  // Closes the connections of peers that Await did not return, and those that come later. Strangers
  // are unaffected.
  void Drop();

 private:
  struct Stranger {
    Stranger(Fd fd, const GroupInfo& group)
        : opening(net::Wire(std::move(fd), group.tls, net::TlsEnd::kAccepts),
                  [&group](std::string binding) {
                    return MakeAcceptorHandshake(kLinkProtocol, group, std::move(binding));
                  }) {}

    LinkOpening opening;
    EventLoop::TimerId expiry;
    bool writes = false;  // whether the loop waits until it is writable, not readable
  };
  using Id = net::Strangers::Id;

  LinkAcceptor(const GroupInfo& group, absl::Duration patience, std::unique_ptr<EventLoop> loop,
               Fd listener, std::string address);

  // These run on thread_.
  void Admit(Fd fd);
  void Advance(Id id);
  void KeepToTheBound();
  bool MakeRoom();
  Stranger TakeOut(Id id);
  void Refuse(Id id);

  void Keep(int peer, net::Wire wire);
  absl::Status NotCome(int peer);

  const GroupInfo group_;
  const absl::Duration patience_;
  const std::unique_ptr<EventLoop> loop_;
  const std::string address_;
  const Fd news_;  // an eventfd: a peer has arrived

  // Used by thread_ only.
  net::Acceptor acceptor_;
  net::Strangers strangers_;
  std::map<Id, Stranger> openings_;  // of strangers_

  absl::Mutex mutex_;
  std::map<int, net::Wire> arrived_ ABSL_GUARDED_BY(mutex_);
  std::set<int> handed_over_ ABSL_GUARDED_BY(mutex_);
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;
  int refused_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_LINK_ACCEPTOR_H_
