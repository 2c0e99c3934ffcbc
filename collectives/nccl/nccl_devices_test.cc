// The functions of device communicators that host communicators lack: factors, memory, events and
// copies.
#include <memory>
#include <string>
#include <thread>  // NOLINT: for what another stream does
#include <vector>

#include "collectives/float16.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/nccl/testing/nccl_test_util.h"

namespace hvd::collectives::nccl {
namespace {

TEST_F(NcclTest, AllReduceScaled_SeveralPiecesAreOneGroup) {
  Connect(2);
  FakeGpu::Reset();
  conformance::ForEachRank(2, [&](int rank) {
    std::vector<float> a = {1, 2}, b = {3, 4, 5}, out(3);
    const std::vector<Piece> pieces = {
        {a.data(), a.data(), a.size()}, {nullptr, nullptr, 0}, {b.data(), out.data(), b.size()}};
    EXPECT_EQ(
        ranks_[rank]->AllReduceScaled(pieces, DataType::kFloat32, ReduceOp::kSum, 0.5, kPatient),
        absl::OkStatus());
    EXPECT_EQ(a, std::vector<float>({1, 2}));
    EXPECT_EQ(out, std::vector<float>({3, 4, 5}));
    EXPECT_EQ(b, std::vector<float>({3, 4, 5}));
  });
  EXPECT_EQ(FakeGpu::calls("ncclGroupEnd"), 2);
  EXPECT_EQ(FakeGpu::calls("ncclRedOpCreatePreMulSum"), 2);
  EXPECT_EQ(FakeGpu::calls("ncclRedOpDestroy"), 2);
}

// A non-blocking communicator may report kInProgress from any call. The rest of a group must follow
// all the same: what is left out is missing in the result, without an error.
TEST_F(NcclTest, CallsInProgress_AreFollowedByTheRestOfTheGroup) {
  Connect(2);
  FakeGpu::Faults faults;
  faults.success_is_in_progress = true;
  FakeGpu::Set(faults);
  conformance::ForEachRank(2, [&](int rank) {
    std::vector<float> a = {1, 2}, b = {3};
    const std::vector<Piece> pieces = {{a.data(), a.data(), a.size()},
                                       {b.data(), b.data(), b.size()}};
    EXPECT_EQ(
        ranks_[rank]->AllReduceScaled(pieces, DataType::kFloat32, ReduceOp::kSum, 1.0, kPatient),
        absl::OkStatus());
    EXPECT_EQ(a, std::vector<float>({2, 4}));
    EXPECT_EQ(b, std::vector<float>({6}));
    float own = static_cast<float>(rank), other = -1;
    EXPECT_EQ(ranks_[rank]->SendReceive(1 - rank, &own, &other, sizeof(own), kPatient),
              absl::OkStatus());
    EXPECT_EQ(other, 1 - rank);
    const std::vector<size_t> bytes = {4, 8};
    std::vector<float> gathered(3);
    EXPECT_EQ(ranks_[rank]->AllGather(a.data(), gathered.data(), bytes, kPatient),
              absl::OkStatus());
    EXPECT_EQ(gathered, std::vector<float>({2, 2, 4}));
  });
  ranks_.clear();
  EXPECT_EQ(FakeGpu::calls("ncclCommDestroy"), 2);
  EXPECT_EQ(FakeGpu::calls("ncclCommAbort"), 0) << "they are freed already";
}

TEST_F(NcclTest, AllReduceScaled_EveryFloat) {
  Connect(1);
  double in64 = 3;
  float in32 = 3;
  Float16 in16 = Float16::FromFloat(3);
  Bfloat16 in_b = Bfloat16::FromFloat(3);
  const auto scale = [&](void* data, DataType type) {
    EXPECT_EQ(
        ranks_[0]->AllReduceScaled({Piece{data, data, 1}}, type, ReduceOp::kSum, 0.25, kPatient),
        absl::OkStatus());
  };
  scale(&in64, DataType::kFloat64);
  scale(&in32, DataType::kFloat32);
  scale(&in16, DataType::kFloat16);
  scale(&in_b, DataType::kBfloat16);
  EXPECT_EQ(in64, 0.75);
  EXPECT_EQ(in32, 0.75f);
  EXPECT_EQ(in16.ToFloat(), 0.75f);
  EXPECT_EQ(in_b.ToFloat(), 0.75f);
}

TEST_F(NcclTest, AllReduceScaled_WhatNcclCannotScale_BreaksNothing) {
  Connect(1);
  int32_t number = 4;
  EXPECT_EQ(ranks_[0]
                ->AllReduceScaled({Piece{&number, &number, 1}}, DataType::kInt32, ReduceOp::kSum,
                                  0.5, kPatient)
                .code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ranks_[0]
                ->AllReduceScaled({Piece{&number, &number, 1}}, DataType::kFloat32, ReduceOp::kMax,
                                  0.5, kPatient)
                .code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ranks_[0]
                ->ReduceScatterScaled(&number, &number, {1}, DataType::kInt32, ReduceOp::kSum, 0.5,
                                      kPatient)
                .code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(AllReduce()[0], absl::OkStatus());
}

TEST_F(NcclTest, ReduceScatterScaled_EvenAndNot) {
  Connect(2);
  const std::vector<size_t> layouts[] = {{2, 2}, {3, 1}, {0, 4}};
  for (const auto& counts : layouts) {
    conformance::ForEachRank(2, [&](int rank) {
      const std::vector<float> in = {2, 4, 6, 8};
      std::vector<float> out(counts[rank]);
      EXPECT_EQ(ranks_[rank]->ReduceScatterScaled(in.data(), out.data(), counts, DataType::kFloat32,
                                                  ReduceOp::kSum, 0.25, kPatient),
                absl::OkStatus());
      const size_t first = rank == 0 ? 0 : counts[0];
      for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], in[first + i] / 2);
    });
  }
  EXPECT_EQ(FakeGpu::calls("ncclRedOpCreatePreMulSum"), 6);
  EXPECT_EQ(FakeGpu::calls("ncclRedOpDestroy"), 6);
}

TEST_F(NcclTest, ReduceScatterScaled_ByWayOfTheHost) {
  conformance::RankGroup hosts(inproc::MakeInprocBackend());
  hosts.Connect(2);
  hosts.Run([&](Communicator& host) {
    const auto staged = backend_->Stage(0, host);
    ASSERT_TRUE(staged.ok()) << staged.status();
    const std::vector<float> in = {2, 4, 6};
    std::vector<float> out(2 - host.rank());
    EXPECT_EQ((*staged)->ReduceScatterScaled(in.data(), out.data(), {2, 1}, DataType::kFloat32,
                                             ReduceOp::kSum, 0.25, kPatient),
              absl::OkStatus());
    EXPECT_EQ(out, host.rank() == 0 ? std::vector<float>({1, 2}) : std::vector<float>({3}));
  });
}

TEST_F(NcclTest, Allocate_OutlivesTheCommunicator) {
  Connect(1);
  const auto nothing = ranks_[0]->Allocate(0);
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_EQ(*nothing, nullptr);
  auto memory = ranks_[0]->Allocate(sizeof(float));
  ASSERT_TRUE(memory.ok()) << memory.status();
  float* const value = static_cast<float*>(memory->get());
  *value = 3;
  EXPECT_EQ(ranks_[0]->AllReduce(value, value, 1, DataType::kFloat32, ReduceOp::kSum, kPatient),
            absl::OkStatus());
  ranks_.clear();
  FakeGpu::AwaitNothingLeft();
  EXPECT_EQ(*value, 3);
}

TEST_F(NcclTest, Allocate_Broken_SaysWhy) {
  Connect(1);
  ranks_[0]->Abort("enough");
  EXPECT_EQ(ranks_[0]->Allocate(1).status(), absl::AbortedError("enough"));
}

TEST_F(NcclTest, WaitFor_ReadsWhenTheEventHasHappened) {
  Connect(1);
  CudaEvent* const produced = FakeGpu::NewEvent();
  ASSERT_EQ(ranks_[0]->WaitFor(produced), absl::OkStatus());
  float value = 0, result = 0;
  std::thread producer([&] {
    value = 5;  // what another stream does before it
    FakeGpu::Happen(produced);
  });
  EXPECT_EQ(ranks_[0]->AllReduce(&value, &result, 1, DataType::kFloat32, ReduceOp::kSum, kPatient),
            absl::OkStatus());
  producer.join();
  EXPECT_EQ(result, 5);
}

TEST_F(NcclTest, WaitFor_AnEventThatNeverHappens_TheDeadlineEndsIt) {
  Connect(1);
  ASSERT_EQ(ranks_[0]->WaitFor(FakeGpu::NewEvent()), absl::OkStatus());
  EXPECT_EQ(AllReduce(kHasty)[0].code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(NcclTest, Copies_ThereAndBack) {
  Connect(1);
  const std::string from = "some bytes";
  std::string on_device(from.size(), '-'), back(from.size(), '-');
  EXPECT_EQ(ranks_[0]->CopyFromHost(&on_device[0], from.data(), from.size(), kPatient),
            absl::OkStatus());
  EXPECT_EQ(ranks_[0]->CopyToHost(&back[0], on_device.data(), from.size(), kPatient),
            absl::OkStatus());
  EXPECT_EQ(back, from);
  EXPECT_EQ(ranks_[0]->CopyToHost(nullptr, nullptr, 0, kPatient), absl::OkStatus());
}

TEST_F(NcclTest, ToString_NamesBackendRankAndEpoch) {
  Connect(2);
  EXPECT_EQ(ranks_[1]->ToString(), "nccl, rank 1 of 2, epoch 1");
  EXPECT_EQ(ranks_[1]->device(), 1);
}

}  // namespace
}  // namespace hvd::collectives::nccl
