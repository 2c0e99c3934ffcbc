#include "worker_runtime/session/bootstrap.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

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

// As many as an agent sends at most.
constexpr size_t kMostDescriptors = 3;

// One read, with the descriptors that may come along. 0 bytes: end of stream.
absl::StatusOr<size_t> Receive(int socket, char* buffer, size_t size, std::vector<Fd>& passed) {
  iovec part = {buffer, size};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = TEMP_FAILURE_RETRY(recvmsg(socket, &message, MSG_CMSG_CLOEXEC));
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return absl::DeadlineExceededError(
        "the agent that started this process gave no answer in time");
  }
  if (got < 0) return absl::UnavailableError(strerror(errno));
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= header->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(header) + at, sizeof(fd));
      passed.emplace_back(fd);
    }
  }
  return static_cast<size_t>(got);
}

absl::StatusOr<std::string> ReadAnswer(int socket, std::vector<Fd>& passed) {
  FrameDecoder decoder(kMaxFrameBytes);
  while (true) {
    char buffer[4096];
    ASSIGN_OR_RETURN(const size_t got, Receive(socket, buffer, sizeof(buffer), passed));
    if (got == 0) return absl::UnavailableError("the stream has ended");
    decoder.Append(absl::string_view(buffer, got));
    ASSIGN_OR_RETURN(std::optional<std::string> answer, decoder.Next());
    if (answer.has_value()) return *std::move(answer);
  }
}

}  // namespace

absl::StatusOr<AgentAnswer> FetchBootstrap(const std::string& socket_name, WorkerId worker,
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
  AgentAnswer result;
  std::vector<Fd> passed;
  const auto answer = ReadAnswer(fd.get(), passed);
  if (!answer.ok()) {
    if (absl::IsDeadlineExceeded(answer.status())) return answer.status();
    return absl::UnavailableError(absl::StrCat(
        "the agent that started this process gave no answer: ", answer.status().message()));
  }
  if (!result.bootstrap.ParseFromString(*answer)) {
    return absl::UnavailableError("the agent's answer can't be read; is it of another version?");
  }
  if (!result.bootstrap.error().empty()) {
    return absl::PermissionDeniedError(result.bootstrap.error());
  }
  auto next = passed.begin();
  if (result.bootstrap.has_liveness_page() && next != passed.end()) {
    result.liveness_page = std::move(*next++);
  }
  if (result.bootstrap.has_commit_arena() && next != passed.end()) {
    result.commit_arena = std::move(*next++);
  }
  if (result.bootstrap.has_stack_pipe() && next != passed.end()) {
    result.stack_pipe = std::move(*next++);
  }
  return result;
}

}  // namespace hvd
