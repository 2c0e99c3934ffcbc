#include "base/os/liveness_watch.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::os {

absl::StatusOr<std::unique_ptr<LivenessWatch>> LivenessWatch::Start(
    std::function<void()> on_death) {
  ASSIGN_OR_RETURN(LivenessPage page, LivenessPage::Create());
  std::unique_ptr<LivenessWatch> watch(new LivenessWatch(std::move(page)));
  LivenessWatch* const self = watch.get();
  try {
    watch->thread_ = std::thread([self, on_death = std::move(on_death)] {
      if (self->page_.AwaitDeath() == LivenessPage::End::kDied) on_death();
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("no thread: ", error.what()));
  }
  return watch;
}

LivenessWatch::~LivenessWatch() {
  if (!thread_.joinable()) return;
  page_.Cancel();
  thread_.join();
}

}  // namespace hvd::os
