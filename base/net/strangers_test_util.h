// Connections of strangers, for tests of listeners.
#ifndef BASE_NET_STRANGERS_TEST_UTIL_H_
#define BASE_NET_STRANGERS_TEST_UTIL_H_

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

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

// The connecting end of a TLS session that is not connected yet, and its ClientHello.
struct BegunSession {
  Wire wire;
  std::string hello;
};
inline BegunSession BeginSession(const std::shared_ptr<const TlsContext>& tls) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const Fd other(ends[1]);
  BegunSession begun{Wire(Fd(ends[0]), tls, TlsEnd::kConnects), std::string(4096, '\0')};
  EXPECT_EQ(begun.wire.Open(), Opening::kWantsToRead);
  begun.hello.resize(ReadSome(other.get(), begun.hello.data(), begun.hello.size()).bytes);
  return begun;
}

inline void SendWhole(const Fd& to, const std::string& bytes) {
  EXPECT_EQ(send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

// As ConnectFrom, but non-blocking, and the connecting end of a TLS session that has sent its
// ClientHello and nothing else. A step of a handshake also takes an answer that is there already;
// so the session gets the connection only after the step, else it might be open on return.
inline Wire BeginHandshake(const std::string& source, const std::string& to,
                           const std::shared_ptr<const TlsContext>& tls) {
  BegunSession begun = BeginSession(tls);
  const Fd connection = ConnectFrom(source, to);
  SendWhole(connection, begun.hello);
  fcntl(connection.get(), F_SETFL, O_NONBLOCK);
  EXPECT_EQ(dup3(connection.get(), begun.wire.fd(), O_CLOEXEC), begun.wire.fd());
  return std::move(begun.wire);
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
  const std::string hello = BeginSession(tls).hello;
  std::vector<Fd> crowd;
  while (crowd.size() < count) {
    crowd.push_back(ConnectFrom(source, to));
    SendWhole(crowd.back(), hello);
  }
  AwaitHangUps(crowd, count - kept);
  return crowd;
}

}  // namespace hvd::net

#endif  // BASE_NET_STRANGERS_TEST_UTIL_H_
