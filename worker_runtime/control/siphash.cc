#include "worker_runtime/control/siphash.h"

namespace hvd::worker_runtime::control {
namespace {

uint64_t Rotated(uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

// Up to 8 bytes as a number, the first one lowest.
uint64_t WordOf(absl::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = bytes.size(); i-- > 0;) word = word << 8 | static_cast<uint8_t>(bytes[i]);
  return word;
}

class State {
 public:
  explicit State(const std::array<uint64_t, 2>& key)
      : v_{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d ^ 0xee,
           key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573} {}

  void Take(uint64_t word) {
    v_[3] ^= word;
    Rounds(2);
    v_[0] ^= word;
  }
  // The halves of the result differ by what is mixed in before.
  uint64_t Half(size_t at, uint64_t mixed) {
    v_[at] ^= mixed;
    Rounds(4);
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

 private:
  void Rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v_[0] += v_[1];
      v_[1] = Rotated(v_[1], 13) ^ v_[0];
      v_[0] = Rotated(v_[0], 32);
      v_[2] += v_[3];
      v_[3] = Rotated(v_[3], 16) ^ v_[2];
      v_[0] += v_[3];
      v_[3] = Rotated(v_[3], 21) ^ v_[0];
      v_[2] += v_[1];
      v_[1] = Rotated(v_[1], 17) ^ v_[2];
      v_[2] = Rotated(v_[2], 32);
    }
  }

  std::array<uint64_t, 4> v_;
};

void Put(uint64_t word, char* to) {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<char>(word >> (8 * i));
}

}  // namespace

SipHash::SipHash(absl::string_view key) : key_{WordOf(key.substr(0, 8)), WordOf(key.substr(8))} {}

std::string SipHash::Of(absl::string_view message) const {
  State state(key_);
  const uint64_t length = message.size();
  for (; message.size() >= 8; message.remove_prefix(8)) state.Take(WordOf(message.substr(0, 8)));
  state.Take(length << 56 | WordOf(message));
  std::string hash(kBytes, '\0');
  Put(state.Half(2, 0xee), &hash[0]);
  Put(state.Half(1, 0xdd), &hash[8]);
  return hash;
}

}  // namespace hvd::worker_runtime::control
