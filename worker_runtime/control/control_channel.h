// The control channel: carries the negotiation's messages between rank 0 and every other rank.
#ifndef WORKER_RUNTIME_CONTROL_CONTROL_CHANNEL_H_
#define WORKER_RUNTIME_CONTROL_CONTROL_CHANNEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "collectives/types.h"

namespace hvd::worker_runtime::control {

// Messages are delivered whole, in order and reliably. All methods but AwaitWake() and Wake() are
// called by one thread at a time.
class ControlChannel {
 public:
  // How long a message may be on its way after its first part has come. The sender has passed it to
  // its kernel as a whole. A length that was changed on the way, in a frame or in a TLS record,
  // would otherwise make this rank wait for bytes that nobody sends.
  static constexpr absl::Duration kPartPatience = absl::Minutes(1);

  // Connects over TCP. Rank 0 accepts size-1 peers at group.port; the others connect to rank 0 at
  // `root_address`:`root_port`. Before anything else is read, both sides prove that they know
  // group.secret, over TLS if group.tls is set; a connection without a valid proof is dropped.
  // Without TLS all messages are sealed with the secret: a message that was changed on the way is a
  // loss of the peer. A world of one rank has no connections. Errors:
  //   - DeadlineExceeded: not all peers have connected; names the missing ranks. Or rank 0 has not
  //     answered, or has hung up each time.
  //   - PermissionDenied: the listener there does not know the secret, or has no certificate of the
  //     job.
  //   - Unavailable: rank 0 can't be reached, or a system call has failed.
  //   - ResourceExhausted: too many open files.
  //   - InvalidArgument: the address is not numeric.
  //   - The cancellation's status: bounds.cancellation was cancelled.
  static absl::StatusOr<std::unique_ptr<ControlChannel>> Connect(
      const collectives::GroupInfo& group, const std::string& root_address, int root_port,
      const WaitBounds& bounds, absl::Duration part_patience = kPartPatience);
  virtual ~ControlChannel() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sends one message. Buffers what the connection does not take, and sends it during later calls.
  // Errors:
  //   - Unavailable: the peer is gone; names its rank.
  //   - InvalidArgument: the message is too long.
  virtual absl::Status Send(int peer, absl::string_view message) = 0;

  // Waits until nothing is buffered.
  // Errors:
  //   - DeadlineExceeded: a peer does not read; names one.
  virtual absl::Status Flush(absl::Duration timeout) = 0;

  struct Message {
    int peer = 0;
    std::string bytes;
  };
  // Sleeps until messages have arrived, Wake() was called, or `timeout` has passed; returns the
  // messages, maybe none. Messages that a peer has sent before its end are returned before the
  // error. After an error the connections to other peers still work.
  // Errors:
  //   - Unavailable: a peer is gone; names its rank.
  virtual absl::StatusOr<std::vector<Message>> Receive(absl::Duration timeout) = 0;

  // A Receive in parts, for threads that share the channel. PrepareSleep announces that this thread
  // is about to sleep; false: there is something to receive. Then AwaitWake, during which another
  // thread may use the channel, sleeps until something arrives, Wake() is called or `timeout` has
  // passed. StayAwake ends the announcement. A thread that uses the channel while another one
  // sleeps calls TakeOver first and PrepareSleep at the end.
  virtual bool PrepareSleep() = 0;
  virtual void AwaitWake(absl::Duration timeout) = 0;
  virtual void StayAwake() = 0;
  virtual void TakeOver() = 0;

  // Whether it pays that user threads take turns at the channel: a short wait costs no system call,
  // or there is no peer to wait for.
  virtual bool WaitsCheaply() const = 0;

  // Makes the running or the next Receive or AwaitWake return. Can be called from any thread;
  // async-signal-safe.
  virtual void Wake() = 0;

  // Ends cleanly: sends what is buffered, announces the end, and passes incoming messages to
  // `on_message` until all peers have announced their end, `timeout` has passed, or `give_up`
  // returns true. `give_up` is called at the start and after every Wake() or message. Afterwards
  // only Wake() may be called.
  virtual void Finish(absl::Duration timeout, absl::FunctionRef<bool()> give_up,
                      absl::FunctionRef<void(Message)> on_message = Drop) = 0;

 private:
  static void Drop(Message) {}
};

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_CONTROL_CHANNEL_H_
