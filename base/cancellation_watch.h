// A cancellation callback, for blocking calls that can't poll a Cancellation.
#ifndef BASE_CANCELLATION_WATCH_H_
#define BASE_CANCELLATION_WATCH_H_

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "base/cancellation.h"
#include "base/fd.h"

namespace hvd {

// Owns a thread that waits for the cancellation; no thread without one. Not thread-safe.
class CancellationWatch {
 public:
  // Calls `then` once with the reason, on the owned thread. `cancellation` is borrowed; nullptr:
  // `then` is never called.
  CancellationWatch(const Cancellation* cancellation,
                    std::function<void(const absl::Status& why)> then);
  // Joins the thread; `then` is not called after this.
  ~CancellationWatch();
  CancellationWatch(const CancellationWatch&) = delete;
  CancellationWatch& operator=(const CancellationWatch&) = delete;

 private:
  const Fd end_;  // an eventfd
  std::thread thread_;
};

}  // namespace hvd

#endif  // BASE_CANCELLATION_WATCH_H_
