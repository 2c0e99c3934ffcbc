// An agent that says nothing more while its host's kernel still answers, as one that hangs does.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "gtest/gtest.h"
#include "tests/integration/rendezvous_job.h"

namespace hvd {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// A line to a server on loopback that can fall silent: both ends stay open and nothing comes
// through.
class Line {
 public:
  explicit Line(const std::string& server) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own = Loopback(0);
    socklen_t length = sizeof(own);
    bind(listener_.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own));
    listen(listener_.get(), 1);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &length);
    address_ = absl::StrCat("127.0.0.1:", ntohs(own.sin_port));
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(server.substr(server.rfind(':') + 1), &port));
    thread_ = std::thread([this, port] { Carry(port); });
  }

  ~Line() { FallSilent(); }

  const std::string& address() const { return address_; }

  void FallSilent() {
    silence_.write.reset();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Carry(int port) {
    near_ = Fd(accept(listener_.get(), nullptr, nullptr));
    far_ = Fd(socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in server = Loopback(port);
    connect(far_.get(), reinterpret_cast<const sockaddr*>(&server), sizeof(server));
    while (true) {
      pollfd fds[] = {
          {near_.get(), POLLIN, 0}, {far_.get(), POLLIN, 0}, {silence_.read.get(), 0, 0}};
      poll(fds, 3, -1);
      if (fds[2].revents != 0) return;
      if (fds[0].revents != 0 && !Copy(near_, far_)) return;
      if (fds[1].revents != 0 && !Copy(far_, near_)) return;
    }
  }

  static bool Copy(const Fd& from, const Fd& to) {
    char buffer[4096];
    const ssize_t got = read(from.get(), buffer, sizeof(buffer));
    return got > 0 && send(to.get(), buffer, static_cast<size_t>(got), MSG_NOSIGNAL) == got;
  }

  Fd listener_;
  std::string address_;
  Pipe silence_ = *MakePipe();
  Fd near_;
  Fd far_;
  std::thread thread_;
};

TEST(RendezvousKeepaliveTest, SilentAgent_IsLostOncePatienceHasPassed) {
  RendezvousJob job(1, {{"a", 1}}, absl::Seconds(1));
  Line line(job.address());
  PlayedAgent agent(line.address(), job.host_credentials(), "a", 1);
  agent.WaitForStarts(1);
  line.FallSilent();
  const rendezvous::membership::Verdict verdict = job.WaitForVerdict();
  EXPECT_TRUE(absl::StrContains(verdict.summary, "host a")) << verdict.summary;
  EXPECT_TRUE(absl::StrContains(verdict.summary, "HOROVOD_AGENT_TIMEOUT_SECONDS"))
      << verdict.summary;
}

TEST(RendezvousKeepaliveTest, SilentDaemon_IsLostOncePatienceHasPassed) {
  RendezvousJob job(1, {{"a", 1}});
  Line line(job.address());
  PlayedAgent agent(line.address(), job.host_credentials(), "a", 1, absl::Seconds(1));
  agent.WaitForStarts(1);
  line.FallSilent();
  EXPECT_EQ(agent.WaitForClose(),
            absl::UnavailableError(
                "it was silent for 1s; HOROVOD_AGENT_TIMEOUT_SECONDS allows for more"));
}

}  // namespace
}  // namespace hvd
