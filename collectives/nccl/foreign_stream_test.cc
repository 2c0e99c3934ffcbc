#include "collectives/nccl/foreign_stream.h"

#include <optional>
#include <string>

#include "collectives/nccl/testing/fake_gpu.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::collectives::nccl {
namespace {

using testing::HasSubstr;

class ForeignStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeGpu::Faults faults;
    faults.streams_are_lazy = true;
    FakeGpu::Set(faults);
    CudaContext* context = nullptr;
    cuda_.primary_context_retain(&context, 0);
    cuda_.context_push(context);
    ASSERT_EQ(cuda_.stream_create(&stream_, 0), CudaResult::kSuccess);
    cuda_.context_pop(&context);
    auto found = ForeignStream::Find(cuda_, stream_);
    ASSERT_TRUE(found.ok()) << found.status();
    foreign_ = *found;
  }
  void TearDown() override {
    foreign_.reset();
    cuda_.stream_destroy(stream_);
    FakeGpu::Reset();
  }
  // The thread has no context, as before. It would be the fake's error if it had one too few.
  bool HasNoContext() {
    CudaContext* context = nullptr;
    return cuda_.context_pop(&context) != CudaResult::kSuccess;
  }

  const CudaFunctions& cuda_ = FakeGpu::Libraries()->cuda;
  CudaStream* stream_ = nullptr;
  std::optional<ForeignStream> foreign_;
};

TEST_F(ForeignStreamTest, Mark_HappensAfterTheWorkBeforeIt) {
  const auto event = foreign_->Mark();
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(cuda_.event_query(*event), CudaResult::kNotReady);
  cuda_.stream_synchronize(stream_);
  EXPECT_EQ(cuda_.event_query(*event), CudaResult::kSuccess);
  foreign_->Forget(*event);
  EXPECT_TRUE(HasNoContext());
}

TEST_F(ForeignStreamTest, CopiesAreDoneOnReturn) {
  int on_device[] = {1, 2}, on_host[] = {0, 0};
  const BusCopy down[] = {{&on_host[0], &on_device[0], sizeof(int)},
                          {nullptr, nullptr, 0},
                          {&on_host[1], &on_device[1], sizeof(int)}};
  EXPECT_EQ(foreign_->CopyToHost(down), absl::OkStatus());
  EXPECT_THAT(on_host, testing::ElementsAre(1, 2));
  on_host[0] = 7;
  EXPECT_EQ(foreign_->CopyToDevice({BusCopy{&on_device[1], &on_host[0], sizeof(int)}}),
            absl::OkStatus());
  EXPECT_THAT(on_device, testing::ElementsAre(1, 7));
  EXPECT_TRUE(HasNoContext());
}

TEST_F(ForeignStreamTest, CopyThatIsRefused_IsAnErrorWithNothingPending) {
  FakeGpu::Faults faults;
  faults.failing_copy = 2;
  FakeGpu::Set(faults);
  int on_device[] = {1, 2, 3}, on_host[] = {0, 0, 0};
  BusCopy copies[3];
  for (int i = 0; i < 3; ++i) copies[i] = {&on_host[i], &on_device[i], sizeof(int)};
  EXPECT_THAT(foreign_->CopyToHost(copies).message(), HasSubstr("copying to the host"));
  EXPECT_EQ(FakeGpu::pending(), 0);
  EXPECT_THAT(on_host, testing::ElementsAre(1, 0, 0));
}

TEST_F(ForeignStreamTest, Of_TakesMemoryAndCopiesOnTheDevice) {
  auto of_device = ForeignStream::Of(cuda_, 0, stream_);
  ASSERT_TRUE(of_device.ok()) << of_device.status();
  EXPECT_EQ(of_device->device(), 0);
  const auto memory = of_device->Allocate(sizeof(int));
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(ForeignStream::DeviceOf(cuda_, *memory).value_or(-1), 0);
  int from = 7, to = 0;
  const BusCopy in[] = {{*memory, &from, sizeof(int)}}, out[] = {{&to, *memory, sizeof(int)}};
  EXPECT_EQ(of_device->CopyOnDevice(in), absl::OkStatus());
  EXPECT_EQ(of_device->CopyOnDevice(out), absl::OkStatus());
  EXPECT_EQ(to, 7);
  of_device->Free(*memory);
  EXPECT_EQ(FakeGpu::calls("cuMemFree"), 1);
  EXPECT_TRUE(HasNoContext());
}

TEST_F(ForeignStreamTest, CopyOfNothing_WaitsForTheWorkBeforeIt) {
  const auto event = foreign_->Mark();
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(foreign_->CopyOnDevice({}), absl::OkStatus());
  EXPECT_EQ(cuda_.event_query(*event), CudaResult::kSuccess);
  foreign_->Forget(*event);
}

TEST_F(ForeignStreamTest, Of_NoSuchDevice_SaysSo) {
  const absl::Status status = ForeignStream::Of(cuda_, 99, nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no CUDA device 99 among"));
}

TEST_F(ForeignStreamTest, DeviceOf_MemoryOfNoDevice_IsRefused) {
  EXPECT_EQ(ForeignStream::DeviceOf(cuda_, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hvd::collectives::nccl
