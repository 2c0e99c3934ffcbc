#include "base/event_loop.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace hvd {
namespace {

class EventLoopTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(SetNonBlocking(pipe_.read.get()).ok()); }

  Pipe pipe_ = MakePipe().value();
  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
};

TEST_F(EventLoopTest, Watch_DataArrives_CallsHandler) {
  std::string got;
  ASSERT_TRUE(loop_
                  ->Watch(pipe_.read.get(), EPOLLIN,
                          [&](uint32_t) {
                            char buffer[16];
                            got.append(buffer,
                                       ReadSome(pipe_.read.get(), buffer, sizeof(buffer)).bytes);
                            loop_->Stop();
                          })
                  .ok());
  std::thread writer([&] { EXPECT_TRUE(WriteAll(pipe_.write.get(), "hi").ok()); });
  loop_->Run();
  writer.join();
  EXPECT_EQ(got, "hi");
}

TEST_F(EventLoopTest, Change_ToNothing_IsNotCalledEvenForHangUp) {
  int calls = 0;
  ASSERT_TRUE(loop_->Watch(pipe_.read.get(), EPOLLIN, [&](uint32_t) { ++calls; }).ok());
  loop_->Change(pipe_.read.get(), 0);
  pipe_.write.reset();
  loop_->After(absl::Milliseconds(1), [&] {
    EXPECT_EQ(calls, 0);
    loop_->Change(pipe_.read.get(), EPOLLIN);
    loop_->After(absl::Milliseconds(1), [&] { loop_->Stop(); });
  });
  loop_->Run();
  EXPECT_GT(calls, 0);
}

TEST_F(EventLoopTest, Forget_ByItsOwnHandlerAndClosed_SuccessorGetsNoOldEvent) {
  Pipe second = MakePipe().value();
  int calls = 0;
  // Both are ready in one round; the handler that runs first forgets both.
  auto forget_both = [&](uint32_t) {
    ++calls;
    loop_->Forget(pipe_.read.get());
    loop_->Forget(second.read.get());
    second = MakePipe().value();  // very likely the same number
    ASSERT_TRUE(loop_->Watch(second.read.get(), EPOLLIN, [&](uint32_t) { ++calls; }).ok());
    loop_->Post([&] { loop_->Stop(); });
  };
  ASSERT_TRUE(loop_->Watch(pipe_.read.get(), EPOLLIN, forget_both).ok());
  ASSERT_TRUE(loop_->Watch(second.read.get(), EPOLLIN, forget_both).ok());
  ASSERT_TRUE(WriteAll(pipe_.write.get(), "x").ok());
  ASSERT_TRUE(WriteAll(second.write.get(), "x").ok());
  loop_->Run();
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, Post_FromManyThreads_RunsAllOfThem) {
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        loop_->Post([&] {
          if (++count == 400) loop_->Stop();
        });
      }
    });
  }
  loop_->Run();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 400);
}

TEST_F(EventLoopTest, After_SeveralTimers_FireInOrderAndCancelledDoNot) {
  std::string order;
  loop_->After(absl::Milliseconds(2), [&] {
    order += 'b';
    loop_->Stop();
  });
  loop_->After(absl::Milliseconds(1), [&] { order += 'a'; });
  loop_->Cancel(loop_->After(absl::ZeroDuration(), [&] { order += 'x'; }));
  loop_->Run();
  EXPECT_EQ(order, "ab");
}

TEST_F(EventLoopTest, Stop_WithTasksLeft_DropsThem) {
  bool ran = false;
  loop_->Post([&] { loop_->Stop(); });
  loop_->Post([&] { ran = true; });
  loop_->Run();
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace hvd
