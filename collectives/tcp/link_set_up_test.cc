// DialLink, and the addresses of links.
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>  // NOLINT: a peer that accepts

#include "absl/strings/match.h"
#include "base/fd.h"
#include "base/net/peer/peer_opening.h"
#include "base/net/tcp_socket.h"
#include "collectives/peer/peer_handshake.h"
#include "collectives/peer/peer_port.h"
#include "collectives/tcp/link_address.h"
#include "collectives/tcp/link_dialer.h"
#include "gtest/gtest.h"

namespace hvd::collectives::tcp {
namespace {

const absl::Time kNever = absl::InfiniteFuture();

GroupInfo Group(int rank) { return {Epoch(5), rank, 3, "127.0.0.1", "secret"}; }

TEST(LinkDialerTest, NobodyThere) {
  const std::string gone = LinkAddressOf((*peer::PeerPort::Open("127.0.0.1"))->address());
  const auto dialed = DialLink(peer::Purpose::kTensors, Group(1), 0, gone, kNever, nullptr);
  EXPECT_EQ(dialed.status().code(), absl::StatusCode::kUnavailable) << dialed.status();
  EXPECT_TRUE(absl::StrContains(dialed.status().message(), "can't connect to rank 0"))
      << dialed.status();
}

TEST(LinkDialerTest, DisconnectedDialerRetries) {
  const auto listener = net::ListenOnAnyPort("127.0.0.1");
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::string address = LinkAddressOf(*net::LocalAddressOf(listener->get()));
  const auto rank0 = std::make_shared<const GroupInfo>(Group(0));
  std::thread acceptor([&] {
    for (int turn = 0; turn < 4; ++turn) {
      pollfd poll_fd = {listener->get(), POLLIN, 0};
      poll(&poll_fd, 1, -1);
      Fd fd(accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK));
      if (turn < 3) continue;  // hangs up
      net::peer::PeerOpening opening(
          net::Wire(std::move(fd), nullptr, net::TlsEnd::kAccepts), [&](std::string binding) {
            return peer::MakeAcceptorHandshake([&](int) { return rank0; }, std::move(binding));
          });
      while (opening.Advance() == net::peer::PeerOpening::Progress::kWantsToRead) {
        pollfd more = {opening.fd(), POLLIN, 0};
        poll(&more, 1, -1);
      }
    }
  });
  const auto dialed = DialLink(peer::Purpose::kTensors, Group(1), 0, address, kNever, nullptr);
  EXPECT_TRUE(dialed.ok()) << dialed.status();
  acceptor.join();
}

TEST(LinkDialerTest, GivesUpInTimeAndWhenCancelled) {
  const auto listener = net::ListenOnAnyPort("127.0.0.1");  // never accepts
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::string address = LinkAddressOf(*net::LocalAddressOf(listener->get()));
  EXPECT_EQ(DialLink(peer::Purpose::kTensors, Group(1), 0, address, absl::InfinitePast(), nullptr)
                .status()
                .code(),
            absl::StatusCode::kDeadlineExceeded);
  Cancellation cancellation;
  cancellation.Cancel(absl::AbortedError("enough"));
  EXPECT_EQ(DialLink(peer::Purpose::kTensors, Group(1), 0, address, kNever, &cancellation).status(),
            absl::AbortedError("enough"));
}

TEST(LinkAddressTest, IsAsLongForBothVersions) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    const auto listener = net::ListenOnAnyPort(address);
    ASSERT_TRUE(listener.ok()) << listener.status();
    const std::string bytes = LinkAddressOf(*net::LocalAddressOf(listener->get()));
    EXPECT_EQ(bytes.size(), kLinkAddressBytes);
    const auto parsed = ParseLinkAddress(bytes);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const Fd fd(socket(parsed->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto* to = reinterpret_cast<const sockaddr*>(&parsed->storage);
    EXPECT_EQ(connect(fd.get(), to, parsed->length), 0);
  }
  EXPECT_FALSE(ParseLinkAddress("short").ok());
}

}  // namespace
}  // namespace hvd::collectives::tcp
