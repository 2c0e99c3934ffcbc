#include "frameworks/tensorflow/xla_call.h"

#include "gtest/gtest.h"

namespace hvd::frameworks::tensorflow {
namespace {

TEST(XlaCallTest, ParseXlaOperation_ReadsAllFields) {
  XlaOperation operation;
  ASSERT_TRUE(ParseXlaOperation("0 1 0.5 2 3 4 2 7 2 5 6 3 0 allreduce.a name", &operation));
  EXPECT_EQ(operation.op, HVD_ALLREDUCE);
  EXPECT_EQ(operation.reduction, HVD_SUM);
  EXPECT_EQ(operation.prescale, 0.5);
  EXPECT_EQ(operation.postscale, 2);
  EXPECT_EQ(operation.root_rank, 3);
  EXPECT_EQ(operation.process_set, 4);
  ASSERT_EQ(operation.tensors.size(), 2u);
  EXPECT_EQ(operation.tensors[0].type, HVD_FLOAT32);
  EXPECT_EQ(operation.tensors[0].dims, (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(operation.tensors[1].type, HVD_INT32);
  EXPECT_TRUE(operation.tensors[1].dims.empty());
  EXPECT_EQ(operation.name, "allreduce.a name");
}

TEST(XlaCallTest, ParseXlaOperation_InvalidText_IsRefused) {
  XlaOperation operation;
  for (const char* text : {"", "0 1 1 1 0 0 0 name", "0 1 1 1 0 0 1 7 2 5", "0 1 1 1 0 0 1 7 -1 a",
                           "0 1 1 1 0 0 1 7 1 5", "x 1 1 1 0 0 1 7 1 5 a"}) {
    EXPECT_FALSE(ParseXlaOperation(text, &operation)) << text;
  }
}

}  // namespace
}  // namespace hvd::frameworks::tensorflow
