#include "base/net/acceptor.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/net/accept.h"
#include "gtest/gtest.h"

namespace hvd::net {
namespace {

// A clock that counts its reads. Each iteration of an event loop reads the clock once.
class CountingClock : public Clock {
 public:
  absl::Time Now() override {
    ++looks_;
    return Clock::Real().Now();
  }
  bool AwaitWithDeadline(absl::Mutex& mutex, const absl::Condition& condition,
                         absl::Time deadline) override {
    return Clock::Real().AwaitWithDeadline(mutex, condition, deadline);
  }
  int looks() const { return looks_; }

 private:
  int looks_ = 0;
};

class AcceptorTest : public testing::Test {
 protected:
  AcceptorTest() {
    address_.sun_family = AF_UNIX;
    // Without a name the kernel finds one.
    EXPECT_EQ(bind(listener_.get(), address(), sizeof(address_.sun_family)), 0);
    EXPECT_EQ(listen(listener_.get(), SOMAXCONN), 0);
    EXPECT_EQ(getsockname(listener_.get(), address(), &length_), 0);
    getrlimit(RLIMIT_NOFILE, &before_);
  }
  ~AcceptorTest() override { setrlimit(RLIMIT_NOFILE, &before_); }

  Fd Connect() {
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), address(), length_), 0);
    return fd;
  }

  sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }

  sockaddr_un address_ = {};
  socklen_t length_ = sizeof(address_);
  Fd listener_ = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  rlimit before_ = {};
  CountingClock clock_;
  const std::unique_ptr<EventLoop> loop_ = *EventLoop::Create(clock_);
};

TEST_F(AcceptorTest, Connections_AreTaken) {
  int taken = 0;
  Acceptor acceptor(*loop_, std::move(listener_), [&](Fd connection) {
    EXPECT_TRUE(connection.valid());
    if (++taken == 2) loop_->Stop();
  });
  ASSERT_TRUE(acceptor.Begin().ok());
  const Fd one = Connect();
  const Fd two = Connect();
  loop_->Run();
  EXPECT_EQ(taken, 2);
}

TEST_F(AcceptorTest, NoFiles_WaitsWithoutTurning_AndGoesOn) {
  bool taken = false;
  Acceptor acceptor(*loop_, std::move(listener_), [&](Fd) {
    taken = true;
    loop_->Stop();
  });
  ASSERT_TRUE(acceptor.Begin().ok());
  const Fd client = Connect();
  rlimit none = before_;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_NOFILE, &none);
  const int looks = clock_.looks();
  loop_->After(kAcceptPause * 5, [&] {
    EXPECT_FALSE(taken);
    setrlimit(RLIMIT_NOFILE, &before_);
  });
  loop_->Run();
  EXPECT_TRUE(taken);
  // A busy loop would have thousands of iterations.
  EXPECT_LT(clock_.looks() - looks, 200);
}

}  // namespace
}  // namespace hvd::net
