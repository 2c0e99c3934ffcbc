#include "rehearsal/worker/faulty_backend.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "collectives/inproc/inproc_backend.h"
#include "collectives/types.h"

namespace hvd::rehearsal::worker {
namespace {

using collectives::DataType;
using collectives::ReduceOp;
using Order = page::FaultPage::Order;

class NoKeys : public collectives::KeyExchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view, absl::string_view,
                                                     absl::Duration) override {
    return absl::UnimplementedError("there are no peers");
  }
};

class FaultyBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    auto page = page::FaultPage::Create();
    ASSERT_TRUE(page.ok()) << page.status();
    page_ = *std::move(page);
    backend_ = MakeFaultyBackend(collectives::inproc::MakeInprocBackend(), *page_);
    collectives::GroupInfo group;
    group.epoch = Epoch(1);
    group.size = 1;
    NoKeys keys;
    auto communicator = backend_->Connect(group, keys, WaitBounds(absl::Minutes(1), nullptr));
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    communicator_ = *std::move(communicator);
  }

  absl::Status Sum(std::vector<float>& values) {
    return communicator_->AllReduce(values.data(), values.data(), values.size(), DataType::kFloat32,
                                    ReduceOp::kSum, {});
  }

  std::unique_ptr<page::FaultPage> page_;
  std::unique_ptr<collectives::Backend> backend_;
  std::unique_ptr<collectives::Communicator> communicator_;
};

TEST_F(FaultyBackendTest, WithoutAnOrderNothingIsWrong) {
  std::vector<float> values = {1.0F, 2.0F};
  ASSERT_TRUE(Sum(values).ok());
  EXPECT_EQ(values, (std::vector<float>{1.0F, 2.0F}));
  EXPECT_FALSE(page_->done());
}

TEST_F(FaultyBackendTest, OneResultIsWrongInOneNumber) {
  page_->Give(Order::kWrongValue, {});
  std::vector<int64_t> whole = {5};
  ASSERT_TRUE(
      communicator_->AllReduce(whole.data(), whole.data(), 1, DataType::kInt64, ReduceOp::kSum, {})
          .ok());
  EXPECT_EQ(whole[0], 5) << "not of whole numbers";
  std::vector<float> flag = {1.0F};
  ASSERT_TRUE(
      communicator_->AllReduce(flag.data(), flag.data(), 1, DataType::kFloat32, ReduceOp::kMax, {})
          .ok());
  EXPECT_EQ(flag[0], 1.0F) << "not of a greatest number";
  std::vector<float> values = {1.0F, 2.0F};
  ASSERT_TRUE(Sum(values).ok());
  EXPECT_EQ(values, (std::vector<float>{1.5F, 2.0F}));
  EXPECT_TRUE(page_->done());
  values = {1.0F, 2.0F};
  ASSERT_TRUE(Sum(values).ok());
  EXPECT_EQ(values, (std::vector<float>{1.0F, 2.0F})) << "once only";
}

TEST_F(FaultyBackendTest, ACutEndsTheCommunicator) {
  page_->Give(Order::kCutLink, {});
  std::vector<float> values = {1.0F};
  EXPECT_TRUE(absl::IsUnavailable(Sum(values)));
  EXPECT_TRUE(page_->done());
  EXPECT_FALSE(Sum(values).ok());
}

TEST_F(FaultyBackendTest, ASlowLinkStillCarriesAll) {
  page_->Give(Order::kSlowLink, absl::Milliseconds(1));
  std::vector<float> values = {1.0F};
  EXPECT_TRUE(Sum(values).ok());
  EXPECT_TRUE(Sum(values).ok());
  EXPECT_TRUE(page_->done());
}

TEST(FlipBit, ChangesEachFloatingType) {
  float single = 1.5;
  FlipBit(&single, DataType::kFloat32);
  EXPECT_EQ(single, 1.0F);
  double twice = 1.0;
  FlipBit(&twice, DataType::kFloat64);
  EXPECT_EQ(twice, 1.5);
  uint16_t brain = 0x3f80;  // 1
  FlipBit(&brain, DataType::kBfloat16);
  EXPECT_EQ(brain, 0x3fc0);  // 1.5
  uint16_t half = 0x3c00;    // 1
  FlipBit(&half, DataType::kFloat16);
  EXPECT_EQ(half, 0x3e00);  // 1.5
}

}  // namespace
}  // namespace hvd::rehearsal::worker
