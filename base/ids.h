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

// The id of a commit: the world in which it was made and its number, counted through the whole job.
// Of two commits the one of the newer world is the newer one, because the other's world was given
// up; so a number that two histories share belongs to two commits. World 0: made before this job.
// Ids are plain integers, which everything that handles commits compares; 0 is no commit. 23 bits
// for the world suffice for 97 days of a world per second.
constexpr int kCommitNumberBits = 40;
constexpr uint64_t CommitId(uint64_t world, uint64_t number) {
  return world << kCommitNumberBits | number;
}
constexpr uint64_t CommitNumber(uint64_t id) {
  return id & ((uint64_t{1} << kCommitNumberBits) - 1);
}
constexpr uint64_t CommitWorld(uint64_t id) { return id >> kCommitNumberBits; }

// The identity of a worker in the job, assigned by the daemon when it requests the process.
using WorkerId = StrongInt<struct WorkerIdTag, uint64_t>;
// The identity of one process of a worker: random, so that a restarted process has another one.
using Incarnation = StrongInt<struct IncarnationTag, uint64_t>;
// The number of a world: grows exactly when the world changes; 0 means "no world yet".
using Epoch = StrongInt<struct EpochTag, uint64_t>;
using Rank = StrongInt<struct RankTag, int32_t>;

}  // namespace hvd

#endif  // BASE_IDS_H_
