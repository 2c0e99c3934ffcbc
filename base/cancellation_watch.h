// A callback for a cancellation, for blocking calls that can't watch one themselves.
#ifndef BASE_CANCELLATION_WATCH_H_
#define BASE_CANCELLATION_WATCH_H_

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "base/cancellation.h"
#include "base/fd.h"

namespace hvd {

// Runs one thread while it lives, if there is a cancellation to wait for. Not thread-safe.
class CancellationWatch {
 public:
  // Calls `then` with the reason, once, on that thread. `cancellation` nullptr: never.
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
