#include "rendezvous/bootstrap/bootstrap_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace hvd::rendezvous::bootstrap {
namespace {

constexpr uint64_t kKnownWorker = 5;

BootstrapSocket::Response AnswerWorker(const pb::WorkerHello& hello, pid_t asker) {
  BootstrapSocket::Response response;
  pb::WorkerBootstrap& answer = response.bootstrap;
  EXPECT_EQ(asker, getpid());
  answer.set_worker_id(hello.worker_id());
  if (hello.worker_id() == kKnownWorker) {
    answer.mutable_credentials()->set_token("secret");
    answer.mutable_credentials()->set_ca_certificate(std::string(8000, 'c'));
  } else {
    answer.set_error("unknown worker");
  }
  return response;
}

// Runs the loop in a separate thread; the test plays the workers.
class BootstrapSocketTest : public testing::Test {
 protected:
  void Serve(uid_t user) {
    socket_ = BootstrapSocket::Create(*loop_, user, AnswerWorker).value();
    thread_ = std::thread([this] { loop_->Run(); });
  }
  void TearDown() override {
    loop_->Post([this] { loop_->Stop(); });
    thread_.join();
    socket_.reset();
  }

  Fd Connect() {
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, socket_->name().data(), socket_->name().size());
    const socklen_t length = offsetof(sockaddr_un, sun_path) + 1 + socket_->name().size();
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    return fd;
  }
  void Say(const Fd& fd, absl::string_view bytes) {
    EXPECT_GE(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  }
  static std::string Hello(uint64_t worker_id) {
    pb::WorkerHello hello;
    hello.set_worker_id(worker_id);
    return net::EncodeFrame(hello.SerializeAsString());
  }
  static absl::StatusOr<pb::WorkerBootstrap> ReadAnswer(const Fd& fd) {
    const absl::StatusOr<std::string> payload = net::ReadFrame(fd.get(), net::kMaxFrameBytes);
    if (!payload.ok()) return payload.status();
    pb::WorkerBootstrap answer;
    EXPECT_TRUE(answer.ParseFromString(*payload));
    return answer;
  }

  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  std::unique_ptr<BootstrapSocket> socket_;
  std::thread thread_;
};

TEST_F(BootstrapSocketTest, Hello_KnownWorker_GetsCredentials) {
  Serve(geteuid());
  const Fd fd = Connect();
  Say(fd, Hello(kKnownWorker));
  EXPECT_EQ(ReadAnswer(fd)->credentials().token(), "secret");
}

TEST_F(BootstrapSocketTest, Hello_UnknownWorker_GetsErrorOnly) {
  Serve(geteuid());
  const Fd fd = Connect();
  Say(fd, Hello(6));
  const absl::StatusOr<pb::WorkerBootstrap> answer = ReadAnswer(fd);
  EXPECT_EQ(answer->error(), "unknown worker");
  EXPECT_FALSE(answer->has_credentials());
}

TEST_F(BootstrapSocketTest, Hello_OtherUser_GetsErrorOnly) {
  Serve(geteuid() + 1);
  const Fd fd = Connect();
  const absl::StatusOr<pb::WorkerBootstrap> answer = ReadAnswer(fd);
  EXPECT_NE(answer->error().find("belongs to user"), std::string::npos);
  EXPECT_FALSE(answer->has_credentials());
}

TEST_F(BootstrapSocketTest, Hello_Garbage_IsDroppedWithoutAnAnswer) {
  Serve(geteuid());
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    const Fd fd = Connect();
    std::string garbage(1 + random() % 600, '\xff');
    for (char& c : garbage) c = static_cast<char>(random());
    garbage[0] = '\x7f';  // a length beyond every bound
    Say(fd, garbage);
    shutdown(fd.get(), SHUT_WR);
    EXPECT_FALSE(ReadAnswer(fd).ok());
  }
  const Fd fd = Connect();
  Say(fd, Hello(kKnownWorker));
  EXPECT_EQ(ReadAnswer(fd)->credentials().token(), "secret");
}

TEST_F(BootstrapSocketTest, Hello_SilentClientsInFront_AreNotWaitedFor) {
  Serve(geteuid());
  std::vector<Fd> silent;
  for (size_t i = 0; i < BootstrapSocket::kMaxClients + 10; ++i) {
    silent.push_back(Connect());
    Say(silent.back(), "\0");
  }
  const Fd fd = Connect();
  for (const char byte : Hello(kKnownWorker)) Say(fd, {&byte, 1});
  EXPECT_EQ(ReadAnswer(fd)->credentials().token(), "secret");
  // The first in had to make room.
  EXPECT_FALSE(ReadAnswer(silent[0]).ok());
}

TEST_F(BootstrapSocketTest, Name_TwoSockets_AreNotGuessable) {
  Serve(geteuid());
  const std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  const auto other = BootstrapSocket::Create(*loop, geteuid(), AnswerWorker).value();
  EXPECT_NE(other->name(), socket_->name());
  EXPECT_GE(socket_->name().size(), 32u);
}

TEST(BootstrapSocketNameTest, TooLongOne_IsRefused) {
  const auto loop = EventLoop::Create().value();
  const auto open = [&](size_t bytes) {
    return BootstrapSocket::Create(*loop, geteuid(), AnswerWorker, {std::string(bytes, 'x')})
        .status();
  };
  EXPECT_TRUE(open(107).ok());
  EXPECT_EQ(open(108).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(open(100'000).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hvd::rendezvous::bootstrap
