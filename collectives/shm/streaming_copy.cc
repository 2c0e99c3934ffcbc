#include "collectives/shm/streaming_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hvd::collectives::shm {
namespace {

#if defined(__x86_64__)
constexpr size_t kLine = 64;

__attribute__((target("avx"))) void StreamLines(char* to, const char* from, size_t bytes) {
  for (; bytes > 0; bytes -= kLine, to += kLine, from += kLine) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + 1);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + 1, high);
  }
}
#endif

}  // namespace

void PlainCopy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) memcpy(to, from, bytes);
}

void StreamingCopy(void* to, const void* from, size_t bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx")) {
    char* target = static_cast<char*>(to);
    const char* source = static_cast<const char*>(from);
    // Non-temporal stores need aligned addresses, and are fast for whole cache lines only.
    const size_t head =
        std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(target) % kLine) % kLine);
    PlainCopy(target, source, head);
    const size_t lines = (bytes - head) / kLine * kLine;
    StreamLines(target + head, source + head, lines);
    PlainCopy(target + head + lines, source + head + lines, bytes - head - lines);
    // Non-temporal stores are weakly ordered. The fence puts them before the store that publishes
    // the data, for which a release store alone would not be enough.
    _mm_sfence();
    return;
  }
#endif
  PlainCopy(to, from, bytes);
}

}  // namespace hvd::collectives::shm
