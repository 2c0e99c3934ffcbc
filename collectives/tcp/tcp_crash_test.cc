// The loss of a peer in another process that is killed, and so sends no last message.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "collectives/tcp/tcp_backend.h"
#include "gtest/gtest.h"

namespace hvd::collectives::tcp {
namespace {

const CallOptions kPatient = {absl::Seconds(60)};

void WriteAll(int fd, const void* data, size_t bytes) {
  ASSERT_EQ(write(fd, data, bytes), static_cast<ssize_t>(bytes));
}

// Between two processes that share a socket pair.
class SocketExchange : public KeyExchange {
 public:
  SocketExchange(int fd, int rank) : fd_(fd), rank_(rank) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    const uint32_t length = static_cast<uint32_t>(value.size());
    WriteAll(fd_, &length, sizeof(length));
    WriteAll(fd_, value.data(), length);
    uint32_t their_length = 0;
    if (recv(fd_, &their_length, sizeof(their_length), MSG_WAITALL) != sizeof(their_length)) {
      return absl::UnavailableError("the other process is gone");
    }
    std::string theirs(their_length, '\0');
    if (recv(fd_, &theirs[0], their_length, MSG_WAITALL) != their_length) {
      return absl::UnavailableError("the other process is gone");
    }
    if (rank_ == 0) return std::vector<std::string>{std::string(value), theirs};
    return std::vector<std::string>{theirs, std::string(value)};
  }

 private:
  const int fd_;
  const int rank_;
};

std::unique_ptr<Communicator> Connect(int fd, int rank) {
  SocketExchange exchange(fd, rank);
  auto connected = MakeTcpBackend()->Connect({Epoch(1), rank, 2, "127.0.0.1", "secret"}, exchange,
                                             absl::Seconds(60));
  EXPECT_TRUE(connected.ok()) << connected.status();
  return connected.ok() ? *std::move(connected) : nullptr;
}

absl::Status ReduceOnce(Communicator& communicator, std::vector<float>& data) {
  return communicator.AllReduce(data.data(), data.data(), data.size(), DataType::kFloat32,
                                ReduceOp::kMax, kPatient);
}

// The other process: reduces until it is killed, and reports each operation.
[[noreturn]] void ReduceForEver(int fd, size_t elements) {
  const auto communicator = Connect(fd, 1);
  std::vector<float> data(elements, 1);
  while (ReduceOnce(*communicator, data).ok()) {
    if (write(fd, "x", 1) != 1) break;
  }
  _exit(1);
}

class TcpCrashTest : public testing::TestWithParam<size_t> {};

TEST_P(TcpCrashTest, KilledPeer_IsUnavailableLongBeforeTheTimeout) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const pid_t child = fork();  // no threads yet: each test of this file runs in a separate process
  if (child == 0) ReduceForEver(fds[1], GetParam());
  close(fds[1]);
  const auto communicator = Connect(fds[0], 0);
  ASSERT_NE(communicator, nullptr);
  std::vector<float> data(GetParam(), 1);
  absl::Status status;
  for (int call = 0; status.ok(); ++call) {
    status = ReduceOnce(*communicator, data);
    char said;
    if (call < 3) {
      ASSERT_EQ(recv(fds[0], &said, 1, 0), 1);
    }
    if (call == 2) kill(child, SIGKILL);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("rank 1 is gone"), absl::string_view::npos) << status;
  waitpid(child, nullptr, 0);
  close(fds[0]);
}

INSTANTIATE_TEST_SUITE_P(Elements, TcpCrashTest, testing::Values(1, 1 << 20));

}  // namespace
}  // namespace hvd::collectives::tcp
