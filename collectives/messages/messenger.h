// Messages between two ranks of a group, outside of its collectives.
#ifndef COLLECTIVES_MESSAGES_MESSENGER_H_
#define COLLECTIVES_MESSAGES_MESSENGER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cancellation.h"
#include "collectives/key_exchange.h"
#include "collectives/messages/transfer.h"
#include "collectives/types.h"

namespace hvd::collectives::messages {

class MessengerCore;

// One rank's end. Ranks of a host use shared memory, others TCP connections, which are made when
// the first message needs them. It has a segment and connections of its own, so its messages have
// no order with the group's collectives, and neither waits for the other.
//
// Matching: messages of one sender with one tag match receives in the order of both; those with
// different tags do not wait for each other. A receive from kAnySource takes the message of its tag
// that has come first. A rank may send to itself. Size and type must be equal at both ends;
// otherwise both transfers fail, and the message is lost.
//
// A small send is done once its bytes are on their way; a large one, or one of many that the
// receiver has not asked for, once it was received. So two ranks that send before they receive must
// use transfers that they do not wait for in between.
//
// Data moves in the threads that wait, and in a thread of the messenger for transfers that nobody
// waits for.
//
// Thread-safe. In a forked child all transfers fail, and the destructor does nothing.
class Messenger {
 public:
  // Every rank of the group must call it. No other group at group.port may have group.id. Ranks
  // with equal `host_identity` that reach each other share memory; empty: none does with this rank.
  // A group without a port gets one of its own. The time to connect with a rank later is
  // bounds.timeout, too.
  // Errors: those of Backend::Connect.
  static absl::StatusOr<std::unique_ptr<Messenger>> Connect(const GroupInfo& group,
                                                            KeyExchange& keys,
                                                            const WaitBounds& bounds,
                                                            const std::string& host_identity);
  // Calls Leave. REQUIRES: no other call is running.
  ~Messenger();
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  // Start a transfer and return at once. The memory is borrowed until it is done. `then` may be
  // empty; it is called once when the transfer is done, by any thread, also by this one before the
  // call returns. It must neither block nor call the messenger.
  // REQUIRES: the rank is in the group.
  std::shared_ptr<Transfer> Send(int peer, const Message& message, const void* data, size_t bytes,
                                 std::function<void()> then = nullptr);
  std::shared_ptr<Transfer> Receive(int source_or_any, const Message& message, void* data,
                                    size_t bytes, std::function<void()> then = nullptr);

  // Waits for `most` and about a second at most, or until this thread takes a signal. Returns
  // whether the transfer is done. Meanwhile the thread moves data.
  bool WaitAWhile(const Transfer& transfer, absl::Duration most = absl::InfiniteDuration());

  // Calls `listener` with the reason once the messenger has become unusable: a rank has died or
  // given up, or Abort was called. At once if it is unusable already. By any thread; it must
  // neither block nor call the messenger. At most one listener can be set.
  void OnBroken(std::function<void(const absl::Status&)> listener);

  // Leaves cleanly: what was sent arrives. Transfers in flight fail with Aborted, and so do later
  // ones. Does nothing if the messenger is broken.
  void Leave();

  // Whether it has become unusable; before any transfer fails for that reason.
  bool broken() const;

  // Fails all transfers, those in flight soon, and makes the messengers of the other ranks fail as
  // far as they are connected. Does not block. Later reasons are ignored. REQUIRES: !why.ok()
  void Abort(const absl::Status& why);

 private:
  explicit Messenger(std::unique_ptr<MessengerCore> core);

  std::unique_ptr<MessengerCore> core_;
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_MESSENGER_H_
