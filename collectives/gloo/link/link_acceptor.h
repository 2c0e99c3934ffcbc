// The one door of a rank in a mesh: takes connections, finds out which of them are from peers, and
// keeps those until they are asked for.
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

// Works on a thread of its own, as long as it lives, so that a peer can connect whatever this rank
// does at that moment. Who has not proved that it belongs to the group is nobody: it is hung up on
// after `patience`, or at once if it proves the wrong thing; of such strangers so many are kept
// that all peers find a place among them, and who has said nothing yet must go first. While no more
// files can be opened they wait outside.
//
// Await and Drop belong to one thread.
class LinkAcceptor {
 public:
  static constexpr size_t kSpareStrangers = 256;  // beside one connection of each peer
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // Listens at group.address.   InvalidArgument: that is not a numeric address of this machine.
  // Unavailable, ResourceExhausted: the kernel refuses; says why.
  static absl::StatusOr<std::unique_ptr<LinkAcceptor>> Start(const GroupInfo& group,
                                                             absl::Duration patience = kPatience);
  ~LinkAcceptor();

  // Where peers find it; kLinkAddressBytes.
  const std::string& address() const { return address_; }

  // The connection of `peer`, which it opens; blocks until it is there. Its later ones are refused.
  //   DeadlineExceeded; the cancellation's status.
  absl::StatusOr<net::Wire> Await(int peer, absl::Time deadline, const Cancellation* cancellation);

  // Hangs up on everyone who was not asked for, strangers apart, and on those who come.
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
  const Fd news_;  // an eventfd: somebody has arrived

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
