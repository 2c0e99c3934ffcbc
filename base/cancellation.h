// A cancellation token that ends blocking calls early. It can't be reset.
#ifndef BASE_CANCELLATION_H_
#define BASE_CANCELLATION_H_

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/fd.h"

namespace hvd {

// Thread-safe.
class Cancellation {
 public:
  Cancellation();

  // Cancels. The reason of the first call is kept. Does not block. REQUIRES: !why.ok()
  void Cancel(const absl::Status& why);

  // OK until cancelled, then the reason.
  absl::Status status() const;

  // A descriptor for poll, readable once cancelled. Borrowed. -1 if the process had no descriptor
  // left: poll ignores it, so waits are not ended early.
  int fd() const { return event_.get(); }

 private:
  const Fd event_;
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// The time limit of a blocking call, and an optional cancellation. A duration converts implicitly.
struct WaitBounds {
  // NOLINTNEXTLINE(google-explicit-constructor)
  WaitBounds(absl::Duration t, const Cancellation* c = nullptr) : timeout(t), cancellation(c) {}

  absl::Duration timeout;
  const Cancellation* cancellation;  // borrowed; may be nullptr
};

}  // namespace hvd

#endif  // BASE_CANCELLATION_H_
