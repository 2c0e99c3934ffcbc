#include "collectives/nccl/device_memory.h"

#include <cstring>

#include "collectives/nccl/testing/fake_gpu.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::collectives::nccl {
namespace {

using testing::HasSubstr;

constexpr size_t kUnit = size_t{2} << 20;

class DeviceMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeGpu::Reset();
    auto created = DeviceMemory::Create(FakeGpu::Libraries()->cuda, 0);
    ASSERT_TRUE(created.ok()) << created.status();
    memory_ = *std::move(created);
  }
  std::shared_ptr<void> Take(size_t bytes) {
    auto taken = memory_->Take(bytes);
    EXPECT_TRUE(taken.ok()) << taken.status();
    return taken.ok() ? *taken : nullptr;
  }
  static int Taken() { return FakeGpu::calls("cuMemAlloc"); }
  static int Freed() { return FakeGpu::calls("cuMemFree"); }

  std::shared_ptr<DeviceMemory> memory_;
};

TEST_F(DeviceMemoryTest, Take_IsUsable) {
  const std::shared_ptr<void> a = Take(3), b = Take(kUnit + 1);
  ASSERT_NE(a, nullptr);
  EXPECT_NE(a, b);
  std::memset(a.get(), 1, 3);
  std::memset(b.get(), 2, kUnit + 1);
  EXPECT_EQ(static_cast<char*>(a.get())[2], 1);
}

TEST_F(DeviceMemoryTest, Take_ReusesReturnedMemory) {
  void* const first = Take(5).get();
  const std::shared_ptr<void> again = Take(kUnit);
  EXPECT_EQ(again.get(), first);
  const std::shared_ptr<void> larger = Take(kUnit + 1);
  EXPECT_NE(larger.get(), first);
  EXPECT_EQ(Taken(), 2);
}

TEST_F(DeviceMemoryTest, Take_KeepsLittleReturnedMemory) {
  { const std::shared_ptr<void> all[] = {Take(1), Take(1), Take(3 * kUnit), Take(2 * kUnit)}; }
  EXPECT_EQ(Freed(), 0) << "giving back must not wait for the device";
  const std::shared_ptr<void> huge = Take(9 * kUnit);
  EXPECT_EQ(Freed(), 2);
  const std::shared_ptr<void> a = Take(3 * kUnit), b = Take(2 * kUnit);
  EXPECT_EQ(Taken(), 5) << "the largest are kept";
}

TEST_F(DeviceMemoryTest, Take_FullDevice_FreesUnusedMemory) {
  (void)Take(1);
  FakeGpu::Faults faults;
  faults.memory_is_full = true;
  FakeGpu::Set(faults);
  EXPECT_NE(Take(3 * kUnit), nullptr);
  EXPECT_EQ(Freed(), 1);
}

TEST_F(DeviceMemoryTest, Take_FullDevice_SaysSo) {
  const std::shared_ptr<void> used = Take(1);
  FakeGpu::Faults faults;
  faults.memory_is_full = true;
  FakeGpu::Set(faults);
  const absl::Status status = memory_->Take(kUnit).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("taking 2097152 bytes of memory for a result on CUDA device 0"));
  FakeGpu::Reset();
  EXPECT_NE(Take(kUnit), nullptr);
}

TEST_F(DeviceMemoryTest, Memory_OutlivesItsMaker) {
  std::shared_ptr<void> kept = Take(4);
  memory_.reset();
  EXPECT_EQ(Freed(), 0);
  std::memset(kept.get(), 1, 4);
  kept.reset();
  EXPECT_EQ(Freed(), 1);
}

}  // namespace
}  // namespace hvd::collectives::nccl
