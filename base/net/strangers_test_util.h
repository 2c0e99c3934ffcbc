// Connections of strangers, for tests of listeners.
#ifndef BASE_NET_STRANGERS_TEST_UTIL_H_
#define BASE_NET_STRANGERS_TEST_UTIL_H_

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/net/address.h"
#include "base/net/wire.h"
#include "gtest/gtest.h"

namespace hvd::net {

// A connection that blocks, from a numeric address of this machine to "address:port". All of
// 127.0.0.0/8 are addresses of a machine.
inline Fd ConnectFrom(const std::string& source, const std::string& to) {
  const SocketAddress from = *ParseSocketAddress(JoinHostPort(source, "0"));
  const SocketAddress address = *ParseSocketAddress(to);
  Fd fd(socket(from.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&from.storage), from.length), 0);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length),
            0)
      << to;
  return fd;
}

// The same, non-blocking, as the connecting end of a TLS session that has sent its ClientHello.
inline Wire BeginHandshake(const std::string& source, const std::string& to,
                           const std::shared_ptr<const TlsContext>& tls) {
  Fd fd = ConnectFrom(source, to);
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  Wire wire(std::move(fd), tls, TlsEnd::kConnects);
  wire.Open();
  return wire;
}

// A ClientHello, after which nothing comes.
inline std::string ClientHello(const std::shared_ptr<const TlsContext>& tls) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  Wire wire(Fd(ends[0]), tls, TlsEnd::kConnects);
  wire.Open();
  const Fd other(ends[1]);
  std::string hello(4096, '\0');
  hello.resize(ReadSome(other.get(), hello.data(), hello.size()).bytes);
  return hello;
}

// Waits until the listener has closed so many of the connections; closes these here, too. Drops
// what it has sent before.
inline void AwaitHangUps(std::vector<Fd>& connections, size_t wanted) {
  while (wanted > 0) {
    std::vector<pollfd> waiting;
    for (const Fd& connection : connections) waiting.push_back({connection.get(), POLLIN, 0});
    ASSERT_GT(poll(waiting.data(), waiting.size(), -1), 0);
    for (size_t i = 0; i < waiting.size() && wanted > 0; ++i) {
      char bytes[4096];
      if (waiting[i].revents == 0 || recv(waiting[i].fd, bytes, sizeof(bytes), 0) > 0) continue;
      connections[i].reset();  // poll ignores it from now on
      --wanted;
    }
  }
}

// `count` connections with a ClientHello, of which the listener keeps `kept`. Returns when it has
// closed the others, so that all of them have been noticed.
inline std::vector<Fd> CrowdOfClientHellos(const std::string& source, const std::string& to,
                                           const std::shared_ptr<const TlsContext>& tls,
                                           size_t count, size_t kept) {
  const std::string hello = ClientHello(tls);
  std::vector<Fd> crowd;
  while (crowd.size() < count) {
    crowd.push_back(ConnectFrom(source, to));
    EXPECT_EQ(send(crowd.back().get(), hello.data(), hello.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(hello.size()));
  }
  AwaitHangUps(crowd, count - kept);
  return crowd;
}

}  // namespace hvd::net

#endif  // BASE_NET_STRANGERS_TEST_UTIL_H_
