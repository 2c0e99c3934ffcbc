#include "worker_runtime/session/bootstrap.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/net/descriptor_passing.h"
#include "base/net/frames.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::session {
namespace {

// A fake agent that answers one worker as the test says, and then ends.
class BootstrapTest : public ::testing::Test {
 protected:
  using Answer = std::function<void(int socket)>;

  // Before that it accepts `hung_up_on` connections and closes them without an answer.
  absl::StatusOr<AgentAnswer> Fetch(const Answer& answer, absl::Duration timeout = absl::Minutes(1),
                                    int hung_up_on = 0, const std::string& names_before = "") {
    Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    socklen_t length = sizeof(sa_family_t);
    // The kernel chooses a name.
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(seteuid(listens_as_), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(seteuid(getuid()), 0);
    length = sizeof(address);
    getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length);
    const std::string name(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
    std::thread agent([&] {
      for (int i = 0; i < hung_up_on; ++i) Fd(accept(listener.get(), nullptr, nullptr)).reset();
      const Fd worker(accept(listener.get(), nullptr, nullptr));
      listener.reset();
      const auto hello = net::ReadFrame(worker.get(), net::kMaxFrameBytes);
      hello_.ParseFromString(hello.value_or(""));
      if (hello.ok()) answer(worker.get());
    });
    absl::StatusOr<AgentAnswer> result =
        FetchBootstrap(names_before + name, WorkerId(7), "word", timeout);
    agent.join();
    return result;
  }

  static std::string Frame(const std::string& token, bool page = false, bool arena = false,
                           bool stack_pipe = false) {
    pb::WorkerBootstrap bootstrap;
    bootstrap.set_has_liveness_page(page);
    bootstrap.set_has_commit_arena(arena);
    bootstrap.set_has_stack_pipe(stack_pipe);
    bootstrap.mutable_credentials()->set_token(token);
    bootstrap.set_elastic(true);
    return net::EncodeFrame(bootstrap.SerializeAsString());
  }

  pb::WorkerHello hello_;
  uid_t listens_as_ = geteuid();
};

TEST_F(BootstrapTest, Fetch_AnswerWithoutAPage_IsEnough) {
  const auto answer = Fetch([](int socket) {
    const std::string frame = Frame("secret");
    // In two pieces.
    send(socket, frame.data(), 5, MSG_NOSIGNAL);
    send(socket, frame.data() + 5, frame.size() - 5, MSG_NOSIGNAL);
  });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(hello_.worker_id(), 7u);
  EXPECT_EQ(hello_.word(), "word");
  EXPECT_EQ(answer->bootstrap.credentials().token(), "secret");
  EXPECT_TRUE(answer->bootstrap.elastic());
  EXPECT_FALSE(answer->liveness_page.valid());
}

ino_t FileBehind(int fd) {
  struct stat info = {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

TEST_F(BootstrapTest, Fetch_LongAnswerWithDescriptors_GivesAll) {
  const Fd page(memfd_create("page", 0)), arena(memfd_create("arena", 0));
  const Fd stack(memfd_create("stack", 0));
  const std::string token(20000, 't');
  const auto answer = Fetch([&](int socket) {
    EXPECT_EQ(net::SendWithDescriptors(socket, Frame(token, true, true, true),
                                       {page.get(), arena.get(), stack.get()}),
              absl::OkStatus());
  });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->bootstrap.credentials().token(), token);
  EXPECT_EQ(FileBehind(answer->stack_pipe.get()), FileBehind(stack.get()));
  EXPECT_EQ(FileBehind(answer->liveness_page.get()), FileBehind(page.get()));
  EXPECT_EQ(FileBehind(answer->commit_arena.get()), FileBehind(arena.get()));
}

TEST_F(BootstrapTest, Fetch_OneDescriptor_IsWhatTheAnswerSays) {
  const Fd arena(memfd_create("arena", 0));
  const auto answer = Fetch([&](int socket) {
    EXPECT_EQ(net::SendWithDescriptors(socket, Frame("secret", false, true), {arena.get()}),
              absl::OkStatus());
  });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->liveness_page.valid());
  EXPECT_EQ(FileBehind(answer->commit_arena.get()), FileBehind(arena.get()));
}

TEST_F(BootstrapTest, Fetch_Refused_GivesTheAgentsWords) {
  const auto answer = Fetch([](int socket) {
    pb::WorkerBootstrap bootstrap;
    bootstrap.set_error("unknown worker");
    EXPECT_TRUE(net::WriteFrame(socket, bootstrap.SerializeAsString()).ok());
  });
  EXPECT_EQ(answer.status(), absl::PermissionDeniedError("unknown worker"));
}

TEST_F(BootstrapTest, Fetch_AgentHangsUp_IsUnavailable) {
  EXPECT_EQ(Fetch([](int) {}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Fetch([](int socket) { send(socket, "\0\0", 2, MSG_NOSIGNAL); }).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(BootstrapTest, Fetch_AgentHangsUpOnStrangersAndUs_AsksAgain) {
  const auto answer = Fetch(
      [](int socket) { EXPECT_TRUE(net::SendWithDescriptors(socket, Frame("secret"), {}).ok()); },
      absl::Minutes(1), /*hung_up_on=*/3);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->bootstrap.credentials().token(), "secret");
}

TEST_F(BootstrapTest, Fetch_AgentSaysNothing_DeadlineExceeded) {
  char byte;
  const auto answer =
      Fetch([&](int socket) { (void)!read(socket, &byte, 1); },  // until it gives up
            absl::Milliseconds(10));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(BootstrapTest, Fetch_AgentAcceptsNothing_DeadlineExceeded) {
  const Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socklen_t length = sizeof(sa_family_t);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  length = sizeof(address);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length);
  // The backlog is filled.
  std::vector<Fd> strangers;
  do {
    strangers.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  } while (connect(strangers.back().get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  const std::string name(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  EXPECT_EQ(FetchBootstrap(name, WorkerId(7), "word", absl::Milliseconds(10)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

// Who has taken the name of an agent that has gone would be believed about the job, whose workers
// unpickle what others of it send.
TEST_F(BootstrapTest, Fetch_AnotherUserListens_PermissionDenied_AndItHearsNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  listens_as_ = 65534;
  const auto answer = Fetch([](int socket) {
    const std::string frame = Frame("planted");
    send(socket, frame.data(), frame.size(), MSG_NOSIGNAL);
  });
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kPermissionDenied) << answer.status();
  EXPECT_NE(answer.status().message().find("belongs to user 65534"), std::string::npos);
  EXPECT_EQ(hello_.word(), "");
}

// Listens under a name that the kernel chooses, as another user, and accepts nothing. `backlog`:
// one less than the connections that the kernel takes for it.
struct Stranger {
  explicit Stranger(int backlog) : listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    socklen_t length = sizeof(sa_family_t);
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(seteuid(65534), 0);
    EXPECT_EQ(listen(listener.get(), backlog), 0);
    EXPECT_EQ(seteuid(getuid()), 0);
    length = sizeof(address);
    getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length);
    name.assign(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
    if (backlog > 0) return;
    first.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(first.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  }
  Fd listener, first;
  std::string name;
};

// Which happens when a scheduler has been restarted.
TEST_F(BootstrapTest, Fetch_AnotherUserHasTheFirstNames_TheNextOneIsAsked) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Stranger deaf(0), willing(8);
  const auto answer = Fetch(
      [](int socket) { EXPECT_TRUE(net::SendWithDescriptors(socket, Frame("secret"), {}).ok()); },
      absl::Minutes(1), /*hung_up_on=*/0, absl::StrCat(deaf.name, ",", willing.name, ",free,"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->bootstrap.credentials().token(), "secret");
  EXPECT_EQ(
      FetchBootstrap(absl::StrCat(willing.name, ",free"), WorkerId(7), "word", absl::Minutes(1))
          .status()
          .code(),
      absl::StatusCode::kPermissionDenied);
}

TEST_F(BootstrapTest, Fetch_NobodyListens_IsUnavailable) {
  EXPECT_EQ(FetchBootstrap("no-such-agent", WorkerId(1), "", absl::Minutes(1)).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hvd::worker_runtime::session
