#include "agent/route_finder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/net/address.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

// A socket bound to 127.0.0.1; connections succeed if it listens: as many as its backlog and one.
class BoundSocket {
 public:
  explicit BoundSocket(std::optional<int> backlog)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    if (backlog.has_value()) {
      EXPECT_EQ(listen(fd_.get(), *backlog), 0);
    }
    address_ = absl::StrCat("127.0.0.1:", ntohs(name.sin_port));
  }
  const std::string& address() const { return address_; }

 private:
  Fd fd_;
  std::string address_;
};

absl::StatusOr<Route> FindRoute(const std::vector<std::string>& candidates,
                                absl::Duration timeout = absl::Seconds(30)) {
  std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  absl::StatusOr<Route> result = absl::UnknownError("not called");
  RouteFinder finder(*loop, candidates, timeout, [&](absl::StatusOr<Route> found) {
    result = std::move(found);
    loop->Stop();
  });
  loop->Run();
  return result;
}

TEST(RouteFinderTest, Find_OneOfSeveralAnswers_GivesItAndTheOwnAddress) {
  const BoundSocket listening(8);
  const BoundSocket deaf(std::nullopt);
  const absl::StatusOr<Route> route = FindRoute({"nonsense", deaf.address(), listening.address()});
  ASSERT_TRUE(route.ok()) << route.status();
  EXPECT_EQ(route->daemon_address, listening.address());
  EXPECT_EQ(route->own_address, "127.0.0.1");
}

TEST(RouteFinderTest, Find_NoneAnswers_SaysWhyForEach) {
  const BoundSocket deaf(std::nullopt);
  const absl::Status status = FindRoute({"nonsense", deaf.address()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("nonsense"), absl::string_view::npos);
  EXPECT_NE(status.message().find(deaf.address() + ": Connection refused"),
            absl::string_view::npos);
}

TEST(RouteFinderTest, Find_NoUsableCandidate_Ends) {
  EXPECT_EQ(FindRoute({"nonsense"}).status().code(), absl::StatusCode::kUnavailable);
}

TEST(RouteFinderTest, Find_HostThatIsSilent_EndsAtTheDeadline) {
  const BoundSocket full(0);
  const Fd first(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const net::SocketAddress address = net::ParseSocketAddress(full.address()).value();
  ASSERT_EQ(
      connect(first.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length), 0);
  // The kernel has no room for another one now and leaves it without an answer.
  const absl::Status status = FindRoute({full.address()}, absl::Milliseconds(20)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("no answer within 20ms"), absl::string_view::npos);
}

}  // namespace
}  // namespace hvd::agent
