#include "agent/route_finder.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/testing/joining_program.h"
#include "agent/testing/tls_program.h"
#include "base/net/address.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::agent {
namespace {

using rendezvous::security::JobAuthority;
using Context = std::shared_ptr<const net::TlsContext>;

// A host's context for connections to the daemon.
Context HostsContext(JobAuthority& authority) {
  const rendezvous::security::PeerCredentials own = *authority.IssueForHost("host");
  return *net::TlsContext::Create(
      {own.ca_certificate, own.certificate, own.private_key, rendezvous::security::kDaemonTlsName});
}

absl::StatusOr<Route> FindRoute(const std::vector<std::string>& candidates,
                                absl::Duration timeout = absl::Seconds(30),
                                Context tls = HostsContext(**JobAuthority::Create("job"))) {
  std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  absl::StatusOr<Route> result = absl::UnknownError("not called");
  RouteFinder finder(*loop, candidates, std::move(tls), timeout, [&](absl::StatusOr<Route> found) {
    result = std::move(found);
    loop->Stop();
  });
  loop->Run();
  return result;
}

TEST(RouteFinderTest, Find_OnlyCandidate_GivesItAndTheOwnAddress) {
  const BoundSocket listening(8);
  const absl::StatusOr<Route> route = FindRoute({listening.address()});
  ASSERT_TRUE(route.ok()) << route.status();
  EXPECT_EQ(route->daemon_address, listening.address());
  EXPECT_EQ(route->own_address, "127.0.0.1");
}

// At the first addresses there are: nobody; a program that accepts and says nothing; a process of
// the job which is not the daemon; the daemon of another job.
TEST(RouteFinderTest, Find_StrangersAtOtherAddresses_TheDaemonIsFound) {
  const auto authority = *JobAuthority::Create("job");
  const auto other = *JobAuthority::Create("job");
  const BoundSocket deaf;
  const BoundSocket silent(8);
  const TlsProgram host(*authority->IssueForHost("host"));
  const TlsProgram daemon_of_other(*other->IssueForDaemon());
  const TlsProgram daemon(*authority->IssueForDaemon());
  const absl::StatusOr<Route> route =
      FindRoute({"nonsense", deaf.address(), silent.address(), host.address(),
                 daemon_of_other.address(), daemon.address()},
                absl::Seconds(30), HostsContext(*authority));
  ASSERT_TRUE(route.ok()) << route.status();
  EXPECT_EQ(route->daemon_address, daemon.address());
  EXPECT_EQ(route->own_address, "127.0.0.1");
}

TEST(RouteFinderTest, Find_DaemonHangsUpOnce_IsAskedAgain) {
  const auto authority = *JobAuthority::Create("job");
  const BoundSocket deaf;
  const TlsProgram daemon(*authority->IssueForDaemon(), /*hang_ups=*/1);
  const absl::StatusOr<Route> route =
      FindRoute({deaf.address(), daemon.address()}, absl::Seconds(30), HostsContext(*authority));
  ASSERT_TRUE(route.ok()) << route.status();
  EXPECT_EQ(route->daemon_address, daemon.address());
}

TEST(RouteFinderTest, Find_StrangerThatHangsUp_EndsAtTheDeadline) {
  const auto authority = *JobAuthority::Create("job");
  const BoundSocket deaf;
  const TlsProgram stranger(*authority->IssueForDaemon(), /*hang_ups=*/1000);
  const absl::Status status = FindRoute({deaf.address(), stranger.address()},
                                        absl::Milliseconds(20), HostsContext(*authority))
                                  .status();
  EXPECT_NE(status.message().find(stranger.address()), absl::string_view::npos) << status;
}

TEST(RouteFinderTest, Find_OnlyStrangers_SaysWhyForEach) {
  const auto authority = *JobAuthority::Create("job");
  const auto other = *JobAuthority::Create("job");
  const TlsProgram host(*authority->IssueForHost("host"));
  const TlsProgram daemon_of_other(*other->IssueForDaemon());
  const absl::Status status = FindRoute({host.address(), daemon_of_other.address()},
                                        absl::Seconds(30), HostsContext(*authority))
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  for (const std::string& stranger : {host.address(), daemon_of_other.address()}) {
    EXPECT_NE(
        status.message().find(stranger + ": what answers there is not the daemon of this job ("),
        absl::string_view::npos)
        << status;
  }
}

TEST(RouteFinderTest, Find_SilentStrangers_EndsAtTheDeadline) {
  const BoundSocket silent(8);
  const BoundSocket another(8);
  const absl::Status status =
      FindRoute({silent.address(), another.address()}, absl::Milliseconds(20)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(silent.address() + ": no answer within 60ms"),
            absl::string_view::npos)
      << status;
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
