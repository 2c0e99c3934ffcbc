// What to do when a cancellation comes, for calls that can't look at it themselves.
#ifndef BASE_CANCELLATION_WATCH_H_
#define BASE_CANCELLATION_WATCH_H_

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "base/cancellation.h"
#include "base/fd.h"

namespace hvd {

// Has a thread of its own as long as it lives, if there is anything to wait for. Not thread-safe.
class CancellationWatch {
 public:
  // Calls `then` with the reason, once, on the other thread. `cancellation` may be nullptr: never.
  CancellationWatch(const Cancellation* cancellation,
                    std::function<void(const absl::Status& why)> then);
  // `then` is not called any more.
  ~CancellationWatch();
  CancellationWatch(const CancellationWatch&) = delete;
  CancellationWatch& operator=(const CancellationWatch&) = delete;

 private:
  const Fd end_;  // an eventfd
  std::thread thread_;
};

}  // namespace hvd

#endif  // BASE_CANCELLATION_WATCH_H_
