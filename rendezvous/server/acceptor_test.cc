#include "rendezvous/server/acceptor.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <ctime>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "rendezvous/server/listen_address.h"

namespace hvd {
namespace {

class AcceptorTest : public testing::Test {
 protected:
  AcceptorTest() {
    address_ = *ParseListenAddress(address_.WithPort(BoundPort(listener_.get())));
    getrlimit(RLIMIT_NOFILE, &before_);
  }
  ~AcceptorTest() override { setrlimit(RLIMIT_NOFILE, &before_); }

  Fd Connect() const {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        connect(fd.get(), reinterpret_cast<const sockaddr*>(&address_.address), address_.length),
        0);
    return fd;
  }

  ListenAddress address_ = *ParseListenAddress("127.0.0.1:0");
  Fd listener_ = *ListenOn(address_);
  rlimit before_ = {};
  const std::unique_ptr<EventLoop> loop_ = *EventLoop::Create();
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
  const clock_t start = clock();
  loop_->After(Acceptor::kPause * 5, [&] {
    EXPECT_FALSE(taken);
    setrlimit(RLIMIT_NOFILE, &before_);
  });
  loop_->Run();
  EXPECT_TRUE(taken);
  // CPU time, of half a second: a loop that turned would have used all of it.
  EXPECT_LT(clock() - start, CLOCKS_PER_SEC / 4);
}

}  // namespace
}  // namespace hvd
