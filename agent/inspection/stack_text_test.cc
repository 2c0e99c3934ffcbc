#include "agent/inspection/stack_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::agent::inspection {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(StackTextTest, ParseStack_Dump_GivesFramesInnermostFirst) {
  EXPECT_THAT(ParseStack("Stack (most recent call first):\n"
                         "  File \"/home/me/a \", line b.py\", line 42 in load\n"
                         "  File \"train.py\", line ??? in <module>\n"
                         "  ...\n"
                         "  File \"cut"),
              ElementsAre("/home/me/a \", line b.py:42 in load", "train.py:??? in <module>"));
}

TEST(StackTextTest, ParseStack_Noise_GivesNothing) {
  for (const char* noise : {"", "\n\n", "  File \"", "  File \"a.py\"\n", "File\n"}) {
    EXPECT_THAT(ParseStack(noise), IsEmpty()) << noise;
  }
}

TEST(StackTextTest, DescribeStack_OwnCode_IsTheInnermostFrame) {
  EXPECT_EQ(DescribeStack({"/home/me/train.py:42 in load", "/home/me/train.py:60 in <module>"}),
            "is at train.py:42 in load");
}

TEST(StackTextTest, DescribeStack_Library_IsAlsoWhereItWasCalled) {
  EXPECT_EQ(DescribeStack({"/usr/lib/python3.11/threading.py:320 in wait",
                           "/x/site-packages/torch/utils/data.py:7 in next",
                           "/home/me/train.py:42 in load"}),
            "is at threading.py:320 in wait, called at train.py:42 in load");
  EXPECT_EQ(DescribeStack({"/usr/lib/python3.11/threading.py:320 in wait"}),
            "is at threading.py:320 in wait");
  EXPECT_EQ(
      DescribeStack(
          {"/src/horovod/_ffi/_operations.py:90 in run", "/src/horovod/elastic/loop.py:7 in _sync",
           "/src/horovod/tensorflow/mpi_ops.py:8 in _reduce", "/home/horovod/train.py:42 in load"}),
      "is at _operations.py:90 in run, called at train.py:42 in load")
      << "not installed by pip";
}

}  // namespace
}  // namespace hvd::agent::inspection
