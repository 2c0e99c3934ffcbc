// Where Gloo's habits end and ours begin: exceptions become Status, durations become milliseconds,
// SIGPIPE stays away.
#ifndef COLLECTIVES_GLOO_LINK_GLOO_GLUE_H_
#define COLLECTIVES_GLOO_LINK_GLOO_GLUE_H_

#include <chrono>
#include <csignal>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hvd::collectives::gloo::link {

// Runs `call`, which may throw what Gloo throws.
//   Unavailable: gloo::IoException, a peer or the link to it is broken.   Internal: anything else,
//   a bug.
absl::Status GlooCall(absl::FunctionRef<void()> call);

// As Gloo wants it: at least 1 ms (0 means "for ever" in places), at most some years (more
// overflows its arithmetic).
std::chrono::milliseconds GlooTimeout(absl::Duration duration);

// While it lives, this thread gets no SIGPIPE from Gloo's writes to a socket whose peer is gone;
// threads started meanwhile inherit that for good. The process's own signal handling is left alone.
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
