// Strong types for ranks, epochs and other numbers that cross interfaces, so that one can't be
// passed in place of another.
#ifndef BASE_IDS_H_
#define BASE_IDS_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd {

// A value type that compares, hashes and prints like its representation and converts to nothing.
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

// A worker's place in the job, given by the daemon when it asks for the process to be started.
using WorkerId = StrongInt<struct WorkerIdTag, uint64_t>;
// Random per process: a restarted worker is another worker.
using Incarnation = StrongInt<struct IncarnationTag, uint64_t>;
// Grows exactly when the world changes; 0 means "no world yet".
using Epoch = StrongInt<struct EpochTag, uint64_t>;
using Rank = StrongInt<struct RankTag, int32_t>;

}  // namespace hvd

#endif  // BASE_IDS_H_
