// Static jobs without expected hosts whose daemon restarts before all agents have attached.
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "rendezvous/membership/membership.h"

namespace hvd::rendezvous::membership {
namespace {

class RestartOfAStaticJobTest : public testing::Test {
 protected:
  static policy::JobSpec Spec(int workers) {
    policy::JobSpec spec;
    spec.min_workers = spec.max_workers = workers;
    spec.start_timeout = absl::Hours(1);
    spec.reattach_timeout = absl::Seconds(30);
    return spec;
  }

  // The number of started workers, and the hosts that are held.
  struct Told {
    int starts = 0;
    std::vector<std::string> held;
    bool operator==(const Told& other) const {
      return starts == other.starts && held == other.held;
    }
  };

  Told Apply(const Event& event) {
    Told told;
    for (const Effect& effect : machine_->Apply(event, now_)) {
      told.starts += std::holds_alternative<StartWorkerEffect>(effect) ? 1 : 0;
      if (const auto* hold = std::get_if<HoldHostEffect>(&effect)) told.held.push_back(hold->host);
    }
    EXPECT_EQ(machine_->Check(), "");
    return told;
  }

  Told Attach(const std::string& host, int slots, uint64_t agent = 1) {
    return Apply(HostJoined{{host, slots}, Incarnation(agent)});
  }
  Told Offer(const std::vector<HostSlots>& hosts) {
    return Apply(HostsDiscovered{hosts, /*is_offer=*/true});
  }

  absl::Time now_ = absl::UnixEpoch();
  std::unique_ptr<Membership> machine_ = std::make_unique<Membership>(Spec(2), now_);
};

TEST_F(RestartOfAStaticJobTest, HostThatIsOfferedWhileItIsAway_TakesPartWhenItIsBack) {
  Offer({{"a", 1}});
  Attach("a", 1);
  EXPECT_EQ(Attach("b", 1), (Told{0, {"b"}}));
  Apply(Restarted{});
  Offer({{"a", 1}, {"b", 1}});
  EXPECT_EQ(Attach("a", 1), (Told{0, {}}));
  EXPECT_EQ(Attach("b", 1), (Told{2, {}}));
}

TEST_F(RestartOfAStaticJobTest, SlotsThatAreOfferedWhileTheHostIsAway_AreUsedWhenItIsBack) {
  Offer({{"a", 1}});
  EXPECT_EQ(Attach("a", 2), (Told{0, {}}));
  Apply(Restarted{});
  Offer({{"a", 2}});
  EXPECT_EQ(Attach("a", 2), (Told{2, {}}));
}

TEST_F(RestartOfAStaticJobTest, HostThatIsWithdrawnWhileItIsAway_WaitsWhenItIsBack) {
  Offer({{"a", 1}});
  Attach("a", 1);
  Apply(Restarted{});
  Offer({{"b", 2}});
  EXPECT_EQ(Attach("a", 1), (Told{0, {"a"}}));
  EXPECT_EQ(Attach("b", 2), (Told{2, {}}));
}

TEST_F(RestartOfAStaticJobTest, AnotherAgentInPlaceOfOneThatIsAway_IsNotLostWithIt) {
  Attach("a", 1, 1);
  Apply(Restarted{});
  Attach("a", 1, 9);
  EXPECT_EQ(Attach("b", 1), (Told{2, {}}));
  now_ += absl::Hours(2);
  Apply(Tick{});
  EXPECT_EQ(machine_->Describe().state, lifecycle::JobState::kForming);
  EXPECT_EQ(machine_->Attached().size(), 2u);
}

// A watch is not in the journal, so a replay must come to the same state without it.
TEST_F(RestartOfAStaticJobTest, WatchAfterADeadline_LeavesTheDeadlineToTheTick) {
  Attach("a", 1);
  now_ += absl::Hours(2);
  ASSERT_LT(machine_->NextDeadline(), now_);
  const auto effects =
      machine_->Apply(WatchRequested{CallId(1), {WorkerId(1), Incarnation(1)}, Epoch(1)}, now_);
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<ReplyStatus>(effects[0]));
  EXPECT_LT(machine_->NextDeadline(), now_);
  EXPECT_FALSE(machine_->Apply(Tick{}, now_).empty());
}

TEST_F(RestartOfAStaticJobTest, HostsThatDoNotComeBack_AreAllLost) {
  machine_ = std::make_unique<Membership>(Spec(9), now_);
  for (const char* host : {"a", "b", "c"}) Attach(host, 1);
  Apply(Restarted{});
  now_ += absl::Minutes(1);
  Apply(Tick{});
  EXPECT_EQ(machine_->Attached().size(), 0u);
}

}  // namespace
}  // namespace hvd::rendezvous::membership
