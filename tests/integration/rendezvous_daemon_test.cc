// horovod-rendezvousd as a process: its output, its file, its exit codes.
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>

#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/listen_address.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "tests/integration/rendezvous_daemon_fixture.h"

namespace hvd {
namespace {

TEST_F(RendezvousDaemonTest, ServesHoldersOfItsTokenFile_UntilSigterm) {
  Daemon daemon(Arguments());
  const std::string address = daemon.Line();
  const auto status = rendezvous::client::NewGrpcRendezvousClient(address, Credentials())
                          ->GetStatus(absl::InfiniteDuration());
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->state(), "forming");
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait().exit_code, 143);
  EXPECT_TRUE(absl::StrContains(daemon.Errors(), "SIGTERM"));
  EXPECT_FALSE(FileExists());
}

TEST_F(RendezvousDaemonTest, SigintEndsItWith130) {
  Daemon daemon(Arguments());
  daemon.Line();
  daemon.Signal(SIGINT);
  EXPECT_EQ(daemon.Wait().exit_code, 130);
}

TEST_F(RendezvousDaemonTest, EndsWithTheJobsVerdict) {
  for (const int code : {0, 7}) {
    Daemon daemon(Arguments());
    const std::string address = daemon.Line();
    absl::Notification opened;
    absl::Notification closed;
    std::unique_ptr<rendezvous::client::AgentLink> link;
    link = rendezvous::client::AgentLink::Open(
        address, Credentials(), Hello(),
        {[&](const pb::AgentCommand& command) {
           if (!command.has_start()) return;
           opened.WaitForNotification();
           pb::AgentMessage message;
           message.mutable_exited()->set_worker_id(command.start().worker_id());
           message.mutable_exited()->set_exit_code(code);
           link->Send(message);
         },
         [&](absl::Status) { closed.Notify(); }});
    opened.Notify();
    EXPECT_EQ(daemon.Wait().exit_code, code) << daemon.Errors();
    closed.WaitForNotification();
  }
}

TEST_F(RendezvousDaemonTest, BadInput_OneLineAndCode2_NothingIsLeft) {
  ExpectRefusal(Daemon({"--np", "1"}), "--listen");
  ExpectRefusal(Daemon(Arguments("localhost:0")), "localhost:0");
  ExpectRefusal(Daemon(Arguments("192.0.2.1:0")), "192.0.2.1:0");
  EXPECT_FALSE(FileExists());
}

TEST_F(RendezvousDaemonTest, ExistingFile_IsRefusedAndKept) {
  std::ofstream(file_) << "mine";
  ExpectRefusal(Daemon(Arguments()), file_);
  EXPECT_TRUE(FileExists());
}

TEST_F(RendezvousDaemonTest, TwoAddresses_AreBothServed) {
  std::vector<std::string> arguments = Arguments();
  arguments.insert(arguments.end(), {"--listen", "127.0.0.2:0"});
  Daemon daemon(arguments);
  for (const std::string& address : {daemon.Line(), daemon.Line()}) {
    EXPECT_TRUE(rendezvous::client::NewGrpcRendezvousClient(address, Credentials())
                    ->GetStatus(absl::InfiniteDuration())
                    .ok())
        << address;
  }
  daemon.Signal(SIGTERM);
  daemon.Wait();
}

TEST_F(RendezvousDaemonTest, ListedTwice_OneLine) {
  Daemon first(Arguments());
  const std::string address = first.Line();
  first.Signal(SIGTERM);
  first.Wait();
  std::vector<std::string> arguments = Arguments(address);
  arguments.insert(arguments.end(), {"--listen", address});
  ExpectRefusal(Daemon(arguments), "can't listen on " + address + ": Address already in use");
}

// The socket address `host`, with the port of a daemon's address.
net::SocketAddress AtPortOf(const std::string& address, const std::string& host) {
  return *net::ParseSocketAddress(net::JoinHostPort(host, net::SplitHostPort(address).port));
}

// So many connections to the daemon, each of which has sent `words`.
std::vector<Fd> Strangers(int count, const net::SocketAddress& to, const std::string& words) {
  std::vector<Fd> strangers;
  for (int i = 0; i < count; ++i) {
    strangers.emplace_back(socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        connect(strangers.back().get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length),
        0);
    EXPECT_TRUE(WriteAll(strangers.back().get(), words).ok());
  }
  return strangers;
}

// Where the daemon listens, by which address members and strangers come, and whether it has a state
// directory.
struct Place {
  const char* listen;
  const char* member;
  const char* stranger;
  bool keeps_state = false;
};

std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.listen << " from " << place.member << " and " << place.stranger
             << (place.keeps_state ? ", --state-dir" : "");
}

class CrowdedDaemonTest : public RendezvousDaemonTest, public testing::WithParamInterface<Place> {
 protected:
  std::vector<std::string> Arguments() const {
    std::vector<std::string> arguments = RendezvousDaemonTest::Arguments(GetParam().listen);
    if (GetParam().keeps_state) arguments.insert(arguments.end(), {"--state-dir", dir_});
    return arguments;
  }
};

// Strangers that have begun a TLS handshake, which gRPC waits for.
TEST_P(CrowdedDaemonTest, MoreStrangersThanItHasFiles_MembersStayAndAClientGetsIn) {
  constexpr int kLimit = 64;
  if (!net::ListenOn(*net::ParseListenAddress("[::1]:0")).ok()) GTEST_SKIP() << "no IPv6 here";
  Daemon daemon(Arguments(), absl::StrCat("ulimit -n ", kLimit));
  const std::string port = net::SplitHostPort(daemon.Line()).port;
  const std::string address = net::JoinHostPort(GetParam().member, port);
  absl::Notification started;
  absl::Notification ended;
  pb::AgentMessage exit;
  exit.mutable_exited()->set_exit_code(7);
  const auto link = rendezvous::client::AgentLink::Open(
      address, Credentials(), Hello(),
      {[&](const pb::AgentCommand& command) {
         if (!command.has_start()) return;
         exit.mutable_exited()->set_worker_id(command.start().worker_id());
         started.Notify();
       },
       [&](absl::Status) { ended.Notify(); }});
  started.WaitForNotification();
  const std::vector<Fd> strangers =
      Strangers(3 * kLimit, AtPortOf(address, GetParam().stranger), "\x16");
  const auto status = rendezvous::client::NewGrpcRendezvousClient(address, Credentials())
                          ->GetStatus(absl::Seconds(20));
  EXPECT_TRUE(status.ok()) << status.status();
  EXPECT_LT(daemon.Files(), kLimit);
  EXPECT_FALSE(ended.HasBeenNotified());
  char byte = 0;
  EXPECT_EQ(read(strangers.front().get(), &byte, 1), 0) << "the oldest was hung up on";
  // Not always the newest ones: first bytes may be noticed in another order than connections.
  EXPECT_TRUE(std::any_of(strangers.begin(), strangers.end(), [&](const Fd& stranger) {
    return recv(stranger.get(), &byte, 1, MSG_DONTWAIT) == -1;
  })) << "only as many as had to go";
  link->Send(exit);
  EXPECT_EQ(daemon.Wait().exit_code, 7) << "1: the only host was lost";
}

INSTANTIATE_TEST_SUITE_P(
    AllWaysToListen, CrowdedDaemonTest,
    testing::Values(Place{"127.0.0.1:0", "127.0.0.1", "127.0.0.1"},
                    Place{"127.0.0.1:0", "127.0.0.1", "127.0.0.1", true},
                    Place{"0.0.0.0:0", "127.0.0.1", "127.0.0.1"},
                    Place{"0.0.0.0:0", "127.0.0.1", "127.0.0.1", true},
                    Place{"0.0.0.0:0", "127.0.0.1", "::1"}, Place{"0.0.0.0:0", "::1", "127.0.0.1"},
                    Place{"[::1]:0", "::1", "::1"}, Place{"[::]:0", "127.0.0.1", "127.0.0.1"},
                    Place{"[::]:0", "::1", "::1"}, Place{"[::]:0", "127.0.0.1", "::1", true},
                    Place{"[::]:0", "::1", "127.0.0.1"}),
    [](const testing::TestParamInfo<Place>& info) { return absl::StrCat("Place", info.index); });

TEST_F(RendezvousDaemonTest, MoreSilentStrangersThanItHasFiles_AClientGetsIn) {
  constexpr int kLimit = 64;
  Daemon daemon(Arguments(), absl::StrCat("ulimit -n ", kLimit));
  const std::string address = daemon.Line();
  const std::vector<Fd> strangers = Strangers(3 * kLimit, AtPortOf(address, "127.0.0.1"), "");
  const auto status = rendezvous::client::NewGrpcRendezvousClient(address, Credentials())
                          ->GetStatus(absl::Seconds(20));
  EXPECT_TRUE(status.ok()) << status.status();
  char byte = 0;
  EXPECT_EQ(read(strangers.front().get(), &byte, 1), 0) << "the oldest was hung up on";
  EXPECT_EQ(recv(strangers.back().get(), &byte, 1, MSG_DONTWAIT), -1) << "the newest was not";
  daemon.Signal(SIGTERM);
  daemon.Wait();
}

TEST_F(RendezvousDaemonTest, TellsWhatItWaitsFor) {
  Daemon daemon({"--listen", "127.0.0.1:0", "-np", "2", "--min-np", "1", "--token-file", file_});
  const std::string address = daemon.Line();
  absl::Notification opened;
  const auto link = rendezvous::client::AgentLink::Open(
      address, Credentials(), Hello(), {[&](const pb::AgentCommand&) {}, [](absl::Status) {}});
  EXPECT_EQ(daemon.ErrorLine(), "horovod-rendezvousd: host a joined with 1 slot");
  const std::string line = daemon.ErrorLine();
  EXPECT_TRUE(absl::StrContains(
      line, "waiting for more hosts to attach (1 of 2 slots, on host a); this wait ends in 9m"))
      << line;
  daemon.Signal(SIGINT);
  EXPECT_EQ(daemon.Wait().exit_code, 130);
}

TEST_F(RendezvousDaemonTest, Metrics_AreServed_WhereItSays) {
  std::vector<std::string> arguments = Arguments();
  arguments.insert(arguments.end(), {"--metrics", "127.0.0.1:0"});
  Daemon daemon(arguments);
  daemon.Line();
  const std::string where = daemon.ErrorLine();
  const size_t start = where.find("http://127.0.0.1:");
  ASSERT_NE(start, std::string::npos) << where;
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(where.substr(start + 17))));
  for (const auto& [path, expected] : {std::pair("/metrics", "\nhorovod_world{job="),
                                       {"/healthz", "\r\n\r\nok\n"},
                                       {"/readyz", "200 OK"},
                                       {"/else", "404 Not Found"}}) {
    const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    const std::string request = std::string("GET ") + path + " HTTP/1.1\r\n\r\n";
    ASSERT_EQ(send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    const std::string answer = Daemon::ReadAll(fd);
    EXPECT_TRUE(absl::StrContains(answer, expected)) << answer;
  }
  daemon.Signal(SIGTERM);
  daemon.Wait();
}

TEST_F(RendezvousDaemonTest, EventLog_TellsTheEnd) {
  std::vector<std::string> arguments = Arguments();
  const std::string log = file_ + ".log";
  arguments.insert(arguments.end(), {"--event-log", log});
  Daemon daemon(arguments);
  daemon.Line();
  daemon.Signal(SIGTERM);
  daemon.Wait();
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  unlink(log.c_str());
  EXPECT_TRUE(absl::StrContains(text.str(),
                                "\"kind\":\"job_finished\",\"success\":false,"
                                "\"exit_code\":143"))
      << text.str();
}

}  // namespace
}  // namespace hvd
