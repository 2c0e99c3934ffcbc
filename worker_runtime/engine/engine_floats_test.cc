// Results don't depend on the floating-point mode of the thread that runs the engine's rounds.
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "gtest/gtest.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/engine/engine_test_util.h"

namespace hvd::worker_runtime::engine {
namespace {

// The thread's floating-point mode, and the bits of it that torch.set_flush_denormal sets.
#if defined(__x86_64__)
unsigned Mode() { return _mm_getcsr(); }
void SetMode(unsigned mode) { _mm_setcsr(mode); }
constexpr unsigned kFlushDenormals = 0x8040;
#elif defined(__aarch64__)
unsigned Mode() { return __builtin_aarch64_get_fpcr(); }
void SetMode(unsigned mode) { __builtin_aarch64_set_fpcr(mode); }
constexpr unsigned kFlushDenormals = 1u << 24;
#endif

uint32_t BitsOf(float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TEST(EngineFloatsTest, AllReduce_CallerFlushesDenormals_TheyAreStillAdded) {
  constexpr float kTiny = 1e-40F;
  for (const int size : {1, 2, 3}) {
    const uint32_t expected = BitsOf(2 * kTiny * static_cast<float>(size));
    TestWorld world(size);
    world.OnEach([&](int rank, Engine& engine) {
      const unsigned before = Mode();
      SetMode(before | kFlushDenormals);
      for (int step = 0; step < 100; ++step) {
        std::vector<float> data{kTiny};
        TensorRequest request = AllReduceOf("x", data);
        request.prescale = 2;
        EXPECT_EQ(RunAtOnce(engine, std::move(request)), absl::OkStatus());
        EXPECT_EQ(BitsOf(data[0]), expected);
      }
      EXPECT_EQ(Mode() & kFlushDenormals, kFlushDenormals) << "it is the caller's";
      SetMode(before);
    });
  }
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
