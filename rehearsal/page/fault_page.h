// A page that an agent shares with one worker of a rehearsal (horovodrun --inject): the harm that
// the worker's process does to itself, as ordered. There is none in any other job.
#ifndef REHEARSAL_PAGE_FAULT_PAGE_H_
#define REHEARSAL_PAGE_FAULT_PAGE_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"

namespace hvd::rehearsal::page {

// One order at a time: the agent writes it, and withdraws it when its time is over; the worker acts
// on it. Thread-safe. Owns the mapping; sealed, so that neither process can shrink the memory under
// the other one.
class FaultPage {
 public:
  enum class Order : uint32_t {
    kNone,
    kException,   // raise at the next commit
    kSlowRank,    // submit each operation late
    kSlowLink,    // begin each collective late
    kCutLink,     // fail the next collective
    kWrongValue,  // change one bit of the next result
    kFullDisk,    // no checkpoint can be written
  };

  // A new page without an order.
  // Errors:
  //   - codes of errno: no memory or descriptor available.
  static absl::StatusOr<std::unique_ptr<FaultPage>> Create();
  // Maps the page of a descriptor that came from Create, usually in another process.
  // Errors:
  //   - InvalidArgument: the descriptor is not that of such a page.
  //   - other codes of errno: the page can't be mapped.
  static absl::StatusOr<std::unique_ptr<FaultPage>> Map(Fd fd);
  ~FaultPage();
  FaultPage(const FaultPage&) = delete;
  FaultPage& operator=(const FaultPage&) = delete;

  // The descriptor to send to the other process; close-on-exec. Borrowed.
  int fd() const { return fd_.get(); }

  // ---- The agent's side
  // Replaces the order; `delay` is that of a slow rank or link.
  void Give(Order order, absl::Duration delay);
  void Withdraw();
  // Whether the worker has acted on the newest order.
  bool done() const;

  // ---- The worker's side
  // Whether this is the order now. One load: cheap enough for each operation.
  bool Orders(Order order) const;
  absl::Duration delay() const;
  // Records that the worker has acted on the order, which stays.
  void NoteDone();
  // Ends an order that is done once, and records that. False: it is not the order, or another
  // thread has taken it.
  bool Take(Order order);

 private:
  struct Content {
    std::atomic<uint32_t> order;
    std::atomic<uint32_t> delay_ms;
    std::atomic<uint32_t> done;
  };
  static_assert(std::atomic<uint32_t>::is_always_lock_free);

  FaultPage(Fd fd, void* memory) : fd_(std::move(fd)), content_(static_cast<Content*>(memory)) {}

  const Fd fd_;
  Content* const content_;
};

}  // namespace hvd::rehearsal::page

#endif  // REHEARSAL_PAGE_FAULT_PAGE_H_
