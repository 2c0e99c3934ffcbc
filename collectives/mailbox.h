// The mailbox interface: byte streams between the ranks of a group, for the small messages of the
// negotiation.
#ifndef COLLECTIVES_MAILBOX_H_
#define COLLECTIVES_MAILBOX_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::collectives {

// Keeps working after its communicator was aborted, until the communicator is destroyed. Belongs to
// one thread at a time, the one that calls the communicator's operations, except for AwaitWake and
// Wake.
//
// A thread that wants to sleep calls PrepareSleep and then AwaitWake; between these another thread
// may take over.
class Mailbox {
 public:
  virtual ~Mailbox() = default;

  // Write and Read don't block. They return the number of bytes that they moved.
  virtual size_t Write(int peer, absl::string_view bytes) = 0;
  virtual size_t Read(int peer, char* buffer, size_t size) = 0;

  virtual bool HasData(int peer) const = 0;
  virtual bool HasRoom(int peer) const = 0;

  // The state of a peer, as far as this rank knows. Data that has arrived can still be read from a
  // closed or dead peer.
  enum class PeerState { kThere, kClosed, kDead };
  virtual PeerState state(int peer) const = 0;

  // Announces that this rank will write no more.
  virtual void Close() = 0;

  using Ready = absl::FunctionRef<bool()>;
  // Polls ready() for some microseconds; returns its last value. Wake() does not end the polling.
  virtual bool Look(Ready ready) = 0;
  // From now on peers wake this rank when they write. Returns false if ready() holds already or
  // Wake() was called since the last TakeWake: there is no reason to sleep.
  virtual bool PrepareSleep(Ready ready) = 0;
  // Sleeps until a peer writes or ends, or Wake() is called, at most for `timeout`.
  virtual void AwaitWake(absl::Duration timeout) = 0;
  // To be called after AwaitWake, by the thread that slept: peers no longer wake this rank.
  virtual void StayAwake() = 0;
  // As StayAwake, for a thread that takes over while another one still sleeps in AwaitWake.
  virtual void TakeOver() = 0;

  // Ends the running or the next sleep. Thread-safe and async-signal-safe.
  virtual void Wake() = 0;
  // Whether Wake() was called since the last call.
  virtual bool TakeWake() = 0;
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_MAILBOX_H_
