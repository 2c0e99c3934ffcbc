#include "worker_runtime/engine/blocked_waits.h"

#include "gtest/gtest.h"

namespace hvd {
namespace {

TEST(BlockedWaitsTest, Get_NamesWhatIsNotDone) {
  BlockedWaits waits;
  EXPECT_TRUE(waits.Get().names.empty());
  const OperationPtr operation = std::make_shared<Operation>();
  TensorSignature signature;
  signature.name = "a";
  operation->signatures.push_back(std::make_shared<const TensorSignature>(signature));
  waits.Add(operation);
  const auto blocked = waits.Get();
  EXPECT_EQ(blocked.names, std::vector<std::string>{"a"});
  operation->done.Notify();
  EXPECT_TRUE(waits.Get().names.empty());
  waits.Remove(operation);
  EXPECT_NE(waits.Get().version, blocked.version);
}

}  // namespace
}  // namespace hvd
