// A scoped guard that sets the thread's floating-point mode to the default.
#ifndef BASE_FLOAT_MODE_GUARD_H_
#define BASE_FLOAT_MODE_GUARD_H_

#include <cfenv>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hvd {

// While it exists its thread computes as IEEE 754 requires: denormals are not flushed to zero, and
// results are rounded to nearest. The user may have set another mode for a thread
// (torch.set_flush_denormal). That must not affect reductions: which thread runs them is random, so
// results would differ between runs and ranks.
class FloatModeGuard {
 public:
#if defined(__x86_64__)
  // The C library's fegetenv and fesetenv take longer: they save the x87 state as well.
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

}  // namespace hvd

#endif  // BASE_FLOAT_MODE_GUARD_H_
