#include "worker_runtime/session/bootstrap.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/frames.h"
#include "base/status_macros.h"

namespace hvd {
namespace {

absl::StatusOr<Fd> Connect(const std::string& name, absl::Duration timeout) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof(address.sun_path)) {
    return absl::UnavailableError(absl::StrCat("no such agent socket: '", name, "'"));
  }
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return absl::UnavailableError(absl::StrCat("socket: ", strerror(errno)));
  const timeval limit = absl::ToTimeval(timeout);
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return absl::UnavailableError(absl::StrCat(
        "the agent that started this process is gone (HOROVOD_AGENT_SOCKET): ", strerror(errno)));
  }
  return fd;
}

}  // namespace

absl::StatusOr<pb::WorkerBootstrap> FetchBootstrap(const std::string& socket_name, WorkerId worker,
                                                   absl::Duration timeout) {
  ASSIGN_OR_RETURN(const Fd fd, Connect(socket_name, timeout));
  pb::WorkerHello hello;
  hello.set_worker_id(worker.value());
  const std::string question = EncodeFrame(hello.SerializeAsString());
  // A few bytes always fit into a fresh socket's buffer.
  if (send(fd.get(), question.data(), question.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(question.size())) {
    return absl::UnavailableError("the agent that started this process does not listen");
  }
  const auto answer = ReadFrame(fd.get(), kMaxFrameBytes);
  if (!answer.ok()) {
    if (absl::IsDeadlineExceeded(answer.status())) return answer.status();
    return absl::UnavailableError(absl::StrCat(
        "the agent that started this process gave no answer: ", answer.status().message()));
  }
  pb::WorkerBootstrap bootstrap;
  if (!bootstrap.ParseFromString(*answer)) {
    return absl::UnavailableError("the agent's answer can't be read; is it of another version?");
  }
  if (!bootstrap.error().empty()) return absl::PermissionDeniedError(bootstrap.error());
  return bootstrap;
}

}  // namespace hvd
