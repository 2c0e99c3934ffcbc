#include "frameworks/tensorflow/name_queue.h"

#include <vector>

#include "gtest/gtest.h"

namespace hvd::frameworks::tensorflow {
namespace {

TEST(NameQueueTest, Begin_OfTheSameName_WaitsForItsTurn) {
  NameQueue queue;
  std::vector<int> started;
  for (int i = 0; i < 3; ++i) queue.Begin("a", [&started, i] { started.push_back(i); });
  queue.Begin("b", [&started] { started.push_back(10); });
  EXPECT_EQ(started, (std::vector<int>{0, 10}));
  queue.End("a");
  queue.End("a");
  EXPECT_EQ(started, (std::vector<int>{0, 10, 1, 2}));
  queue.End("a");
  queue.Begin("a", [&started] { started.push_back(3); });
  EXPECT_EQ(started.back(), 3);
}

TEST(NameQueueTest, End_MayBeCalledByWhatItStarts) {
  NameQueue queue;
  int ended = 0;
  queue.Begin("a", [] {});
  for (int i = 0; i < 2; ++i) {
    queue.Begin("a", [&queue, &ended] {
      ++ended;
      queue.End("a");
    });
  }
  queue.End("a");
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace hvd::frameworks::tensorflow
