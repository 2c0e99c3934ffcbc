// The adapter to Gloo's conventions: exceptions become Status, durations become milliseconds,
// SIGPIPE is blocked.
#ifndef COLLECTIVES_GLOO_LINK_GLOO_GLUE_H_
#define COLLECTIVES_GLOO_LINK_GLOO_GLUE_H_

#include <chrono>
#include <csignal>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hvd::collectives::gloo::link {

// Runs `call`, which may throw what Gloo throws.
// Errors:
//   - Unavailable: gloo::IoException, a peer or the link to it is broken.
//   - Internal: any other exception, a bug.
absl::Status GlooCall(absl::FunctionRef<void()> call);

// A timeout for Gloo: at least 1 ms (0 means no limit in places), at most some years (more
// overflows its arithmetic).
std::chrono::milliseconds GlooTimeout(absl::Duration duration);

// While it lives, this thread gets no SIGPIPE from Gloo's writes to a socket whose peer is gone;
// threads started meanwhile inherit that permanently. The process's own signal handling is
// unchanged.
class ScopedSigpipeBlock {
 public:
  ScopedSigpipeBlock();
  ~ScopedSigpipeBlock();
  ScopedSigpipeBlock(const ScopedSigpipeBlock&) = delete;
  ScopedSigpipeBlock& operator=(const ScopedSigpipeBlock&) = delete;

 private:
  sigset_t before_;
};

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_GLOO_GLUE_H_
