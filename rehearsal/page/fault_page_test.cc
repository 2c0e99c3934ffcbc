#include "rehearsal/page/fault_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <utility>

namespace hvd::rehearsal::page {
namespace {

using Order = FaultPage::Order;

class FaultPageTest : public testing::Test {
 protected:
  void SetUp() override {
    auto agents = FaultPage::Create();
    ASSERT_TRUE(agents.ok()) << agents.status();
    agent_ = *std::move(agents);
    auto workers = FaultPage::Map(Fd(dup(agent_->fd())));
    ASSERT_TRUE(workers.ok()) << workers.status();
    worker_ = *std::move(workers);
  }

  std::unique_ptr<FaultPage> agent_, worker_;
};

TEST_F(FaultPageTest, NothingIsOrderedAtFirst) {
  EXPECT_TRUE(worker_->Orders(Order::kNone));
  EXPECT_FALSE(worker_->Take(Order::kException));
  EXPECT_FALSE(agent_->done());
}

TEST_F(FaultPageTest, AnOrderThatIsDoneOnceIsTakenOnce) {
  agent_->Give(Order::kException, absl::ZeroDuration());
  EXPECT_FALSE(worker_->Take(Order::kWrongValue));
  EXPECT_TRUE(worker_->Orders(Order::kException));
  EXPECT_TRUE(worker_->Take(Order::kException));
  EXPECT_FALSE(worker_->Take(Order::kException));
  EXPECT_TRUE(agent_->done());
}

TEST_F(FaultPageTest, AnOrderThatLastsStaysUntilItIsWithdrawn) {
  agent_->Give(Order::kSlowRank, absl::Milliseconds(20));
  EXPECT_EQ(worker_->delay(), absl::Milliseconds(20));
  worker_->NoteDone();
  EXPECT_TRUE(agent_->done());
  EXPECT_TRUE(worker_->Orders(Order::kSlowRank));
  agent_->Withdraw();
  EXPECT_FALSE(worker_->Orders(Order::kSlowRank));
  EXPECT_TRUE(agent_->done()) << "what was done remains known";
  agent_->Give(Order::kFullDisk, absl::ZeroDuration());
  EXPECT_FALSE(agent_->done()) << "a new order is not done";
}

TEST_F(FaultPageTest, NeitherProcessCanTakeTheMemoryAway) {
  EXPECT_NE(ftruncate(worker_->fd(), 0), 0);
  worker_.reset();
  EXPECT_TRUE(agent_->Orders(Order::kNone));
}

TEST_F(FaultPageTest, OtherDescriptorsAreRefused) {
  Fd other(memfd_create("other", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(other.get(), 4096), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(FaultPage::Map(std::move(other)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(FaultPage::Map(Fd()).status()));
}

}  // namespace
}  // namespace hvd::rehearsal::page
