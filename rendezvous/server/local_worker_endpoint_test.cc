#include "rendezvous/server/local_worker_endpoint.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "base/crypto.h"
#include "base/fd.h"
#include "base/net/frames.h"
#include "base/os/liveness_page.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::server {
namespace {

// A key that no other job has, and so a socket that none has.
std::string NewKey() { return RandomBytes(16); }

std::vector<std::string> NamesIn(const Environment& environment) {
  return absl::StrSplit(environment.at("HOROVOD_AGENT_SOCKET"), ',');
}

Fd Connect(const std::string& name) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, name.data(), name.size());
  const socklen_t length = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) return Fd();
  return fd;
}

// The descriptor that comes with the next byte; the byte stays.
Fd PeekDescriptor(const Fd& fd) {
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(fd.get(), &message, MSG_PEEK) != 1) return Fd();
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return Fd();
  int descriptor = -1;
  memcpy(&descriptor, CMSG_DATA(header), sizeof(descriptor));
  return Fd(descriptor);
}

constexpr size_t kWordBytes = 32;

// What worker 7 does in hvd.init(), with its word and the socket's name from `place`; then it says
// so and waits.
void BeWorker(const Fd& place, const Fd& ready) {
  char text[200] = {};
  const ssize_t got = read(place.get(), text, sizeof(text));
  if (got < static_cast<ssize_t>(kWordBytes)) _exit(3);
  const std::string told(text, static_cast<size_t>(got));
  const Fd fd = Connect(told.substr(kWordBytes));
  pb::WorkerHello hello;
  hello.set_worker_id(7);
  hello.set_word(told.substr(0, kWordBytes));
  if (!fd.valid() || !net::WriteFrame(fd.get(), hello.SerializeAsString()).ok()) _exit(1);
  absl::StatusOr<os::LivenessPage> page = os::LivenessPage::Map(PeekDescriptor(fd));
  if (!page.ok() || !page->HoldForever().ok()) _exit(2);
  (void)!write(ready.get(), "x", 1);
  for (;;) pause();
}

TEST(LocalWorkerEndpointTest, WorkerKilled_IsReportedAsDying) {
  Pipe place = MakePipe().value();
  Pipe ready = MakePipe().value();
  const pid_t child = fork();  // before there is a thread
  if (child == 0) BeWorker(place.read, ready.write);
  ready.write.reset();
  absl::Notification dying;
  const auto endpoint =
      LocalWorkerEndpoint::Open(pb::WorkerBootstrap(), NewKey(), [&dying](WorkerId worker) {
        EXPECT_EQ(worker, WorkerId(7));
        dying.Notify();
      });
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  membership::StartWorkerEffect start;
  start.worker = WorkerId(7);
  const Environment environment = (*endpoint)->Expect(start);
  ASSERT_TRUE(
      WriteAll(place.write.get(), environment.at("HOROVOD_WORKER_WORD") + NamesIn(environment)[0])
          .ok());
  char byte = 0;
  ASSERT_EQ(read(ready.read.get(), &byte, 1), 1);
  EXPECT_FALSE(dying.HasBeenNotified());
  kill(child, SIGKILL);
  dying.WaitForNotification();
  waitpid(child, nullptr, 0);
  (*endpoint)->Forget(WorkerId(7));
}

pb::WorkerBootstrap Ask(const Environment& environment, const std::string& word) {
  const Fd fd = Connect(NamesIn(environment)[0]);
  pb::WorkerHello hello;
  hello.set_worker_id(7);
  hello.set_word(word);
  EXPECT_TRUE(net::WriteFrame(fd.get(), hello.SerializeAsString()).ok());
  pb::WorkerBootstrap answer;
  EXPECT_TRUE(answer.ParseFromString(net::ReadFrame(fd.get(), net::kMaxFrameBytes).value()));
  return answer;
}

TEST(LocalWorkerEndpointTest, WithoutTheSecret_GetsNothing) {
  pb::WorkerBootstrap secret;
  secret.mutable_credentials()->set_token("secret");
  const auto endpoint = LocalWorkerEndpoint::Open(secret, NewKey(), [](WorkerId) {
                          ADD_FAILURE() << "nobody died";
                        }).value();
  membership::StartWorkerEffect start;
  start.worker = WorkerId(7);
  const Environment environment = endpoint->Expect(start);
  for (const char* word : {"", "00000000000000000000000000000000"}) {
    const pb::WorkerBootstrap answer = Ask(environment, word);
    EXPECT_NE(answer.error().find("worker 7"), std::string::npos) << answer.error();
    EXPECT_FALSE(answer.has_credentials());
    EXPECT_FALSE(answer.has_liveness_page());
  }
  const std::string word = environment.at("HOROVOD_WORKER_WORD");
  EXPECT_EQ(Ask(environment, word).credentials().token(), "secret");
}

// Between the end of a scheduler and its restart others can take the names that they have seen.
TEST(LocalWorkerEndpointTest, NamesThatOthersHave_ArePassedOver) {
  const std::string key = NewKey();
  const auto on_dying = [](WorkerId) { ADD_FAILURE() << "nobody died"; };
  membership::StartWorkerEffect start;
  start.worker = WorkerId(7);
  const auto other = LocalWorkerEndpoint::Open(pb::WorkerBootstrap(), key, on_dying).value();
  const Environment before = other->Expect(start);
  const auto endpoint = LocalWorkerEndpoint::Open(pb::WorkerBootstrap(), key, on_dying).value();
  EXPECT_EQ(endpoint->Expect(start), before) << "a worker of the earlier process finds it";
  const std::vector<std::string> names = NamesIn(before);
  EXPECT_TRUE(Connect(names.at(1)).valid());
  EXPECT_FALSE(Connect(names.at(2)).valid());
}

TEST(LocalWorkerEndpointTest, EveryNameIsTaken_AlreadyExists) {
  const std::string key = NewKey();
  std::vector<std::unique_ptr<LocalWorkerEndpoint>> others;
  absl::Status status;
  while (status.ok()) {
    auto endpoint = LocalWorkerEndpoint::Open(pb::WorkerBootstrap(), key, [](WorkerId) {});
    status = endpoint.status();
    if (endpoint.ok()) others.push_back(*std::move(endpoint));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
  EXPECT_EQ(others.size(), 8u);
}

TEST(LocalWorkerEndpointTest, LaterAsker_TheFirstLives_GetsNoPage) {
  const auto endpoint = LocalWorkerEndpoint::Open(pb::WorkerBootstrap(), NewKey(), [](WorkerId) {
                          ADD_FAILURE() << "nobody died";
                        }).value();
  membership::StartWorkerEffect start;
  start.worker = WorkerId(7);
  const Environment environment = endpoint->Expect(start);
  const std::string word = environment.at("HOROVOD_WORKER_WORD");
  EXPECT_TRUE(Ask(environment, word).has_liveness_page());
  const pid_t later = fork();
  if (later == 0) _exit(Ask(environment, word).has_liveness_page() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(later, &status, 0), later);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(Ask(environment, word).has_liveness_page());  // the first again
}

TEST(LocalWorkerEndpointTest, Forget_NobodyIsLetInOrWatched) {
  const auto endpoint = LocalWorkerEndpoint::Open(pb::WorkerBootstrap(), NewKey(),
                                                  [](WorkerId) { ADD_FAILURE() << "nobody died"; });
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  membership::StartWorkerEffect start;
  start.worker = WorkerId(7);
  const Environment environment = (*endpoint)->Expect(start);
  for (const bool expected : {true, false}) {
    const pb::WorkerBootstrap answer = Ask(environment, environment.at("HOROVOD_WORKER_WORD"));
    EXPECT_EQ(answer.error().empty(), expected);
    EXPECT_EQ(answer.has_liveness_page(), expected);
    (*endpoint)->Forget(WorkerId(7));
  }
}

}  // namespace
}  // namespace hvd::rendezvous::server
