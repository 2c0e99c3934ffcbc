#include "collectives/gloo/gloo_glue.h"

#include <signal.h>

#include <algorithm>
#include <ctime>
#include <exception>

#include "gloo/common/error.h"

namespace hvd::collectives::gloo {
namespace {

sigset_t Sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

absl::Status GlooCall(absl::FunctionRef<void()> call) {
  try {
    call();
    return absl::OkStatus();
    // The only exception that tells of a peer or the network. All others are misuse or exhaustion,
    // on this rank alone.
  } catch (const ::gloo::IoException& e) {
    return absl::UnavailableError(e.what());
  } catch (const std::exception& e) {
    return absl::InternalError(e.what());
  }
}

std::chrono::milliseconds GlooTimeout(absl::Duration duration) {
  // An infinite duration has no number of milliseconds, and Gloo adds its timeout to the present
  // time, which must not overflow.
  const absl::Duration longest = absl::Hours(24 * 365 * 10);
  // Rounded up, so that Gloo's timeout does not expire before the caller's deadline.
  const int64_t ms = absl::ToInt64Milliseconds(std::min(duration, longest)) + 1;
  return std::chrono::milliseconds(std::max<int64_t>(ms, 1));
}

ScopedSigpipeBlock::ScopedSigpipeBlock() {
  const sigset_t sigpipe = Sigpipe();
  pthread_sigmask(SIG_BLOCK, &sigpipe, &before_);
}

ScopedSigpipeBlock::~ScopedSigpipeBlock() {
  // The caller had blocked it itself, so a pending one may be its own, and stays.
  if (sigismember(&before_, SIGPIPE)) return;
  // A SIGPIPE that is pending would be delivered when it is unblocked, so it is consumed first.
  const sigset_t sigpipe = Sigpipe();
  const timespec at_once = {0, 0};
  sigset_t pending;
  sigpending(&pending);
  if (sigismember(&pending, SIGPIPE)) sigtimedwait(&sigpipe, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace hvd::collectives::gloo
