// Tests of the pipeline on a fake device, whose memory is host memory. Most let it be lazy: a copy
// is done when something waits for its stream, so whatever the pipeline does not wait for is seen.
#include "collectives/nccl/staging_pipeline.h"

#include <algorithm>
#include <string>
#include <thread>  // NOLINT: for what another stream does
#include <vector>

#include "collectives/nccl/testing/fake_gpu.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::collectives::nccl {
namespace {

constexpr size_t kSlotBytes = 4;

class StagingPipelineTest : public testing::Test {
 protected:
  void SetUp() override {
    faults_.streams_are_lazy = true;
    FakeGpu::Set(faults_);
    Make();
  }
  void TearDown() override {
    pipeline_.reset();
    FakeGpu::Reset();
    FakeGpu::AwaitNothingLeft();
    EXPECT_EQ(FakeGpu::pinned(), 0u);
  }
  void Make() {
    auto made = StagingPipeline::Create(FakeGpu::Libraries()->cuda, 0, kSlotBytes);
    ASSERT_TRUE(made.ok()) << made.status();
    pipeline_ = *std::move(made);
  }

  // Adds 1 to every byte of in_, a string of parts, and writes the result to out_. `on_host` is
  // called before each part's operation.
  absl::Status AddOne(absl::FunctionRef<absl::Status(size_t part)> on_host) {
    return pipeline_->Run(in_.size() / kSlotBytes,
                          {[&](size_t part, char* host, DeviceStream& stream) {
                             return stream.CopyToHost(host, &in_[part * kSlotBytes], kSlotBytes);
                           },
                           [&](size_t part, char* host) {
                             std::for_each(host, host + kSlotBytes, [](char& c) { ++c; });
                             return on_host(part);
                           },
                           [&](size_t part, char* host, DeviceStream& stream) {
                             return stream.CopyFromHost(&(*out_)[part * kSlotBytes], host,
                                                        kSlotBytes);
                           }});
  }
  absl::Status AddOne() {
    return AddOne([](size_t) { return absl::OkStatus(); });
  }
  void Fill(size_t parts) {
    in_.clear();
    for (size_t i = 0; i < parts; ++i) in_ += std::string(kSlotBytes, static_cast<char>('a' + i));
    apart_ = std::string(in_.size(), '-');
  }
  std::string Expected() const {
    std::string expected = in_;
    for (char& c : expected) ++c;
    return expected;
  }

  FakeGpu::Faults faults_;
  std::unique_ptr<StagingPipeline> pipeline_;
  std::string in_, apart_;
  std::string* out_ = &apart_;
};

TEST_F(StagingPipelineTest, AnyNumberOfParts) {
  for (size_t parts = 0; parts < 9; ++parts) {
    Fill(parts);
    EXPECT_EQ(AddOne(), absl::OkStatus());
    EXPECT_EQ(apart_, Expected()) << parts;
    EXPECT_EQ(FakeGpu::pending(), 0u);
  }
}

TEST_F(StagingPipelineTest, InPlace) {
  for (const bool is_lazy : {true, false}) {
    faults_.streams_are_lazy = is_lazy;
    FakeGpu::Set(faults_);
    Fill(7);
    const std::string expected = Expected();
    out_ = &in_;
    EXPECT_EQ(AddOne(), absl::OkStatus());
    EXPECT_EQ(in_, expected);
  }
}

// While the host works on a part, the copies of the next two parts have been queued, and those of
// the part before it are on their way back; the host has waited for none of them.
TEST_F(StagingPipelineTest, CopiesOverlapWithTheHost) {
  Fill(5);
  std::vector<int> copies_in, copies_out;
  std::string unfinished;
  EXPECT_EQ(AddOne([&](size_t part) {
              copies_in.push_back(FakeGpu::calls("cuMemcpyDtoHAsync"));
              copies_out.push_back(FakeGpu::calls("cuMemcpyHtoDAsync"));
              if (part > 0) unfinished += apart_[(part - 1) * kSlotBytes];
              EXPECT_GE(FakeGpu::pending(), part < 4 ? 2u : 1u);
              return absl::OkStatus();
            }),
            absl::OkStatus());
  EXPECT_THAT(copies_in, testing::ElementsAre(3, 4, 5, 5, 5));
  EXPECT_THAT(copies_out, testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(unfinished, "----") << "the part before it has not been awaited";
  EXPECT_EQ(apart_, Expected());
}

TEST_F(StagingPipelineTest, OnePart_IsTwoCopiesOnOneStream) {
  Fill(1);
  EXPECT_EQ(AddOne([&](size_t) {
              EXPECT_EQ(FakeGpu::pending(), 0u);
              return absl::OkStatus();
            }),
            absl::OkStatus());
  EXPECT_EQ(FakeGpu::calls("cuMemcpyDtoHAsync"), 1);
  EXPECT_EQ(FakeGpu::calls("cuMemcpyHtoDAsync"), 1);
  EXPECT_EQ(FakeGpu::calls("cuEventRecord"), 0);
}

TEST_F(StagingPipelineTest, EventsHoldBackEverySlot) {
  for (const bool is_lazy : {true, false}) {
    faults_.streams_are_lazy = is_lazy;
    FakeGpu::Set(faults_);
    Fill(4);
    const std::string expected = Expected();
    const std::string produced = std::exchange(in_, std::string(in_.size(), '?'));
    CudaEvent* const event = FakeGpu::NewEvent();
    {
      const DeviceStream::ScopedDevice device(pipeline_->stream());
      ASSERT_EQ(pipeline_->stream().WaitFor(event), absl::OkStatus());
    }
    std::thread producer([&] {
      std::copy(produced.begin(), produced.end(), in_.begin());  // what another stream does
      FakeGpu::Happen(event);
    });
    EXPECT_EQ(AddOne(), absl::OkStatus());
    producer.join();
    EXPECT_EQ(apart_, expected);
  }
}

TEST_F(StagingPipelineTest, FailureOnTheHost_LeavesNoCopyPending) {
  for (size_t failing = 0; failing < 5; ++failing) {
    Fill(5);
    size_t operations = 0;
    EXPECT_EQ(AddOne([&](size_t part) {
                ++operations;
                return part == failing ? absl::UnavailableError("gone") : absl::OkStatus();
              }),
              absl::UnavailableError("gone"));
    EXPECT_EQ(operations, failing + 1);
    EXPECT_EQ(FakeGpu::pending(), 0u) << failing;
    const size_t done = failing * kSlotBytes;
    EXPECT_EQ(apart_.substr(0, done), Expected().substr(0, done));
    EXPECT_EQ(apart_.substr(done), std::string(apart_.size() - done, '-'));
  }
}

TEST_F(StagingPipelineTest, FailureOfACopy_LeavesNoCopyPending) {
  for (int failing = 1; failing <= 10; ++failing) {
    faults_.failing_copy = failing;
    FakeGpu::Set(faults_);
    Fill(5);
    EXPECT_EQ(AddOne().code(), absl::StatusCode::kInternal);
    EXPECT_EQ(FakeGpu::pending(), 0u) << failing;
    FakeGpu::Reset();
    EXPECT_EQ(AddOne(), absl::OkStatus());
    EXPECT_EQ(apart_, Expected());
  }
}

TEST_F(StagingPipelineTest, MemoryIsPinnedOnce) {
  EXPECT_EQ(pipeline_->pinned(), absl::OkStatus());
  EXPECT_EQ(FakeGpu::pinned(), pipeline_->memory_bytes());
  Fill(9);
  EXPECT_EQ(AddOne(), absl::OkStatus());
  EXPECT_EQ(FakeGpu::pinned(), pipeline_->memory_bytes());
}

TEST_F(StagingPipelineTest, PinningRefused_PageableMemoryServes) {
  faults_.pinning_fails = true;
  FakeGpu::Set(faults_);
  pipeline_.reset();
  Make();
  EXPECT_EQ(pipeline_->pinned().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(pipeline_->pinned().message()),
              testing::HasSubstr("page-locking 12 bytes of host memory on CUDA device 0"));
  Fill(5);
  EXPECT_EQ(AddOne(), absl::OkStatus());
  EXPECT_EQ(apart_, Expected());
  EXPECT_EQ(FakeGpu::pinned(), 0u);
}

TEST_F(StagingPipelineTest, Create_NoSuchDevice) {
  EXPECT_EQ(StagingPipeline::Create(FakeGpu::Libraries()->cuda, 99, kSlotBytes).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hvd::collectives::nccl
