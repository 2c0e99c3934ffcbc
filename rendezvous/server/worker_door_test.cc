#include "rendezvous/server/worker_door.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>

#include "absl/synchronization/notification.h"
#include "base/fd.h"
#include "base/frames.h"
#include "base/liveness_page.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

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

// What worker 7 does in hvd.init(), with the socket's name from `name`; then it says so and waits.
void BeWorker(const Fd& name, const Fd& ready) {
  char text[200] = {};
  const ssize_t got = read(name.get(), text, sizeof(text));
  const Fd fd = Connect(std::string(text, got > 0 ? static_cast<size_t>(got) : 0));
  pb::WorkerHello hello;
  hello.set_worker_id(7);
  if (!fd.valid() || !WriteFrame(fd.get(), hello.SerializeAsString()).ok()) _exit(1);
  absl::StatusOr<LivenessPage> page = LivenessPage::Map(PeekDescriptor(fd));
  if (!page.ok() || !page->HoldForever().ok()) _exit(2);
  (void)!write(ready.get(), "x", 1);
  for (;;) pause();
}

TEST(WorkerDoorTest, WorkerKilled_IsSaidToBeDying) {
  Pipe name = MakePipe().value();
  Pipe ready = MakePipe().value();
  const pid_t child = fork();  // before there is a thread
  if (child == 0) BeWorker(name.read, ready.write);
  ready.write.reset();
  absl::Notification dying;
  const auto door = WorkerDoor::Open(pb::WorkerBootstrap(), [&dying](WorkerId worker) {
    EXPECT_EQ(worker, WorkerId(7));
    dying.Notify();
  });
  ASSERT_TRUE(door.ok()) << door.status();
  StartWorkerEffect start;
  start.worker = WorkerId(7);
  const Environment environment = (*door)->Expect(start);
  ASSERT_TRUE(WriteAll(name.write.get(), environment.at("HOROVOD_AGENT_SOCKET")).ok());
  char byte = 0;
  ASSERT_EQ(read(ready.read.get(), &byte, 1), 1);
  EXPECT_FALSE(dying.HasBeenNotified());
  kill(child, SIGKILL);
  dying.WaitForNotification();
  waitpid(child, nullptr, 0);
  (*door)->Forget(WorkerId(7));
}

TEST(WorkerDoorTest, Forget_NobodyIsLetInOrWatched) {
  const auto door =
      WorkerDoor::Open(pb::WorkerBootstrap(), [](WorkerId) { ADD_FAILURE() << "nobody died"; });
  ASSERT_TRUE(door.ok()) << door.status();
  StartWorkerEffect start;
  start.worker = WorkerId(7);
  const std::string name = (*door)->Expect(start).at("HOROVOD_AGENT_SOCKET");
  for (const bool expected : {true, false}) {
    const Fd fd = Connect(name);
    pb::WorkerHello hello;
    hello.set_worker_id(7);
    ASSERT_TRUE(WriteFrame(fd.get(), hello.SerializeAsString()).ok());
    const absl::StatusOr<std::string> frame = ReadFrame(fd.get(), kMaxFrameBytes);
    ASSERT_TRUE(frame.ok()) << frame.status();
    pb::WorkerBootstrap answer;
    ASSERT_TRUE(answer.ParseFromString(*frame));
    EXPECT_EQ(answer.error().empty(), expected);
    EXPECT_EQ(answer.has_liveness_page(), expected);
    (*door)->Forget(WorkerId(7));
  }
}

}  // namespace
}  // namespace hvd
