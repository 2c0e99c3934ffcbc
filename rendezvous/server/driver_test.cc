#include "rendezvous/server/driver.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::server {
namespace {

// A clock that advances by command only.
class ManualClock : public Clock {
 public:
  absl::Time Now() override { return absl::UnixEpoch() + absl::Nanoseconds(nanos_.load()); }

  bool AwaitWithDeadline(absl::Mutex& mutex, const absl::Condition& condition,
                         absl::Time deadline) override {
    waiter_ = &mutex;
    const auto over = [&] { return condition.Eval() || Now() >= deadline; };
    mutex.Await(absl::Condition(&over));
    return condition.Eval();
  }

  void Advance(absl::Duration by) {
    nanos_ += absl::ToInt64Nanoseconds(by);
    // Whoever waits looks at its condition when the mutex is let go.
    if (absl::Mutex* const waiter = waiter_) absl::MutexLock lock(waiter);
  }

 private:
  std::atomic<int64_t> nanos_{0};
  std::atomic<absl::Mutex*> waiter_{nullptr};
};

// A machine that answers each call's end with two effects, and each tick with one.
class DriverTest : public testing::Test {
 protected:
  StateMachine Script() {
    return {[this](const membership::Event& event, absl::Time) { return Apply(event); },
            [this] { return deadline_; }};
  }

  std::vector<membership::Effect> Apply(const membership::Event& event) {
    if (std::holds_alternative<membership::Tick>(event)) {
      deadline_ = absl::InfiniteFuture();
      return {membership::ReplyStatus{membership::CallId(1000), absl::OkStatus()}};
    }
    const membership::CallId call = std::get<membership::CallCancelled>(event).call;
    return {membership::ReplyStatus{call, absl::OkStatus()},
            membership::ReplyStatus{call, absl::OkStatus()}};
  }

  // Notes the calls that are recorded, and says whether that worked.
  StateMachine Recording(bool works) {
    StateMachine machine = Script();
    machine.record = [this, works](const std::vector<const membership::Event*>& events,
                                   absl::Time) {
      EXPECT_FALSE(events.empty());
      for (const membership::Event* event : events) {
        const auto* cancelled = std::get_if<membership::CallCancelled>(event);
        recorded_.push_back(cancelled == nullptr ? 1000 : cancelled->call.value());
      }
      ++records_;
      return works;
    };
    return machine;
  }

  Driver::EffectHandler Collect(size_t expected) {
    return [this, expected](membership::Effect effect) {
      seen_.push_back(std::get<membership::ReplyStatus>(effect).call.value());
      if (seen_.size() == expected) enough_.Notify();
    };
  }

  absl::Time deadline_ = absl::InfiniteFuture();  // the loop's
  std::vector<uint64_t> seen_;                    // the loop's until enough_
  std::vector<uint64_t> recorded_;                // as seen_
  int records_ = 0;
  absl::Notification enough_;
  ManualClock clock_;
};

TEST_F(DriverTest, Post_EventsInOrder_EffectsInOrder) {
  Driver driver(Script(), Collect(6), clock_);
  for (uint64_t i = 1; i <= 3; ++i) driver.Post(membership::CallCancelled{membership::CallId(i)});
  enough_.WaitForNotification();
  EXPECT_EQ(seen_, (std::vector<uint64_t>{1, 1, 2, 2, 3, 3}));
}

TEST_F(DriverTest, Post_FromManyThreads_NothingIsLost) {
  Driver driver(Script(), Collect(2 * 4 * 50), clock_);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&driver, t] {
      for (uint64_t i = 0; i < 50; ++i)
        driver.Post(membership::CallCancelled{membership::CallId(100 * t + i)});
    });
  }
  for (std::thread& thread : threads) thread.join();
  enough_.WaitForNotification();
  EXPECT_EQ(std::set<uint64_t>(seen_.begin(), seen_.end()).size(), 200u);
}

TEST_F(DriverTest, HandlerMayPost_TheEventComesAfterTheOneAtHand) {
  Driver* self = nullptr;
  absl::Notification ready;
  Driver driver(
      Script(),
      [&](membership::Effect effect) {
        ready.WaitForNotification();
        seen_.push_back(std::get<membership::ReplyStatus>(effect).call.value());
        if (seen_.size() == 1) self->Post(membership::CallCancelled{membership::CallId(2)});
        if (seen_.size() == 4) enough_.Notify();
      },
      clock_);
  self = &driver;
  ready.Notify();
  driver.Post(membership::CallCancelled{membership::CallId(1)});
  enough_.WaitForNotification();
  EXPECT_EQ(seen_, (std::vector<uint64_t>{1, 1, 2, 2}));
}

TEST_F(DriverTest, BusyFor_SaysHowLongAWriteHangs_NotHowLongNothingComes) {
  absl::Notification begun, goes_on;
  StateMachine machine = Script();
  machine.record = [&](const std::vector<const membership::Event*>&, absl::Time) {
    begun.Notify();
    goes_on.WaitForNotification();
    return true;
  };
  Driver driver(std::move(machine), Collect(2), clock_);
  driver.Post(membership::CallCancelled{membership::CallId(1)});
  begun.WaitForNotification();
  clock_.Advance(absl::Seconds(12));
  EXPECT_EQ(driver.BusyFor(), absl::Seconds(12));
  goes_on.Notify();
  enough_.WaitForNotification();
  clock_.Advance(absl::Hours(1));
  while (driver.BusyFor() > absl::ZeroDuration()) continue;  // until it waits again
}

TEST_F(DriverTest, Waiting_CountsUnfinishedEvents) {
  absl::Notification begun, goes_on;
  Driver driver(Script(), Collect(4), clock_);
  driver.Run([&] {
    begun.Notify();
    goes_on.WaitForNotification();
  });
  begun.WaitForNotification();
  const size_t working = driver.waiting();
  EXPECT_GT(working, 0u);
  driver.Post(membership::CallCancelled{membership::CallId(1)}, 1000);
  driver.Post(membership::CallCancelled{membership::CallId(2)});
  EXPECT_EQ(driver.waiting(), 3 * working + 1000);
  goes_on.Notify();
  enough_.WaitForNotification();
  while (driver.waiting() > 0) continue;  // until it waits again
}

TEST_F(DriverTest, DeadlinePassed_TicksOnce) {
  deadline_ = clock_.Now() + absl::Seconds(30);
  Driver driver(Script(), Collect(3), clock_);
  absl::Notification started;
  driver.Run([&] { started.Notify(); });
  started.WaitForNotification();
  clock_.Advance(absl::Seconds(31));
  driver.Post(membership::CallCancelled{membership::CallId(1)});
  enough_.WaitForNotification();
  EXPECT_EQ(std::count(seen_.begin(), seen_.end(), 1000u), 1);
}

TEST_F(DriverTest, DeadlineNotYetPassed_NoTick) {
  deadline_ = clock_.Now() + absl::Seconds(30);
  Driver driver(Script(), Collect(2), clock_);
  clock_.Advance(absl::Seconds(29));
  driver.Post(membership::CallCancelled{membership::CallId(1)});
  enough_.WaitForNotification();
  EXPECT_EQ(seen_, (std::vector<uint64_t>{1, 1}));
}

TEST_F(DriverTest, BusyQueue_TimeStillPasses) {
  deadline_ = clock_.Now() + absl::Seconds(30);
  Driver* self = nullptr;
  absl::Notification ready;
  Driver driver(
      Script(),
      [&](membership::Effect effect) {
        ready.WaitForNotification();
        const uint64_t call = std::get<membership::ReplyStatus>(effect).call.value();
        if (call == 1000) return enough_.Notify();
        clock_.Advance(absl::Seconds(1));
        self->Post(
            membership::CallCancelled{membership::CallId(call)});  // the queue never runs dry
      },
      clock_);
  self = &driver;
  ready.Notify();
  driver.Post(membership::CallCancelled{membership::CallId(1)});
  enough_.WaitForNotification();
}

TEST_F(DriverTest, Record_WholeBatchOnce_BeforeAnyOfItIsApplied) {
  absl::Notification inside;
  absl::Notification posted;
  Driver driver(
      Recording(true),
      [&](membership::Effect effect) {
        EXPECT_EQ(recorded_, (std::vector<uint64_t>{1, 2, 3}));
        seen_.push_back(std::get<membership::ReplyStatus>(effect).call.value());
        if (seen_.size() == 6) enough_.Notify();
      },
      clock_);
  driver.Run([&] {
    inside.Notify();
    posted.WaitForNotification();
  });
  inside.WaitForNotification();
  for (uint64_t i = 1; i <= 3; ++i) driver.Post(membership::CallCancelled{membership::CallId(i)});
  posted.Notify();
  enough_.WaitForNotification();
  EXPECT_EQ(records_, 1);
}

TEST_F(DriverTest, Record_Ticks) {
  deadline_ = clock_.Now();
  Driver driver(Recording(true), Collect(1), clock_);
  driver.Run([] {});
  enough_.WaitForNotification();
  EXPECT_EQ(recorded_, std::vector<uint64_t>{1000});
}

TEST_F(DriverTest, Record_Fails_NothingIsAppliedAnyMore_ButTasksAreDone) {
  deadline_ = clock_.Now() + absl::Seconds(1);
  Driver driver(
      Recording(false), [](membership::Effect) { ADD_FAILURE(); }, clock_);
  driver.Post(membership::CallCancelled{membership::CallId(1)});
  driver.Post(membership::CallCancelled{membership::CallId(2)});
  absl::Notification first;
  driver.Run([&] { first.Notify(); });
  first.WaitForNotification();
  clock_.Advance(absl::Seconds(2));
  driver.Post(membership::CallCancelled{membership::CallId(3)});
  driver.Run([&] { enough_.Notify(); });
  enough_.WaitForNotification();
  EXPECT_EQ(records_, 1);
}

TEST_F(DriverTest, Run_FromTheLoopItself_IsDoneAtOnce) {
  Driver* self = nullptr;
  bool inner = false;
  Driver driver(Script(), Collect(0), clock_);
  self = &driver;
  driver.Run([&] {
    self->Run([&] { inner = true; });
    EXPECT_TRUE(inner);
    enough_.Notify();
  });
  enough_.WaitForNotification();
}

TEST_F(DriverTest, Stop_DropsQueuedAndLaterEvents) {
  absl::Notification inside;
  absl::Notification go_on;
  Driver driver(Script(), Collect(1000), clock_);
  driver.Run([&] {
    inside.Notify();
    go_on.WaitForNotification();
  });
  inside.WaitForNotification();
  driver.Post(membership::CallCancelled{membership::CallId(1)});
  std::thread stop([&] { driver.Stop(); });
  go_on.Notify();
  stop.join();
  const size_t seen = seen_.size();
  driver.Post(membership::CallCancelled{membership::CallId(2)});
  driver.Stop();
  EXPECT_EQ(seen_.size(), seen);
}

}  // namespace
}  // namespace hvd::rendezvous::server
