#include "worker_runtime/engine/handle_table.h"

#include "gtest/gtest.h"

namespace hvd {
namespace {

TEST(HandleTableTest, Handles_AreFoundUntilRemovedAndNeverUsedTwice) {
  HandleTable table;
  const OperationPtr operation = std::make_shared<Operation>();
  const int64_t first = table.Add(operation);
  EXPECT_EQ(table.Find(first), operation);
  table.Remove(first);
  table.Remove(first);
  EXPECT_EQ(table.Find(first), nullptr);
  EXPECT_EQ(operation.use_count(), 1);
  EXPECT_NE(table.Add(operation), first);
}

}  // namespace
}  // namespace hvd
