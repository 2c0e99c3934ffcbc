// A watch for another process's death, which fires as soon as the kernel begins to tear it down.
#ifndef BASE_OS_LIVENESS_WATCH_H_
#define BASE_OS_LIVENESS_WATCH_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "base/os/liveness_page.h"

namespace hvd::os {

// Owns a LivenessPage and a thread that waits for the holder's death. Not thread-safe.
class LivenessWatch {
 public:
  // Calls `on_death` at most once, from the watch's thread.
  // Errors:
  //   - ResourceExhausted: no thread available.
  //   - any other: as LivenessPage::Create.
  static absl::StatusOr<std::unique_ptr<LivenessWatch>> Start(std::function<void()> on_death);
  // Ends the thread and waits for it; `on_death` is not called after this.
  ~LivenessWatch();

  // The page's descriptor, for the watched process. Borrowed.
  int page_fd() const { return page_.fd(); }
  // Whether the watched process is busy, or was when it died.
  bool busy() const { return page_.busy(); }

 private:
  explicit LivenessWatch(LivenessPage page) : page_(std::move(page)) {}

  LivenessPage page_;
  std::thread thread_;
};

}  // namespace hvd::os

#endif  // BASE_OS_LIVENESS_WATCH_H_
