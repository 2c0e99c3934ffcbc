#include "collectives/shm/shm_mailbox.h"

#include <atomic>
#include <cstdint>

#include "collectives/shm/byte_pipe.h"

namespace hvd::collectives::shm {

size_t ShmMailbox::Write(int peer, absl::string_view bytes) {
  const size_t written = WriteToPipe(Out(peer), bytes.data(), bytes.size());
  if (written > 0) links_.Notify(peer);
  return written;
}

size_t ShmMailbox::Read(int peer, char* buffer, size_t size) {
  segment::BytePipe& pipe = In(peer);
  const uint64_t before = pipe.read.load(std::memory_order_relaxed);
  const size_t read = ReadFromPipe(pipe, buffer, size);
  if (read == 0) return 0;
  // The writer may have filled the pipe while this rank copied, and sleep for lack of room. It has
  // stored `written` before it looked at `read` for the last time (PrepareSleep has the fence in
  // between), so if it missed the new `read`, this load sees a pipe that was full.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint64_t written = pipe.written.load(std::memory_order_relaxed);
  if (written - before >= segment::kPipeBytes) links_.Notify(peer);
  return read;
}

bool ShmMailbox::HasData(int peer) const { return hvd::collectives::shm::HasData(In(peer)); }

bool ShmMailbox::HasRoom(int peer) const { return hvd::collectives::shm::HasRoom(Out(peer)); }

Mailbox::PeerState ShmMailbox::state(int peer) const {
  const segment::RankState& state = links_.segment().state(peer);
  if (state.mail_closed.load(std::memory_order_acquire) != 0) return PeerState::kClosed;
  return links_.dead(peer) ? PeerState::kDead : PeerState::kThere;
}

void ShmMailbox::Close() {
  links_.own_state().mail_closed.store(1, std::memory_order_release);
  links_.NotifyAll();
}

bool ShmMailbox::Look(Ready ready) { return links_.Look(ready); }

// PrepareSleep and Wake form a Dekker pattern with sequentially consistent accesses: this thread
// stores `sleeping_` and then loads `woken_`; Wake stores `woken_` and then loads `sleeping_`. So
// either this thread sees `woken_`, or Wake sees `sleeping_` and rings the bell. The bell is a
// counter, so ringing it before the thread sleeps is not lost.
bool ShmMailbox::PrepareSleep(Ready ready) {
  sleeping_.store(true);
  return links_.PrepareSleep([&] { return woken_.load() || ready(); });
}

void ShmMailbox::AwaitWake(absl::Duration timeout) {
  links_.AwaitWake(timeout);
  sleeping_.store(false);
}

void ShmMailbox::Wake() {
  woken_.store(true);
  if (sleeping_.load()) links_.RingOwn();
}

}  // namespace hvd::collectives::shm
