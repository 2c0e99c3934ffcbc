// A virtual clock, and a queue of the actions at its times.
#ifndef TESTS_SIMULATION_VIRTUAL_TIME_H_
#define TESTS_SIMULATION_VIRTUAL_TIME_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace hvd {

using Micros = int64_t;
constexpr Micros kMilli = 1000;
constexpr Micros kSecond = 1000000;

// Actions run in the order of their times; those of the same time in the order in which they were
// added. Not thread-safe.
class VirtualTime {
 public:
  Micros now() const { return now_; }

  void After(Micros delay, std::function<void()> action) {
    entries_.push_back({now_ + std::max<Micros>(delay, 0), actions_.size()});
    std::push_heap(entries_.begin(), entries_.end(), Later);
    actions_.push_back(std::move(action));
  }

  // Runs the next action; returns false if there is none.
  bool RunNext() {
    if (entries_.empty()) return false;
    std::pop_heap(entries_.begin(), entries_.end(), Later);
    const Entry entry = entries_.back();
    entries_.pop_back();
    now_ = entry.at;
    const std::function<void()> action = std::exchange(actions_[entry.order], nullptr);
    action();
    return true;
  }

 private:
  struct Entry {
    Micros at;
    size_t order;  // also its index in actions_
  };
  static bool Later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  Micros now_ = 0;
  std::vector<Entry> entries_;  // a heap, the next one first
  std::vector<std::function<void()>> actions_;
};

// A random number generator. Cheap to start, unlike the standard's engines; the same on all
// platforms.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x1234567u) {}

  // 0 <= Roll < sides
  int64_t Roll(int64_t sides) {
    return static_cast<int64_t>(Next() % static_cast<uint64_t>(sides));
  }
  bool Chance(int percent) { return Roll(100) < percent; }
  int64_t Between(int64_t low, int64_t high) { return low + Roll(high - low + 1); }

 private:
  uint64_t Next() {  // splitmix64
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace hvd

#endif  // TESTS_SIMULATION_VIRTUAL_TIME_H_
