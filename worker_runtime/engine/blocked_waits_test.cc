#include "worker_runtime/engine/blocked_waits.h"

#include "gtest/gtest.h"

namespace hvd::worker_runtime::engine {
namespace {

TEST(BlockedWaitsTest, Get_NamesPendingOperations) {
  BlockedWaits waits;
  EXPECT_TRUE(waits.Get().names.empty());
  const OperationPtr operation = std::make_shared<Operation>();
  for (const char* name : {"a", "of the same group"}) {
    negotiation::TensorSignature signature;
    signature.name = name;
    operation->signatures.push_back(
        std::make_shared<const negotiation::TensorSignature>(signature));
  }
  EXPECT_TRUE(waits.Add(operation));
  EXPECT_FALSE(waits.Add(operation));
  const auto blocked = waits.Get();
  EXPECT_EQ(blocked.names, std::vector<std::string>{"a"});
  operation->done.Notify();
  EXPECT_TRUE(waits.Get().names.empty());
  waits.Remove(operation);
  const uint64_t version = waits.Get().version;
  EXPECT_NE(version, blocked.version);
  waits.Remove(operation);
  EXPECT_EQ(waits.Get().version, version) << "nothing has changed";
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
