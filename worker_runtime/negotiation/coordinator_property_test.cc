// A randomised test of the coordinator: announcements and plans in any order.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "worker_runtime/negotiation/coordinator.h"
#include "worker_runtime/negotiation/coordinator_test_util.h"
#include "worker_runtime/negotiation/known_signatures.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

// A simulated world: ranks announce with the ids they know, and carry out plans at different times.
class SimulatedWorld {
 public:
  explicit SimulatedWorld(uint64_t seed) : random_(seed) {}

  // In each step every rank submits as many tensors in a different order, and runs them.
  void Run(int steps, int names) {
    for (int step = 0; step < steps; ++step) {
      for (int rank = 0; rank < kSize; ++rank) SubmitAll(rank, names, step);
      while (!AllDone()) Advance();
    }
  }
  size_t plans() const { return plans_.size(); }

 private:
  static constexpr int kSize = 3;
  struct Rank {
    KnownSignatures known;
    size_t seen = 0;
    std::vector<TensorSignature> to_submit;
    std::set<std::string> in_flight;
  };

  int Pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

  void SubmitAll(int rank, int names, int step) {
    for (int i = 0; i < names; ++i) {
      // Shapes change now and then, on all ranks alike.
      const int64_t dim = 1 + step / 4 % 2;
      ranks_[rank].to_submit.push_back(MakeSignature(absl::StrCat("t", i), {dim}));
    }
    std::shuffle(ranks_[rank].to_submit.begin(), ranks_[rank].to_submit.end(), random_);
  }

  bool AllDone() const {
    for (const Rank& rank : ranks_) {
      if (!rank.to_submit.empty() || !rank.in_flight.empty()) return false;
    }
    return true;
  }

  void Advance() {
    Rank& rank = ranks_[Pick(kSize)];
    if (Pick(2) == 0) {
      AnnounceOne(static_cast<int>(&rank - ranks_));
    } else if (rank.seen < plans_.size()) {
      CarryOut(rank, plans_[rank.seen++]);
    }
    if (auto plan = coordinator_.NextPlan(At(0))) plans_.push_back(*std::move(plan));
  }

  void AnnounceOne(int index) {
    Rank& rank = ranks_[index];
    if (rank.to_submit.empty()) return;
    Announcement announcement = Submission({rank.to_submit.back()}, rank.seen);
    const SignatureId id = rank.known.Find(rank.to_submit.back());
    if (id != kNoSignatureId) announcement.groups[0][0] = AnnouncedTensor{id, nullptr};
    rank.in_flight.insert(rank.to_submit.back().name);
    rank.to_submit.pop_back();
    ASSERT_TRUE(coordinator_.Announce(index, announcement, At(0)).ok());
  }

  void CarryOut(Rank& rank, const Plan& plan) {
    EXPECT_TRUE(plan.failures.empty());
    for (const Batch& batch : plan.batches) {
      for (const PlannedTensor& tensor : batch) {
        if (tensor.known_id != kNoSignatureId) {
          ASSERT_NE(rank.known.Get(tensor.known_id), nullptr);
          EXPECT_EQ(*rank.known.Get(tensor.known_id), *tensor.signature);
        }
        EXPECT_EQ(rank.in_flight.erase(tensor.signature->name), 1u);
      }
    }
    rank.known.Apply(plan);
  }

  std::mt19937_64 random_;
  Coordinator coordinator_{Options(kSize)};
  Rank ranks_[kSize];
  std::vector<Plan> plans_;
};

// More names than the cache holds, so announcements cross evictions all the time.
TEST(CoordinatorPropertyTest, AnyOrder_EveryTensorRunsOnceAndCachesAgree) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    SimulatedWorld world(seed);
    world.Run(30, 7);
    EXPECT_GT(world.plans(), 30u);
  }
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
