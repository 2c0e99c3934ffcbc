// Strong integer types for ranks, epochs and other numbers in interfaces, which must not be mixed
// up.
#ifndef BASE_IDS_H_
#define BASE_IDS_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd {

// An integer without implicit conversions that compares, hashes and prints like its representation.
template <typename Tag, typename T>
class StrongInt {
 public:
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(T value) : value_(value) {}
  constexpr T value() const { return value_; }

  friend constexpr bool operator==(StrongInt a, StrongInt b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(StrongInt a, StrongInt b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(StrongInt a, StrongInt b) { return a.value_ < b.value_; }
  friend constexpr bool operator>(StrongInt a, StrongInt b) { return a.value_ > b.value_; }
  friend constexpr bool operator<=(StrongInt a, StrongInt b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>=(StrongInt a, StrongInt b) { return a.value_ >= b.value_; }
  friend std::ostream& operator<<(std::ostream& out, StrongInt id) { return out << id.value_; }
  template <typename H>
  friend H AbslHashValue(H h, StrongInt id) {
    return H::combine(std::move(h), id.value_);
  }

 private:
  T value_{};
};

// The identity of a worker in the job, assigned by the daemon when it requests the process.
using WorkerId = StrongInt<struct WorkerIdTag, uint64_t>;
// The identity of one process of a worker: random, so that a restarted process has another one.
using Incarnation = StrongInt<struct IncarnationTag, uint64_t>;
// The number of a world: grows exactly when the world changes; 0 means "no world yet".
using Epoch = StrongInt<struct EpochTag, uint64_t>;
using Rank = StrongInt<struct RankTag, int32_t>;

}  // namespace hvd

#endif  // BASE_IDS_H_
