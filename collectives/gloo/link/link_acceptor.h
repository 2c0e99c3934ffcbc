// The acceptor of a rank's links: accepts connections, authenticates peers, and keeps their
// connections until they are asked for.
#ifndef COLLECTIVES_GLOO_LINK_LINK_ACCEPTOR_H_
#define COLLECTIVES_GLOO_LINK_LINK_ACCEPTOR_H_

#include <list>
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
#include "base/net/wire.h"
#include "collectives/gloo/link/link_opening.h"
#include "collectives/types.h"

namespace hvd::collectives::gloo::link {

// Runs on a separate thread as long as it lives, so that a peer can connect whatever this rank does
// at that moment. A connection that has not proved to belong to the group is a stranger. It is
// closed after `patience`, or at once after a wrong proof. The limit of strangers leaves room for
// all peers among them; at the limit the oldest one that has sent nothing is closed first. While no
// more descriptors can be opened, connections wait in the backlog.
//
// Await and Drop belong to one thread.
class LinkAcceptor {
 public:
  static constexpr size_t kSpareStrangers = 256;  // beside one connection per peer
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // Listens at group.address.
  // Errors:
  //   - InvalidArgument: that is not a numeric address of this machine.
  //   - Unavailable, ResourceExhausted: the kernel refuses; says why.
  static absl::StatusOr<std::unique_ptr<LinkAcceptor>> Start(const GroupInfo& group,
                                                             absl::Duration patience = kPatience);
  ~LinkAcceptor();

  // The address for peers; kLinkAddressBytes.
  const std::string& address() const { return address_; }

  // The connection that `peer` opens; blocks until it is there. Later ones of `peer` are refused.
  // Errors:
  //   - DeadlineExceeded: the deadline passed.
  //   - The cancellation's status: it was cancelled.
  absl::StatusOr<net::Wire> Await(int peer, absl::Time deadline, const Cancellation* cancellation);

  // Closes the peers' connections that were not asked for, now and later; strangers stay.
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
    bool writes = false;  // what it is watched for
  };
  using Strangers = std::list<Stranger>;

  LinkAcceptor(const GroupInfo& group, absl::Duration patience, std::unique_ptr<EventLoop> loop,
               Fd listener, std::string address);

  // On its thread.
  void TakeNext();
  void Admit(Fd fd);
  void Advance(Strangers::iterator stranger);
  void Forget(Strangers::iterator stranger);
  bool ForgetOldestSilent();
  void PauseListening();

  void Keep(int peer, net::Wire wire);
  absl::Status NotCome(int peer);

  const GroupInfo group_;
  const absl::Duration patience_;
  const std::unique_ptr<EventLoop> loop_;
  const Fd listener_;
  const std::string address_;
  const Fd news_;  // an eventfd: a peer has arrived

  Strangers strangers_;  // oldest first; the thread's

  absl::Mutex mutex_;
  std::map<int, net::Wire> arrived_ ABSL_GUARDED_BY(mutex_);
  std::set<int> handed_over_ ABSL_GUARDED_BY(mutex_);
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;
  int refused_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_LINK_ACCEPTOR_H_
