// The adapter to Gloo's conventions: exceptions become Status, durations become milliseconds,
// SIGPIPE is blocked.
#ifndef COLLECTIVES_GLOO_GLOO_GLUE_H_
#define COLLECTIVES_GLOO_GLOO_GLUE_H_

#include <chrono>
#include <csignal>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hvd::collectives::gloo {

// Runs `call`, which may throw what Gloo throws.
// Errors:
//   - Unavailable: gloo::IoException, a peer or the link to it is broken.
//   - Internal: any other exception, a bug.
absl::Status GlooCall(absl::FunctionRef<void()> call);

// A timeout for Gloo: at least 1 ms, since 0 means no limit in some of its calls, and at most some
// years, since its arithmetic would overflow.
std::chrono::milliseconds GlooTimeout(absl::Duration duration);

// RAII: blocks SIGPIPE on this thread, which Gloo's writes to a closed connection raise. Threads
// that are started meanwhile inherit the mask for their whole life. The process's signal handlers
// are unchanged.
class ScopedSigpipeBlock {
 public:
  ScopedSigpipeBlock();
  ~ScopedSigpipeBlock();
  ScopedSigpipeBlock(const ScopedSigpipeBlock&) = delete;
  ScopedSigpipeBlock& operator=(const ScopedSigpipeBlock&) = delete;

 private:
  sigset_t before_;
};

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_GLOO_GLUE_H_
