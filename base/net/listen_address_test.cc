#include "base/net/listen_address.h"

#include <sys/socket.h>

#include <string>

#include "base/fd.h"
#include "gtest/gtest.h"

namespace hvd::net {
namespace {

TEST(ListenAddressTest, Parse_TakesNumericAddresses) {
  const auto v4 = ParseListenAddress("127.0.0.1:0");
  ASSERT_TRUE(v4.ok());
  EXPECT_EQ(v4->WithPort(80), "127.0.0.1:80");
  const auto v6 = ParseListenAddress("[::1]:65535");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->port, "65535");
  EXPECT_EQ(v6->WithPort(80), "[::1]:80");
}

TEST(ListenAddressTest, Parse_RefusesAllElseAndQuotesIt) {
  for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1",
                           "127.0.0.1:65536", "127.0.0.1:+1", "localhost:0", "::1:0", "[::1]",
                           "[127.0.0.1]:0", "127.0.0.1:00000000", "256.0.0.1:0", "127.0.0.1: 1"}) {
    const auto parsed = ParseListenAddress(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(parsed.status().message().find(text), absl::string_view::npos) << text;
  }
}

TEST(ListenAddressTest, ListenOn_PortInUse_NamesAddressAndReason) {
  for (const char* text : {"127.0.0.1:0", "0.0.0.0:0", "[::]:0"}) {
    ListenAddress address = *ParseListenAddress(text);
    const auto first = ListenOn(address);
    ASSERT_TRUE(first.ok()) << first.status();
    address = *ParseListenAddress(address.WithPort(BoundPort(first->get())));
    const auto second = ListenOn(address);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(second.status().message(), "can't listen on " +
                                             JoinHostPort(address.host, address.port) +
                                             ": Address already in use; choose another port");
  }
}

TEST(ListenAddressTest, ListenOn_AnyAddress_IsReachedByBothProtocols) {
  for (const char* text : {"0.0.0.0:0", "[::]:0"}) {
    const auto listener = ListenOn(*ParseListenAddress(text));
    ASSERT_TRUE(listener.ok()) << listener.status();
    for (const char* target : {"127.0.0.1:", "[::1]:"}) {
      const auto address = *ParseListenAddress(target + std::to_string(BoundPort(listener->get())));
      const Fd client(socket(address.address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&address.address.storage),
                        address.address.length),
                0)
          << text << " from " << target;
    }
  }
}

TEST(ListenAddressTest, ListenOn_AddressOfAnotherMachine_SaysSo) {
  const auto listener = ListenOn(*ParseListenAddress("192.0.2.1:0"));
  EXPECT_EQ(listener.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hvd::net
