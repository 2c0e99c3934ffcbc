#include "rendezvous/server/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/fd.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

TEST(ListenAddressTest, Parse_TakesNumericAddresses) {
  const auto v4 = ParseListenAddress("127.0.0.1:0");
  ASSERT_TRUE(v4.ok());
  EXPECT_EQ(v4->WithPort(80), "127.0.0.1:80");
  const auto v6 = ParseListenAddress("[::1]:65535");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->port, 65535);
  EXPECT_EQ(v6->WithPort(80), "[::1]:80");
}

TEST(ListenAddressTest, Parse_RefusesAllElseAndQuotesIt) {
  for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1",
                           "127.0.0.1:65536", "127.0.0.1:+1", "localhost:0", "::1:0", "[::1]",
                           "[127.0.0.1]:0", "256.0.0.1:0", "127.0.0.1: 1"}) {
    const auto parsed = ParseListenAddress(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(parsed.status().message().find(text), absl::string_view::npos) << text;
  }
}

TEST(ListenAddressTest, TryToListen_PortInUse_NamesAddressAndReason) {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto address = *ParseListenAddress("127.0.0.1:0");
  ASSERT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address.address), address.length), 0);
  ASSERT_EQ(listen(fd.get(), 1), 0);
  ASSERT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address.address), &address.length),
            0);
  address.port = ntohs(reinterpret_cast<sockaddr_in*>(&address.address)->sin_port);
  const absl::Status status = TryToListen(address);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "can't listen on " + address.WithPort(address.port) + ": Address already in use");
}

TEST(ListenAddressTest, TryToListen_FreeAddress_IsOk) {
  EXPECT_TRUE(TryToListen(*ParseListenAddress("127.0.0.1:0")).ok());
}

TEST(ListenAddressTest, TryToListen_AddressOfAnotherMachine_SaysSo) {
  const absl::Status status = TryToListen(*ParseListenAddress("192.0.2.1:0"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hvd
