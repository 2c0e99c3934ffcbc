#include "rendezvous/transport/call_memory.h"

#include "gtest/gtest.h"
#include "proto/rendezvous.pb.h"

namespace hvd::rendezvous::transport {
namespace {

constexpr size_t kMost = CallMemory::kMostOfAWorker;
const CallMemory::Owner kWorker = uint64_t{3};
const CallMemory::Owner kOther = uint64_t{4};

TEST(CallMemoryTest, Requests_UntilTheLimit) {
  CallMemory memory;
  memory.TakeRequest(kWorker, kMost - 1);
  EXPECT_TRUE(memory.CheckRoom(kWorker).ok());
  memory.TakeRequest(kWorker, 1);
  EXPECT_EQ(memory.CheckRoom(kWorker).message(),
            "worker 3 has parked requests of 8388608 bytes; at most 8388608 are possible");
  EXPECT_TRUE(memory.CheckRoom(kOther).ok());
  memory.Release(kWorker, {1, 0});
  EXPECT_TRUE(memory.CheckRoom(kWorker).ok());
}

TEST(CallMemoryTest, Answers_OneOfAnySizeOrSeveralUntilTheLimit) {
  CallMemory memory;
  EXPECT_TRUE(memory.TakeAnswer(kWorker, 2 * kMost).ok());
  EXPECT_EQ(memory.TakeAnswer(kWorker, 1).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(memory.TakeAnswer(kOther, kMost / 2).ok());
  EXPECT_TRUE(memory.TakeAnswer(kOther, kMost / 2).ok());
  EXPECT_FALSE(memory.TakeAnswer(kOther, 1).ok());
  memory.Release(kWorker, {0, 2 * kMost});
  EXPECT_TRUE(memory.TakeAnswer(kWorker, 2 * kMost).ok());
}

// Parked watches must not keep a worker from a large answer.
TEST(CallMemoryTest, AnswersAndRequests_AreApart) {
  CallMemory memory;
  memory.TakeRequest(kWorker, 100);
  EXPECT_TRUE(memory.TakeAnswer(kWorker, 2 * kMost).ok());
  EXPECT_TRUE(memory.CheckRoom(kWorker).ok());
}

TEST(CallMemoryTest, OwnerOf_IsTheWorkerOrTheConnection) {
  const grpc::CallbackServerContext context;
  pb::WatchEpochRequest watch;
  watch.mutable_worker()->set_worker_id(3);
  EXPECT_EQ(CallMemory::OwnerOf(context, watch), kWorker);
  EXPECT_EQ(CallMemory::OwnerOf(context, pb::GetStatusRequest()), CallMemory::Owner(""));
}

}  // namespace
}  // namespace hvd::rendezvous::transport
