// A one-way switch that ends blocking calls early.
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

  // The first reason stays. Does not block. REQUIRES: !why.ok()
  void Cancel(const absl::Status& why);

  // OK until cancelled, then why.
  absl::Status status() const;

  // A descriptor for poll, readable once cancelled. Borrowed. -1, which poll skips, if the process
  // had no descriptor left; waits then last until their own end.
  int fd() const { return event_.get(); }

 private:
  const Fd event_;
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// How long a blocking call may take, and what ends it before. A plain time converts.
struct WaitBounds {
  WaitBounds(absl::Duration t, const Cancellation* c = nullptr)  // NOLINT(runtime/explicit)
      : timeout(t), cancellation(c) {}

  absl::Duration timeout;
  const Cancellation* cancellation;  // borrowed; nullptr: nothing
};

}  // namespace hvd

#endif  // BASE_CANCELLATION_H_
