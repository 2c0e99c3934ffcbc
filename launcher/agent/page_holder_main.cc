// For tests: asks the agent as a worker does, holds the liveness page that comes with the answer,
// prints its number, and waits for its end. With the argument "leave" it ends by itself at once;
// with "arena" it only prints which file holds the commits.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/env.h"
#include "base/frames.h"
#include "base/liveness_page.h"
#include "proto/agent.pb.h"

namespace hvd {
namespace {

Fd Ask(const std::string& name, uint64_t worker_id) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, name.size());
  const socklen_t length = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return Fd();
  pb::WorkerHello hello;
  hello.set_worker_id(worker_id);
  return WriteFrame(fd.get(), hello.SerializeAsString()).ok() ? std::move(fd) : Fd();
}

// The descriptors that come with the first bytes of the answer: page and arena.
std::pair<Fd, Fd> TakeDescriptors(const Fd& fd) {
  char byte = 0;
  iovec bytes = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(fd.get(), &message, MSG_CMSG_CLOEXEC) != 1) return {};
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return {};
  int descriptors[2] = {-1, -1};
  memcpy(descriptors, CMSG_DATA(header),
         std::min(sizeof(descriptors), static_cast<size_t>(header->cmsg_len - CMSG_LEN(0))));
  return {Fd(descriptors[0]), Fd(descriptors[1])};
}

int Run(const std::string& what) {
  const RuntimeEnv env = ParseRuntimeEnv(ReadRuntimeVariables()).value();
  auto [page_fd, arena] = TakeDescriptors(Ask(env.agent_socket, env.worker_id));
  if (what == "arena") {
    struct stat info = {};
    if (fstat(arena.get(), &info) != 0) return 1;
    printf("%lu\n", static_cast<unsigned long>(info.st_ino));
    return 0;
  }
  absl::StatusOr<LivenessPage> page = LivenessPage::Map(std::move(page_fd));
  if (!page.ok() || !page->HoldForever().ok()) {
    puts("no page");
    return 1;
  }
  printf("%d\n", getpid());
  fflush(stdout);
  while (what != "leave") pause();
  return 0;
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) { return hvd::Run(argc > 1 ? argv[1] : ""); }
