// For tests: asks the agent as a worker does, holds the liveness page that comes with the answer,
// prints its number, and waits for its end. With an argument it ends by itself at once.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

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

// The descriptor that comes with the first bytes of the answer.
Fd TakePage(const Fd& fd) {
  char byte = 0;
  iovec bytes = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(fd.get(), &message, MSG_CMSG_CLOEXEC) != 1) return Fd();
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return Fd();
  int page = -1;
  memcpy(&page, CMSG_DATA(header), sizeof(page));
  return Fd(page);
}

int Run(bool leave) {
  const RuntimeEnv env = ParseRuntimeEnv(ReadRuntimeVariables()).value();
  absl::StatusOr<LivenessPage> page =
      LivenessPage::Map(TakePage(Ask(env.agent_socket, env.worker_id)));
  if (!page.ok() || !page->HoldForever().ok()) {
    puts("no page");
    return 1;
  }
  printf("%d\n", getpid());
  fflush(stdout);
  while (!leave) pause();
  return 0;
}

}  // namespace
}  // namespace hvd

int main(int argc, char**) { return hvd::Run(argc > 1); }
