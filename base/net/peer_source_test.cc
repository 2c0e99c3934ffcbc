#include "base/net/peer_source.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "base/net/address.h"
#include "base/net/listen_address.h"
#include "base/net/strangers_test_util.h"
#include "gtest/gtest.h"

namespace hvd::net {
namespace {

// The source of a connection from `source` that a socket at `listen` has accepted.
std::string SourceOf(const std::string& source, const std::string& listen) {
  const Fd listener = *ListenOn(*ParseListenAddress(listen));
  const std::string port = std::to_string(BoundPort(listener.get()));
  const Fd connecting = ConnectFrom(source, JoinHostPort(source, port));
  return PeerSource(Fd(accept(listener.get(), nullptr, nullptr)).get());
}

bool HasV6() { return ListenOn(*ParseListenAddress("[::1]:0")).ok(); }

TEST(PeerSourceTest, SameIpv4Address_HoweverItIsWritten) {
  const std::string source = SourceOf("127.0.0.1", "127.0.0.1:0");
  EXPECT_EQ(source, std::string("\x7f\0\0\x01", 4));
  EXPECT_EQ(SourceOf("127.0.0.1", "0.0.0.0:0"), source);
  EXPECT_NE(SourceOf("127.0.0.2", "0.0.0.0:0"), source);
}

TEST(PeerSourceTest, OtherLoopbackAddresses_AreOneSource) {
  const std::string source = SourceOf("127.0.0.2", "0.0.0.0:0");
  EXPECT_EQ(SourceOf("127.99.3.1", "0.0.0.0:0"), source);
  if (!HasV6()) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EQ(SourceOf("127.0.0.3", "[::]:0"), source);
}

TEST(PeerSourceTest, Ipv6_IsTheNetwork) {
  if (!HasV6()) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EQ(SourceOf("::1", "[::]:0"), std::string(8, '\0'));
}

TEST(PeerSourceTest, UnixSocket_IsTheProcess) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd one(ends[0]), other(ends[1]);
  EXPECT_EQ(PeerSource(one.get()), "process " + std::to_string(getpid()));
}

TEST(PeerSourceTest, NoPeer_IsEmpty) {
  const Fd alone(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(PeerSource(alone.get()), "");
}

}  // namespace
}  // namespace hvd::net
