#include "worker_runtime/engine/operation.h"

#include <cstring>

#include "gtest/gtest.h"

namespace hvd::worker_runtime::engine {
namespace {

TEST(OperationTest, PrepareOutput_UsesWhatTheRequestGaveOrNewMemory) {
  char given[4];
  auto operation = std::make_shared<Operation>();
  operation->requests.resize(2);
  operation->results.resize(2);
  operation->requests[0].output = given;
  const OperationTensor with{operation, 0}, without{operation, 1};
  EXPECT_EQ(*with.PrepareOutput(4), given);
  EXPECT_EQ(with.result().data, given);
  void* made = *without.PrepareOutput(100);
  std::memset(made, 1, 100);
  EXPECT_EQ(without.result().data, made);
  EXPECT_NE(*OperationTensor({operation, 1}).PrepareOutput(0), nullptr);
}

TEST(OperationTest, PrepareOutput_WrongGuess_IsNotUsed) {
  char given[4];
  auto operation = std::make_shared<Operation>();
  operation->requests.resize(1);
  operation->results.resize(1);
  operation->requests[0].output = given;
  const OperationTensor tensor{operation, 0};
  EXPECT_EQ(*tensor.PrepareOutput(4, 4), given);
  for (const size_t bytes : {0, 3, 5}) {
    void* const made = *tensor.PrepareOutput(bytes, 4);
    EXPECT_NE(made, given);
    EXPECT_EQ(tensor.result().data, made);
    std::memset(made, 1, bytes);
  }
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
