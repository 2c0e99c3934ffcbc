// Streams of bytes between the ranks of a group, beside its collectives: for the small messages by
// which they agree on what to run.
#ifndef COLLECTIVES_MAILBOX_H_
#define COLLECTIVES_MAILBOX_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::collectives {

// Works on after the communicator that it belongs to was aborted, until that is destroyed. One
// thread at a time, the one that calls the communicator's operations; except AwaitWake and Wake.
//
// A thread that wants to sleep calls PrepareSleep and then AwaitWake, between which another one may
// take its turn.
class Mailbox {
 public:
  virtual ~Mailbox() = default;

  // Neither blocks; both return how many bytes.
  virtual size_t Write(int peer, absl::string_view bytes) = 0;
  virtual size_t Read(int peer, char* buffer, size_t size) = 0;

  virtual bool HasData(int peer) const = 0;
  virtual bool HasRoom(int peer) const = 0;

  // What can be said about a peer; data that came before can still be read.
  enum class PeerState { kThere, kClosed, kDead };
  virtual PeerState state(int peer) const = 0;

  // Says that this rank will write no more.
  virtual void Close() = 0;

  using Ready = absl::FunctionRef<bool()>;
  // Looks for some microseconds whether ready() holds; whether it does. Wake() does not end it.
  virtual bool Look(Ready ready) = 0;
  // From now on peers wake this rank when they write. Returns false if ready() holds already or
  // Wake() was called since the last TakeWake: there is nothing to sleep for.
  virtual bool PrepareSleep(Ready ready) = 0;
  // Sleeps until woken by a peer's word or end or by Wake(), at most for `timeout`.
  virtual void AwaitWake(absl::Duration timeout) = 0;
  // To be called after a sleep: peers need not wake this rank any more.
  virtual void StayAwake() = 0;
  // The same for a thread that takes its turn while another one sleeps.
  virtual void TakeOver() = 0;

  // Ends the running or the next sleep. From any thread; async-signal-safe.
  virtual void Wake() = 0;
  // Whether Wake() was called since the last time.
  virtual bool TakeWake() = 0;
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_MAILBOX_H_
