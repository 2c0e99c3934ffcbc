#include "rendezvous/transport/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/net/listen_address.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::transport {
namespace {

std::string Bytes(const char* ip) {
  in6_addr bytes = {};
  EXPECT_EQ(inet_pton(AF_INET6, ip, &bytes), 1) << ip;
  return std::string(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
}

TEST(PeerAddressTest, PeerOfCall_AllWaysOfWriting) {
  const PeerAddress v4{Bytes("::ffff:10.0.0.1"), 80};
  EXPECT_EQ(PeerOfCall("ipv4:10.0.0.1:80"), v4);
  EXPECT_EQ(PeerOfCall("ipv6:%5B::ffff:10.0.0.1%5D:80"), v4);
  EXPECT_EQ(PeerOfCall("ipv6:[::ffff:10.0.0.1]:80"), v4);
  const PeerAddress v6{Bytes("fe80::1"), 80};
  for (const char* text : {"ipv6:%5Bfe80::1%5D:80", "ipv6:%5Bfe80::1%252%5D:80",
                           "ipv6:%5Bfe80::1%25eth0%5D:80", "ipv6:[fe80::1%2]:80"}) {
    EXPECT_EQ(PeerOfCall(text), v6) << text;
  }
  EXPECT_FALSE(v4 == v6);
}

TEST(PeerAddressTest, PeerOfCall_NoTcpConnection_IsNothing) {
  for (const char* text : {"", "unix:/run/socket", "ipv4:", "ipv4:10.0.0.1", "ipv6:%5B", "unknown"})
    EXPECT_EQ(PeerOfCall(text), std::nullopt) << text;
}

// Connects to a socket at `listen` and returns its peer as the kernel says it.
std::optional<PeerAddress> Accepted(const char* listen, int family, PeerAddress& client) {
  const absl::StatusOr<net::ListenAddress> address = net::ParseListenAddress(listen);
  const absl::StatusOr<Fd> listener = net::ListenOn(*address);
  if (!listener.ok()) return std::nullopt;
  sockaddr_storage to = {};
  const auto port = htons(static_cast<uint16_t>(net::BoundPort(listener->get())));
  to.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(to).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    reinterpret_cast<sockaddr_in&>(to).sin_port = port;
  } else {
    reinterpret_cast<sockaddr_in6&>(to).sin6_addr = in6addr_loopback;
    reinterpret_cast<sockaddr_in6&>(to).sin6_port = port;
  }
  const Fd connecting(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  EXPECT_EQ(connect(connecting.get(), reinterpret_cast<sockaddr*>(&to), size), 0) << listen;
  client = {Bytes(family == AF_INET ? "::ffff:127.0.0.1" : "::1"),
            net::BoundPort(connecting.get())};
  const Fd accepted(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  return PeerOfSocket(accepted.get());
}

TEST(PeerAddressTest, PeerOfSocket_IsTheClient_WhateverTheListenerIs) {
  PeerAddress client;
  for (const char* listen : {"127.0.0.1:0", "0.0.0.0:0"})
    EXPECT_EQ(Accepted(listen, AF_INET, client), client) << listen;
  for (const char* listen : {"[::]:0", "[::1]:0"}) {
    const std::optional<PeerAddress> peer = Accepted(listen, AF_INET6, client);
    if (!peer.has_value()) GTEST_SKIP() << "no IPv6 here";
    EXPECT_EQ(peer, client) << listen;
  }
  EXPECT_EQ(Accepted("[::]:0", AF_INET, client), client);
}

}  // namespace
}  // namespace hvd::rendezvous::transport
