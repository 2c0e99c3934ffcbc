#include "agent/route_finder.h"

#include <memory>
#include <string>

#include "agent/testing/joining_program.h"
#include "base/net/address.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

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
  const BoundSocket deaf;
  const absl::StatusOr<Route> route = FindRoute({"nonsense", deaf.address(), listening.address()});
  ASSERT_TRUE(route.ok()) << route.status();
  EXPECT_EQ(route->daemon_address, listening.address());
  EXPECT_EQ(route->own_address, "127.0.0.1");
}

TEST(RouteFinderTest, Find_NoneAnswers_SaysWhyForEach) {
  const BoundSocket deaf;
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
  // The backlog is full now: the kernel does not answer another connection.
  const absl::Status status = FindRoute({full.address()}, absl::Milliseconds(20)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("no answer within 20ms"), absl::string_view::npos);
}

}  // namespace
}  // namespace hvd::agent
