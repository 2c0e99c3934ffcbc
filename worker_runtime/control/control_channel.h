// The control channel: small messages for the negotiation between ranks, in a star around rank 0.
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

// A listening socket on `address` with a port chosen by the kernel, made before the world is known
// so that the port can be announced.
class ControlListener {
 public:
  // Errors:
  //   - InvalidArgument: not a numeric address.
  //   - Unavailable: the kernel refuses; the message says why.
  static absl::StatusOr<std::unique_ptr<ControlListener>> Open(const std::string& address);
  virtual ~ControlListener() = default;
  virtual int port() const = 0;
  virtual int fd() const = 0;
};

// Framed, ordered, reliable messages between rank 0 and every other rank. Used by one thread at a
// time, except AwaitWake() and Wake().
class ControlChannel {
 public:
  // Rank 0 accepts size-1 peers on `listener`; the others connect to rank 0 at
  // `root_address`:`root_port`. Both sides prove that they know group.secret before anything else
  // is read, under TLS if there is a group.tls; a connection that fails this is dropped. A world of
  // one has no links.
  // Errors:
  //   - DeadlineExceeded: not all peers came; names the missing ranks.
  //   - PermissionDenied: the listener there does not know the secret, or has no certificate of the
  //     job.
  //   - Unavailable: rank 0 can't be reached, or hung up.
  //   - InvalidArgument: not a numeric address.
  //   - The cancellation's status: bounds.cancellation was cancelled.
  static absl::StatusOr<std::unique_ptr<ControlChannel>> Connect(
      const collectives::GroupInfo& group, ControlListener& listener,
      const std::string& root_address, int root_port, const WaitBounds& bounds);
  virtual ~ControlChannel() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sends one message; buffers what the socket does not take and sends it during later calls.
  // Errors:
  //   - Unavailable: the peer is gone; names its rank.
  //   - InvalidArgument: the message is too long.
  virtual absl::Status Send(int peer, absl::string_view message) = 0;

  // Waits until nothing is buffered.
  // Errors:
  //   - DeadlineExceeded: peers don't read; names one.
  virtual absl::Status Flush(absl::Duration timeout) = 0;

  struct Message {
    int peer = 0;
    std::string bytes;
  };
  // Sleeps until messages have come, Wake() was called, or `timeout` has passed; returns the
  // messages, maybe none. Messages that came before a peer's end are returned before the error. The
  // links to the others still work.
  // Errors:
  //   - Unavailable: a peer is gone; names its rank.
  virtual absl::StatusOr<std::vector<Message>> Receive(absl::Duration timeout) = 0;

  // A wait in two halves, between which another thread may take over: if PrepareSleep returns that
  // there is nothing to receive, AwaitWake waits until there is, or for Wake(), or for `timeout`.
  // StayAwake follows. A thread that takes over while another one sleeps calls TakeOver first, and
  // PrepareSleep at the end.
  virtual bool PrepareSleep() = 0;
  virtual void AwaitWake(absl::Duration timeout) = 0;
  virtual void StayAwake() = 0;
  virtual void TakeOver() = 0;

  // Whether taking turns pays: a short wait costs no system call, or there is no peer to wait for.
  virtual bool WaitsCheaply() const = 0;

  // Makes the running or the next Receive or AwaitWake return. From any thread; async-signal-safe.
  virtual void Wake() = 0;

  // Ends cleanly: sends what is buffered, announces the end, and passes incoming messages to
  // `on_message` until all peers have announced their end, or `timeout` has passed, or `give_up`
  // returns true. `give_up` is called first and after every Wake() or message. Nothing else may be
  // called afterwards, except Wake().
  virtual void Finish(absl::Duration timeout, absl::FunctionRef<bool()> give_up,
                      absl::FunctionRef<void(Message)> on_message = Drop) = 0;

 private:
  static void Drop(Message) {}
};

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_CONTROL_CHANNEL_H_
