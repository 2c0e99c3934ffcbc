#include "collectives/shm/shm_links.h"

#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os/usable_cores.h"
#include "base/status_macros.h"
#include "collectives/links/patience.h"

namespace hvd::collectives::shm {
namespace {

// Waking a sleeping thread takes about 30 us, so polling for much longer gains nothing.
constexpr absl::Duration kLookFor = absl::Microseconds(50);
constexpr int kLooksPerClockReading = 32;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShmLinks>> ShmLinks::Make(segment::SegmentSetup setup, int rank,
                                                         int size) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return absl::ErrnoToStatus(errno, "no epoll");
  std::unique_ptr<ShmLinks> links(new ShmLinks(std::move(setup), rank, size, std::move(epoll)));
  const auto watch = [&](const Fd& fd, uint64_t tag) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.u64 = tag;
    return !fd.valid() || epoll_ctl(links->epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0;
  };
  // The tags of events: 0..size-1 is a link, size the own bell, size+1+r the process of rank r.
  bool watched = watch(links->setup_.bells[rank], size);
  for (size_t i = 0; i < links->setup_.links.size(); ++i) {
    watched = watched && watch(links->setup_.links[i], i);
  }
  for (size_t peer = 0; peer < links->setup_.processes.size(); ++peer) {
    const bool own = static_cast<int>(peer) == rank;
    watched = watched && (own || watch(links->setup_.processes[peer], size + 1 + peer));
  }
  if (!watched) return absl::ErrnoToStatus(errno, "epoll_ctl");
  return links;
}

ShmLinks::ShmLinks(segment::SegmentSetup setup, int rank, int size, Fd epoll)
    : setup_(std::move(setup)),
      rank_(rank),
      size_(size),
      epoll_(std::move(epoll)),
      waiting_(size <= os::UsableCores() ? Waiting::kSpin : Waiting::kYield),
      dead_(size) {}

ShmLinks::~ShmLinks() {
  if (broken()) return;
  own_state().left.store(1, std::memory_order_release);
  NotifyAll();
}

absl::Status ShmLinks::Await(Missing missing, absl::Duration timeout) {
  links::Patience patience(timeout);
  uint64_t moves = 0;
  const auto is_over = [&] {
    return missing() < 0 || broken() ||
           segment().header().broken_by.load(std::memory_order_relaxed) != 0;
  };
  while (true) {
    Look(is_over);
    const int peer = missing();
    if (peer < 0) return absl::OkStatus();
    RETURN_IF_ERROR(Check());
    const absl::Time now = Clock::Real().Now();
    const uint64_t before = std::exchange(moves, MovesElsewhere());
    // A rank that has left wrote everything before (release, acquire), so if it is still missing
    // now, it will never come.
    if (segment().state(peer).left.load(std::memory_order_acquire) != 0 && missing() == peer) {
      Break(absl::UnavailableError(absl::StrCat("rank ", peer, " is gone: it has left")), peer);
    } else if (patience.IsOver(now, moves != before)) {
      Break(absl::DeadlineExceededError(absl::StrCat("rank ", peer, " has not arrived in time")),
            peer);
    } else if (PrepareSleep(is_over)) {
      AwaitWake(patience.UntilNextLook(now));
      StayAwake();
    }
    RETURN_IF_ERROR(status());
  }
}

// Their sum, since each counter only grows.
uint64_t ShmLinks::MovesElsewhere() {
  uint64_t moves = 0;
  for (int rank = 0; rank < size_; ++rank) {
    moves += segment().state(rank).moves_elsewhere.load(std::memory_order_relaxed);
  }
  return moves;
}

bool ShmLinks::Look(absl::FunctionRef<bool()> ready) {
  absl::Time give_up = absl::InfiniteFuture();
  for (int looks = 1;; ++looks) {
    if (ready()) return true;
    if (waiting_ == Waiting::kYield) sched_yield();
    Pause();
    if (looks % kLooksPerClockReading != 0) continue;
    // Lets other threads of the ranks run even if there is a core for each rank.
    sched_yield();
    const absl::Time now = Clock::Real().Now();
    if (give_up == absl::InfiniteFuture()) give_up = now + kLookFor;
    if (now >= give_up) return false;
  }
}

absl::Status ShmLinks::Check() {
  if (broken()) return status();
  const uint32_t by = segment().header().broken_by.load(std::memory_order_acquire);
  if (by == 0) return absl::OkStatus();
  const int cause = static_cast<int>(by) - 1;
  Break(absl::UnavailableError(absl::StrCat("the group is broken because of rank ", cause)), cause);
  return status();
}

bool ShmLinks::PrepareSleep(absl::FunctionRef<bool()> ready) {
  own_state().asleep.store(1, std::memory_order_seq_cst);
  // Memory order: this fence pairs with the one in Notify. Here: store `asleep`, fence, load the
  // awaited data. There: store the awaited data, fence, load `asleep`. At least one of the two
  // loads sees the other's store, so no wake-up is lost. Release and acquire alone would not order
  // a store before a later load, so both loads could miss.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!ready()) return true;
  own_state().asleep.store(0, std::memory_order_relaxed);
  return false;
}

void ShmLinks::AwaitWake(absl::Duration timeout) {
  const int64_t milliseconds = timeout == absl::InfiniteDuration()
                                   ? -1
                                   : std::max<int64_t>(absl::ToInt64Milliseconds(timeout) + 1, 0);
  epoll_event event;
  epoll_wait(epoll_.get(), &event, 1, static_cast<int>(std::min<int64_t>(milliseconds, 1 << 30)));
}

void ShmLinks::StayAwake() {
  TakeOver();
  epoll_event events[8];
  const int count = epoll_wait(epoll_.get(), events, 8, 0);
  for (int i = 0; i < count; ++i) HandleEvent(events[i].data.u64);
}

void ShmLinks::HandleEvent(uint64_t tag) {
  if (tag == static_cast<uint64_t>(size_)) {
    uint64_t times = 0;
    [[maybe_unused]] const ssize_t got = read(setup_.bells[rank_].get(), &times, sizeof(times));
    return;
  }
  const bool is_process = tag > static_cast<uint64_t>(size_);
  // Nothing is sent on a link after the setup, so an event means that its other end has closed.
  Fd& ended = is_process ? setup_.processes[tag - size_ - 1] : setup_.links[tag];
  const int peer = is_process   ? static_cast<int>(tag) - size_ - 1
                   : rank_ == 0 ? static_cast<int>(tag)
                                : 0;
  // close() alone would not remove the descriptor from the epoll set: other ranks hold the same
  // open file description of a pidfd.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ended.get(), nullptr);
  ended.reset();
  if (segment().state(peer).left.load(std::memory_order_acquire) != 0) return;
  dead_[peer] = true;
  // That process may have ended because of another rank's failure, which it has published.
  if (!Check().ok()) return;
  Break(absl::UnavailableError(absl::StrCat("rank ", peer, " is gone: its process has ended")),
        peer);
}

void ShmLinks::Ring(int rank) {
  const uint64_t once = 1;
  // Errors are ignored: the counter would block only when it is full, and then the reader wakes
  // anyway.
  [[maybe_unused]] const ssize_t written = write(setup_.bells[rank].get(), &once, sizeof(once));
}

void ShmLinks::Notify(int peer) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // see PrepareSleep
  std::atomic<uint32_t>& asleep = segment().state(peer).asleep;
  // The exchange makes only one rank ring the bell. If the peer has woken meanwhile, the bell
  // causes one needless wake-up.
  if (asleep.load(std::memory_order_relaxed) != 0 && asleep.exchange(0) != 0) Ring(peer);
}

void ShmLinks::NotifyAll() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // see PrepareSleep
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    std::atomic<uint32_t>& asleep = segment().state(peer).asleep;
    if (asleep.load(std::memory_order_relaxed) != 0 && asleep.exchange(0) != 0) Ring(peer);
  }
}

absl::Status ShmLinks::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void ShmLinks::Break(const absl::Status& why, int cause) {
  {
    absl::MutexLock lock(&mutex_);
    if (!absl::IsAborted(status_)) status_ = why;
  }
  broken_.store(true);
  // Only the first failure of the group is published: later ones are its consequences.
  uint32_t nobody = 0;
  segment().header().broken_by.compare_exchange_strong(nobody, 1 + cause);
  for (int rank = 0; rank < size_; ++rank) Ring(rank);
}

}  // namespace hvd::collectives::shm
