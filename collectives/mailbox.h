// Byte streams between the ranks of a group, beside its collectives: for the small messages of the
// negotiation.
#ifndef COLLECTIVES_MAILBOX_H_
#define COLLECTIVES_MAILBOX_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::collectives {

// Works after its communicator was aborted, until that is destroyed. Belongs to one thread at a
// time, the one that calls the communicator's operations; except AwaitWake and Wake.
//
// A thread that wants to sleep calls PrepareSleep and then AwaitWake; between these another thread
// may take over.
class Mailbox {
 public:
  virtual ~Mailbox() = default;

  // Neither blocks; both return the number of bytes.
  virtual size_t Write(int peer, absl::string_view bytes) = 0;
  virtual size_t Read(int peer, char* buffer, size_t size) = 0;

  virtual bool HasData(int peer) const = 0;
  virtual bool HasRoom(int peer) const = 0;

  // The known state of a peer; data that came before can still be read.
  enum class PeerState { kThere, kClosed, kDead };
  virtual PeerState state(int peer) const = 0;

  // Announces that this rank will write no more.
  virtual void Close() = 0;

  using Ready = absl::FunctionRef<bool()>;
  // Polls ready() for some microseconds; returns its last value. Wake() does not end it.
  virtual bool Look(Ready ready) = 0;
  // From now on peers wake this rank when they write. Returns false if ready() holds already or
  // Wake() was called since the last TakeWake: there is no reason to sleep.
  virtual bool PrepareSleep(Ready ready) = 0;
  // Sleeps until a peer writes or ends, or Wake() is called, at most for `timeout`.
  virtual void AwaitWake(absl::Duration timeout) = 0;
  // Call it after a sleep: peers need not wake this rank any more.
  virtual void StayAwake() = 0;
  // The same for a thread that takes over while another one sleeps.
  virtual void TakeOver() = 0;

  // Ends the running or the next sleep. From any thread; async-signal-safe.
  virtual void Wake() = 0;
  // Whether Wake() was called since the last call.
  virtual bool TakeWake() = 0;
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_MAILBOX_H_
