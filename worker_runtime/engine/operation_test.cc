#include "worker_runtime/engine/operation.h"

#include <cstring>

#include "gtest/gtest.h"

namespace hvd {
namespace {

TEST(OperationTest, PrepareOutput_UsesWhatTheRequestGaveOrNewMemory) {
  char given[4];
  auto operation = std::make_shared<Operation>();
  operation->requests.resize(2);
  operation->results.resize(2);
  operation->requests[0].output = given;
  const OperationTensor with{operation, 0}, without{operation, 1};
  EXPECT_EQ(with.PrepareOutput(4), given);
  EXPECT_EQ(with.result().data, given);
  void* made = without.PrepareOutput(100);
  std::memset(made, 1, 100);
  EXPECT_EQ(without.result().data, made);
  EXPECT_NE(OperationTensor({operation, 1}).PrepareOutput(0), nullptr);
}

}  // namespace
}  // namespace hvd
