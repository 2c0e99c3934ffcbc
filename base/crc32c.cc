#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hvd {
namespace {

using internal::Crc32cKernel;

constexpr uint32_t kPolynomial = 0x82F63B78;  // bits reversed

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[byte] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

// Sarwate's algorithm: one table look-up per byte. Here and below `state` is the checksum before
// the final inversion of its bits.
uint32_t Portable(uint32_t state, const char* data, size_t size) {
  for (; size > 0; --size, ++data) {
    state = kTable[(state ^ static_cast<unsigned char>(*data)) & 0xFF] ^ (state >> 8);
  }
  return state;
}

// Returns the product of two polynomials modulo the checksum's. The highest bit of a number is the
// factor of x^0.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if ((a & 0x80000000) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

// x^8, x^16, x^32 and so on: the n-th is the factor by which 2^n more bytes shift a polynomial.
constexpr std::array<uint32_t, 64> MakeShifts() {
  std::array<uint32_t, 64> shifts{};
  shifts[0] = uint32_t{1} << (31 - 8);
  for (size_t n = 1; n < shifts.size(); ++n) shifts[n] = Multiply(shifts[n - 1], shifts[n - 1]);
  return shifts;
}

constexpr std::array<uint32_t, 64> kShifts = MakeShifts();

#if defined(__x86_64__)

// Returns x^power modulo the polynomial, in reversed bit order, as a factor for carry-less
// multiplication. The product of two bit-reversed numbers is one bit too far to the right; the
// shift to the left compensates for that.
constexpr uint64_t Power(int power) {
  uint32_t value = 0x80000000;  // x^0
  for (; power > 0; --power) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
  return uint64_t{value} << 1;
}

// The factors of one folding step. Folding moves 16 bytes of a message `bits` to the right without
// a change of the message's remainder: the first 8 bytes are multiplied by `first`, the other 8 by
// `second`, and both products are added (XOR) to the bytes there. See Gopal et al., "Fast CRC
// Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).
struct Fold {
  explicit constexpr Fold(int bits) : first(Power(bits + 32)), second(Power(bits - 32)) {}
  uint64_t first, second;
};

__attribute__((target("sse4.2"))) uint32_t ByInstruction(uint32_t state, const char* data,
                                                         size_t size) {
  for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), data += sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, data, sizeof(word));
    state = static_cast<uint32_t>(_mm_crc32_u64(state, word));
  }
  for (; size > 0; --size, ++data) state = _mm_crc32_u8(state, static_cast<uint8_t>(*data));
  return state;
}

// Both kernels fold the message block by block into its last block (4 registers). The last block
// then has the same remainder as the whole message, and its checksum is computed by the CRC
// instruction. The 4 registers are independent, which hides the latency of the multiplication. With
// kCopy the message is also stored to `to`, past the caches; the fence at the end orders these
// stores before later ones. `before` adds the checksum of the preceding text to the first bytes.
// REQUIRES: `size` is a multiple of the block's, and not 0.

constexpr size_t kBlock128 = 4 * 16;

template <bool kCopy>
__attribute__((target("sse4.2,pclmul"))) uint32_t Fold128(uint32_t state, char* to,
                                                          const char* data, size_t size) {
  constexpr Fold kFold(kBlock128 * 8);
  const __m128i fold = _mm_set_epi64x(kFold.second, kFold.first);
  __m128i sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = _mm_setzero_si128();
  __m128i before = _mm_cvtsi32_si128(static_cast<int>(state));
  for (; size > 0; size -= kBlock128, data += kBlock128) {
    for (int i = 0; i < 4; ++i) {
      const __m128i next = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data) + i);
      if (kCopy) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, next);
      sums[i] = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(sums[i], fold, 0x00),
                                            _mm_clmulepi64_si128(sums[i], fold, 0x11)),
                              next);
    }
    if (kCopy) to += kBlock128;
    sums[0] = _mm_xor_si128(sums[0], before);
    before = _mm_setzero_si128();
  }
  if (kCopy) _mm_sfence();
  return ByInstruction(0, reinterpret_cast<const char*>(sums), sizeof(sums));
}

constexpr size_t kBlock512 = 4 * 64;

template <bool kCopy>
__attribute__((target("avx512f,vpclmulqdq,sse4.2"))) uint32_t Fold512(uint32_t state, char* to,
                                                                      const char* data,
                                                                      size_t size) {
  constexpr Fold kFold(kBlock512 * 8);
  const __m512i fold = _mm512_set4_epi64(kFold.second, kFold.first, kFold.second, kFold.first);
  __m512i sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = _mm512_setzero_si512();
  __m512i before = _mm512_maskz_set1_epi32(1, static_cast<int>(state));
  for (; size > 0; size -= kBlock512, data += kBlock512) {
    for (int i = 0; i < 4; ++i) {
      const __m512i next = _mm512_loadu_si512(reinterpret_cast<const __m512i*>(data) + i);
      if (kCopy) _mm512_stream_si512(reinterpret_cast<__m512i*>(to) + i, next);
      sums[i] = _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sums[i], fold, 0x00),
                                          _mm512_clmulepi64_epi128(sums[i], fold, 0x11), next,
                                          0x96);  // exclusive or of the three
    }
    if (kCopy) to += kBlock512;
    sums[0] = _mm512_xor_si512(sums[0], before);
    before = _mm512_setzero_si512();
  }
  if (kCopy) _mm_sfence();
  return ByInstruction(0, reinterpret_cast<const char*>(sums), sizeof(sums));
}

// Processes the whole blocks at the front of `data`. Returns their number of bytes.
size_t FoldBlocks(Crc32cKernel kernel, uint32_t* state, char* to, absl::string_view data) {
  const bool wide = kernel == Crc32cKernel::kClmul512;
  const size_t block = wide ? kBlock512 : kBlock128;
  const size_t size = data.size() / block * block;
  if (size == 0) return 0;
  const auto fold = wide ? (to != nullptr ? Fold512<true> : Fold512<false>)
                         : (to != nullptr ? Fold128<true> : Fold128<false>);
  *state = fold(*state, to, data.data(), size);
  return size;
}

#endif

Crc32cKernel BestKernel() {
  static const Crc32cKernel best = [] {
    for (const Crc32cKernel kernel : {Crc32cKernel::kClmul512, Crc32cKernel::kClmul128}) {
      if (internal::Supports(kernel)) return kernel;
    }
    return Crc32cKernel::kPortable;
  }();
  return best;
}

}  // namespace

namespace internal {

bool Supports(Crc32cKernel kernel) {
  if (kernel == Crc32cKernel::kPortable) return true;
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul")) return false;
  return kernel == Crc32cKernel::kClmul128 ||
         (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq"));
#else
  return false;
#endif
}

uint32_t RunCrc32c(Crc32cKernel kernel, uint32_t crc, void* to, absl::string_view data) {
  uint32_t state = ~crc;
  char* rest = static_cast<char*>(to);
#if defined(__x86_64__)
  if (kernel != Crc32cKernel::kPortable) {
    const size_t done = FoldBlocks(kernel, &state, rest, data);
    data.remove_prefix(done);
    if (rest != nullptr) memcpy(rest + done, data.data(), data.size());
    return ~ByInstruction(state, data.data(), data.size());
  }
#endif
  if (rest != nullptr) memcpy(rest, data.data(), data.size());
  return ~Portable(state, data.data(), data.size());
}

}  // namespace internal

uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data) {
  return internal::RunCrc32c(BestKernel(), crc, nullptr, data);
}

uint32_t CopyWithCrc32c(uint32_t crc, void* to, absl::string_view data) {
  return internal::RunCrc32c(BestKernel(), crc, to, data);
}

uint32_t JoinCrc32c(uint32_t first, uint32_t second, size_t size) {
  // The inversions of the bits at the beginning and at the end cancel each other out.
  for (size_t n = 0; size > 0; size >>= 1, ++n) {
    if ((size & 1) != 0) first = Multiply(kShifts[n], first);
  }
  return first ^ second;
}

}  // namespace hvd
