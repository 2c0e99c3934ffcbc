#include "base/net/peer/loop_part.h"

#include <sys/eventfd.h>

#include <memory>
#include <thread>  // NOLINT: the loop's

#include "absl/synchronization/notification.h"
#include "base/fd.h"
#include "gtest/gtest.h"

namespace hvd::net::peer {
namespace {

class LoopPartTest : public testing::Test {
 protected:
  ~LoopPartTest() override {
    loop_->Post([this] { loop_->Stop(); });
    thread_.join();
  }

  // Returns when all that was posted before has been done.
  void Drain() {
    absl::Notification done;
    loop_->Post([&done] { done.Notify(); });
    done.WaitForNotification();
  }

  const std::unique_ptr<EventLoop> loop_ = *EventLoop::Create();
  std::thread thread_{[this] { loop_->Run(); }};
};

TEST_F(LoopPartTest, CallsTasksTimersAndHandlers) {
  LoopPart part(*loop_);
  const Fd fd(eventfd(1, EFD_CLOEXEC));
  absl::Notification timer, readable;
  part.Post([&] {
    part.After(absl::ZeroDuration(), [&] { timer.Notify(); });
    EXPECT_TRUE(part.Watch(fd.get(), EPOLLIN,
                           [&](uint32_t) {
                             part.Forget(fd.get());
                             readable.Notify();
                           })
                    .ok());
  });
  timer.WaitForNotification();
  readable.WaitForNotification();
  part.End();
}

TEST_F(LoopPartTest, AfterTheEnd_NothingIsCalled) {
  const Fd fd(eventfd(0, EFD_CLOEXEC));
  auto part = std::make_unique<LoopPart>(*loop_);
  absl::Notification go_on;
  part->Post([&] {
    part->After(absl::Milliseconds(1), [] { ADD_FAILURE() << "a timer"; });
    EXPECT_TRUE(
        part->Watch(fd.get(), EPOLLIN, [](uint32_t) { ADD_FAILURE() << "a handler"; }).ok());
    part->Close();
    part->Post([] { ADD_FAILURE() << "a task"; });
    eventfd_write(fd.get(), 1);
  });
  part->End();
  part.reset();
  Drain();
  // The timer of the loop's own comes after the part's.
  loop_->Post([&] { loop_->After(absl::Milliseconds(2), [&] { go_on.Notify(); }); });
  go_on.WaitForNotification();
}

TEST_F(LoopPartTest, TheEndOfOnePart_LeavesTheOthers) {
  const Fd fd(eventfd(0, EFD_CLOEXEC));
  LoopPart one(*loop_), other(*loop_);
  absl::Notification readable;
  other.Post([&] {
    EXPECT_TRUE(other
                    .Watch(fd.get(), EPOLLIN,
                           [&](uint32_t) {
                             other.Forget(fd.get());
                             readable.Notify();
                           })
                    .ok());
  });
  one.End();
  eventfd_write(fd.get(), 1);
  readable.WaitForNotification();
  other.End();
}

// The number of a closed descriptor may be another one's soon, which is watched then.
TEST_F(LoopPartTest, AfterTheEnd_AnotherDescriptorOfTheSameNumberIsWatched) {
  LoopPart one(*loop_), other(*loop_);
  Fd fd(eventfd(0, EFD_CLOEXEC));
  const int number = fd.get();
  one.Post([&] { EXPECT_TRUE(one.Watch(number, EPOLLIN, [](uint32_t) {}).ok()); });
  one.End();
  fd.reset();
  const Fd next(eventfd(1, EFD_CLOEXEC));
  ASSERT_EQ(next.get(), number);
  absl::Notification readable;
  other.Post([&] {
    EXPECT_TRUE(other
                    .Watch(number, EPOLLIN,
                           [&](uint32_t) {
                             other.Forget(number);
                             readable.Notify();
                           })
                    .ok());
  });
  readable.WaitForNotification();
  other.End();
}

}  // namespace
}  // namespace hvd::net::peer
