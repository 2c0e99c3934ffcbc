#include "base/net/tcp_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "gtest/gtest.h"

namespace hvd::net {
namespace {

absl::Time Soon() { return Clock::Real().Now() + absl::Seconds(60); }

TEST(TcpSocketTest, ListenAndConnect_OverBothFamilies) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    const auto listener = ListenOnAnyPort(address);
    if (address[0] == ':' && absl::IsUnavailable(listener.status())) continue;  // no IPv6 here
    ASSERT_TRUE(listener.ok()) << listener.status();
    const auto client = ConnectTo(address, *PortOf(listener->get()), Soon());
    ASSERT_TRUE(client.ok()) << client.status();
    EXPECT_TRUE(TuneForMessages(client->get()).ok());
    EXPECT_TRUE(AwaitReady(listener->get(), POLLIN, Soon()).ok());
  }
}

TEST(TcpSocketTest, ReserveAnyPort_NobodyGetsItBeforeItIsShared) {
  const auto reserved = ReserveAnyPort("127.0.0.1");
  ASSERT_TRUE(reserved.ok()) << reserved.status();
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(getsockname(reserved->get(), name, &length), 0);
  const Fd other(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ASSERT_EQ(setsockopt(other.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
  EXPECT_NE(bind(other.get(), name, length), 0) << "not shared yet";
  ASSERT_TRUE(ShareReservedPort(reserved->get()).ok());
  const Fd careless(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(bind(careless.get(), name, length), 0) << "without SO_REUSEADDR";
  EXPECT_EQ(bind(other.get(), name, length), 0);
  EXPECT_EQ(listen(other.get(), 1), 0);
}

TEST(TcpSocketTest, NamesAndGarbage_AreNotAddresses) {
  for (const char* address : {"localhost", "nonsense", "", "192.0.2.1", "127.0.0.1:80"}) {
    EXPECT_EQ(ListenOnAnyPort(address).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
    EXPECT_EQ(ReserveAnyPort(address).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
  }
  EXPECT_EQ(ConnectTo("1.2.3.x", 80, Soon()).status().code(), absl::StatusCode::kInvalidArgument)
      << "no number";
}

TEST(TcpSocketTest, AwaitReady_NothingComes_TimesOut) {
  const auto listener = ListenOnAnyPort("127.0.0.1");
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(AwaitReady(listener->get(), POLLIN, Clock::Real().Now()).code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(TcpSocketTest, TimeoutUntil_RoundsUpAndKnowsForEver) {
  EXPECT_EQ(TimeoutUntil(absl::InfiniteFuture()), -1);
  EXPECT_EQ(TimeoutUntil(Clock::Real().Now() - absl::Seconds(1)), 0);
  const int soon = TimeoutUntil(Clock::Real().Now() + absl::Microseconds(900));
  EXPECT_TRUE(soon == 0 || soon == 1) << soon;  // 0 only if we were interrupted for that long
}

}  // namespace
}  // namespace hvd::net
