#include "worker_runtime/timeline/clock_offset.h"

#include <memory>
#include <thread>
#include <vector>

#include "collectives/inproc/inproc_backend.h"
#include "gtest/gtest.h"
#include "worker_runtime/timeline/timeline_test_util.h"

namespace hvd::worker_runtime::timeline {
namespace {

// The real clock, shifted by a constant.
class ShiftedClock : public Clock {
 public:
  explicit ShiftedClock(absl::Duration shift) : shift_(shift) {}
  absl::Time Now() override { return Clock::Real().Now() + shift_; }
  bool AwaitWithDeadline(absl::Mutex& mutex, const absl::Condition& condition,
                         absl::Time deadline) override {
    return Clock::Real().AwaitWithDeadline(mutex, condition, deadline - shift_);
  }

 private:
  const absl::Duration shift_;
};

class NoKeyExchange : public collectives::KeyExchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view, absl::string_view,
                                                     absl::Duration) override {
    return absl::UnimplementedError("not here");
  }
};

// Returns what each rank measures in a world whose clocks have these shifts.
std::vector<absl::StatusOr<ClockOffset>> Measure(const std::vector<absl::Duration>& shifts) {
  const auto backend = collectives::inproc::MakeInprocBackend();
  const int size = static_cast<int>(shifts.size());
  std::vector<absl::StatusOr<ClockOffset>> offsets(shifts.size(), absl::UnknownError("not run"));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      NoKeyExchange keys;
      auto communicator =
          backend->Connect({Epoch(1), rank, size, "127.0.0.1", "secret"}, keys, absl::Seconds(60));
      ASSERT_TRUE(communicator.ok());
      ShiftedClock clock(shifts[rank]);
      offsets[rank] = MeasureClockOffset(**communicator, clock, {absl::Seconds(60)});
    });
  }
  for (std::thread& thread : threads) thread.join();
  return offsets;
}

TEST(MeasureClockOffsetTest, ShiftedClocks_AreFoundWithinTheUncertainty) {
  const std::vector<absl::Duration> shifts = {absl::Seconds(2), absl::Hours(-1), absl::Seconds(50)};
  const auto offsets = Measure(shifts);
  for (size_t rank = 0; rank < shifts.size(); ++rank) {
    ASSERT_TRUE(offsets[rank].ok()) << offsets[rank].status();
    const absl::Duration error = offsets[rank]->offset - (shifts[0] - shifts[rank]);
    // Nanoseconds are rounded.
    EXPECT_LE(absl::AbsDuration(error), offsets[rank]->uncertainty + absl::Nanoseconds(2)) << rank;
    EXPECT_LT(offsets[rank]->uncertainty, absl::Seconds(60));
  }
  EXPECT_EQ(offsets[0]->offset, absl::ZeroDuration());
}

TEST(MeasureClockOffsetTest, AWorldOfOne_HasNoOffset) {
  const auto offsets = Measure({absl::Seconds(5)});
  ASSERT_TRUE(offsets[0].ok());
  EXPECT_EQ(offsets[0]->uncertainty, absl::ZeroDuration());
}

}  // namespace
}  // namespace hvd::worker_runtime::timeline
