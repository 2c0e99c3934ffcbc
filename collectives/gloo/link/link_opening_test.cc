#include "collectives/gloo/link/link_opening.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include "gtest/gtest.h"

namespace hvd::collectives::gloo::link {
namespace {

GroupInfo Group(int rank) { return {Epoch(5), rank, 3, "", "secret"}; }

net::Wire Plain(int fd) { return net::Wire(Fd(fd), nullptr, net::TlsEnd::kAccepts); }

// The handshake succeeds for any fragmentation of the bytes, and reads none beyond its end.
TEST(LinkOpeningTest, TakesWhatComesInPieces) {
  const GroupInfo one = Group(1), two = Group(2);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  LinkOpening acceptor(Plain(ends[0]), [&](std::string binding) {
    return MakeAcceptorHandshake(kLinkProtocol, one, std::move(binding));
  });
  const Fd other(ends[1]);
  const auto dialer = MakeDialerHandshake(kLinkProtocol, two, 1);
  std::string next = dialer->Start();
  EXPECT_EQ(acceptor.Advance(), LinkOpening::Progress::kWantsToRead);
  EXPECT_EQ(acceptor.stage(), net::Strangers::Stage::kSilent);
  for (int part = 0; part < 2; ++part) {
    if (part == 1) next += "data";
    for (size_t i = 0; i < next.size(); ++i) {
      ASSERT_EQ(send(other.get(), &next[i], 1, 0), 1);
      const bool last = part == 1 && i + 5 >= next.size();
      ASSERT_EQ(acceptor.Advance(),
                last ? LinkOpening::Progress::kProved : LinkOpening::Progress::kWantsToRead);
      if (!last) {
        EXPECT_EQ(acceptor.stage(), net::Strangers::Stage::kHeard);
      }
    }
    if (part == 1) break;
    std::string answer(dialer->wanted(), '\0');
    ASSERT_EQ(recv(other.get(), &answer[0], answer.size(), 0), static_cast<ssize_t>(answer.size()));
    next = *dialer->Step(answer);
  }
  EXPECT_EQ(acceptor.peer(), 2);
  const net::Wire wire = acceptor.TakeWire();
  char data[8];
  EXPECT_EQ(recv(wire.fd(), data, sizeof(data), 0), 4);
}

TEST(LinkOpeningTest, SilentLinksAreKeptAlive) {
  const GroupInfo one = Group(1);
  const LinkOpening opening(Plain(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)),
                            [&](std::string binding) {
                              return MakeAcceptorHandshake(kLinkProtocol, one, std::move(binding));
                            });
  const auto option = [&](int level, int name) {
    int value = -1;
    socklen_t length = sizeof(value);
    EXPECT_EQ(getsockopt(opening.fd(), level, name, &value, &length), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_LE(option(IPPROTO_TCP, TCP_KEEPIDLE), 60) << "as long as the shortest memory of a NAT";
}

TEST(LinkOpeningTest, AnEndOfTheStreamIsUnavailable) {
  const GroupInfo one = Group(1);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  LinkOpening acceptor(Plain(ends[0]), [&](std::string binding) {
    return MakeAcceptorHandshake(kLinkProtocol, one, std::move(binding));
  });
  Fd(ends[1]).reset();
  EXPECT_EQ(acceptor.Advance(), LinkOpening::Progress::kFailed);
  EXPECT_EQ(acceptor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(acceptor.Advance(), LinkOpening::Progress::kFailed);
}

}  // namespace
}  // namespace hvd::collectives::gloo::link
