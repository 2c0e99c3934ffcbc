#include "worker_runtime/engine/tensor_queue.h"

#include "gtest/gtest.h"

namespace hvd::worker_runtime::engine {
namespace {

OperationPtr Operate(std::vector<std::string> names) {
  auto operation = std::make_shared<Operation>();
  for (std::string& name : names) {
    negotiation::TensorSignature signature;
    signature.name = std::move(name);
    operation->signatures.push_back(
        std::make_shared<const negotiation::TensorSignature>(std::move(signature)));
  }
  operation->results.resize(names.size());
  operation->unfinished = names.size();
  return operation;
}

TEST(TensorQueueTest, Push_OnlyTheFirstNeedsAWake) {
  TensorQueue queue;
  EXPECT_TRUE(*queue.Push(Operate({"a"})));
  EXPECT_FALSE(*queue.Push(Operate({"b"})));
  EXPECT_EQ(queue.TakeNew().size(), 2u);
  EXPECT_TRUE(*queue.Push(Operate({"c"})));
}

TEST(TensorQueueTest, IsEmpty_UntilPushAndAfterTheLastTake) {
  TensorQueue queue;
  EXPECT_TRUE(queue.IsEmpty());
  ASSERT_TRUE(queue.Push(Operate({"a", "b"})).ok());
  queue.TakeNew();
  EXPECT_TRUE(queue.Take("a").has_value());
  EXPECT_FALSE(queue.IsEmpty());
  EXPECT_TRUE(queue.Take("b").has_value());
  EXPECT_TRUE(queue.IsEmpty());
}

TEST(TensorQueueTest, TakeNewBy_OnceTheFirstHasWaitedOrItIsMuch) {
  TensorQueue queue;
  constexpr absl::Duration kDay = absl::Hours(24);
  EXPECT_EQ(queue.TakeNewBy(kDay), absl::InfiniteFuture());
  ASSERT_TRUE(queue.Push(Operate({"a"})).ok());
  const absl::Time by = queue.TakeNewBy(kDay);
  EXPECT_EQ(by - kDay, queue.TakeNewBy(absl::ZeroDuration()));
  ASSERT_TRUE(queue.Push(Operate({"b"})).ok());
  EXPECT_EQ(queue.TakeNewBy(kDay), by);
  negotiation::TensorSignature large;
  large.name = "c";
  large.shape = {static_cast<int64_t>(TensorQueue::kMuchBytes / collectives::SizeOf(large.type))};
  const OperationPtr much = Operate({"c"});
  much->signatures = {std::make_shared<const negotiation::TensorSignature>(large)};
  EXPECT_TRUE(*queue.Push(much)) << "the engine has to know";
  EXPECT_EQ(queue.TakeNewBy(kDay), absl::InfinitePast());
  EXPECT_FALSE(*queue.Push(Operate({"d"})));
  queue.TakeNew();
  EXPECT_EQ(queue.TakeNewBy(kDay), absl::InfiniteFuture());
}

TEST(TensorQueueTest, Push_NameInFlight_QueuesNothing) {
  TensorQueue queue;
  ASSERT_TRUE(queue.Push(Operate({"a"})).ok());
  EXPECT_EQ(queue.Push(Operate({"b", "a"})).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(queue.Push(Operate({"c", "c"})).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(queue.TakeNew().size(), 1u);
  EXPECT_TRUE(queue.Push(Operate({"b", "c"})).ok());
}

TEST(TensorQueueTest, Take_EndsTheFlight) {
  TensorQueue queue;
  const OperationPtr operation = Operate({"a", "b"});
  ASSERT_TRUE(queue.Push(operation).ok());
  const auto b = queue.Take("b");
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(b->index, 1u);
  EXPECT_FALSE(queue.Take("b").has_value());
  b->Finish(absl::OkStatus());
  EXPECT_FALSE(operation->done.done());
  queue.Take("a")->Finish(absl::InternalError("x"));
  EXPECT_TRUE(operation->done.done());
  EXPECT_EQ(operation->status, absl::InternalError("x"));
}

TEST(TensorQueueTest, Close_FailsPendingAndLaterRequests) {
  TensorQueue queue;
  const OperationPtr operation = Operate({"a", "b"});
  ASSERT_TRUE(queue.Push(operation).ok());
  queue.Close(absl::AbortedError("first"));
  queue.Close(absl::AbortedError("second"));
  EXPECT_TRUE(operation->done.done());
  EXPECT_EQ(operation->status, absl::AbortedError("first"));
  EXPECT_EQ(queue.Push(Operate({"c"})).status(), absl::AbortedError("first"));
  EXPECT_TRUE(queue.TakeNew().empty());
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
