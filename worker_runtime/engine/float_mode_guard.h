// A guard of a thread's floating point mode.
#ifndef WORKER_RUNTIME_ENGINE_FLOAT_MODE_GUARD_H_
#define WORKER_RUNTIME_ENGINE_FLOAT_MODE_GUARD_H_

#include <cfenv>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hvd::worker_runtime::engine {

// While it lives its thread computes as the standard demands: nothing is flushed to zero, and
// results are rounded to nearest. The mode that a program has set for one of its threads
// (torch.set_flush_denormal) must not affect reductions for all ranks: which thread does them is
// chance, and the ranks' results would differ.
class FloatModeGuard {
 public:
#if defined(__x86_64__)
  // The C library's functions take longer, because of registers that are not used.
  FloatModeGuard() { _mm_setcsr(kDefault); }
  ~FloatModeGuard() { _mm_setcsr(before_); }
#else
  FloatModeGuard() {
    fegetenv(&before_);
    fesetenv(FE_DFL_ENV);
  }
  ~FloatModeGuard() { fesetenv(&before_); }
#endif
  FloatModeGuard(const FloatModeGuard&) = delete;
  FloatModeGuard& operator=(const FloatModeGuard&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned kDefault = 0x1F80;  // all exceptions masked
  const unsigned before_ = _mm_getcsr();
#else
  fenv_t before_;
#endif
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_FLOAT_MODE_GUARD_H_
