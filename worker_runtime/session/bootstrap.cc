#include "worker_runtime/session/bootstrap.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/net/descriptor_passing.h"
#include "base/net/frames.h"
#include "base/net/peer/back_off.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"

namespace hvd::worker_runtime::session {
namespace {

constexpr absl::Duration kShortestPause = absl::Milliseconds(10);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

// Checks that the listening process belongs to this user. An abstract socket has no file
// permissions: when an agent has ended, any user can take its name.
absl::Status CheckOwner(int socket) {
  ucred owner = {};
  socklen_t size = sizeof(owner);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0) {
    return absl::UnavailableError(absl::StrCat("getsockopt: ", strerror(errno)));
  }
  if (owner.uid == geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "the socket of HOROVOD_AGENT_SOCKET belongs to user ", owner.uid, ", this process to user ",
      geteuid(), ": it has changed its user, or the agent that started it is gone"));
}

// The pauses between attempts.
class Pauses {
 public:
  // Sleeps for the next pause. Returns false, at once, if that would last beyond the deadline.
  bool Sleep(absl::Time deadline) {
    const absl::Time end = Clock::Real().Now() + back_off_.Next(random_);
    if (end >= deadline) return false;
    net::AwaitReady(-1, 0, end).IgnoreError();  // no descriptor: it sleeps
    return true;
  }

 private:
  net::peer::BackOff back_off_{kShortestPause, kLongestPause};
  std::minstd_rand random_{std::random_device{}()};
};

absl::Status NotInTimeError() {
  return absl::DeadlineExceededError("the agent that started this process did not answer in time");
}

// Errors:
//   - Unavailable: nobody listens under this name.
//   - PermissionDenied: another user does.
//   - DeadlineExceeded: who listens accepts no connection just now.
absl::StatusOr<Fd> Connect(absl::string_view name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof(address.sun_path)) {
    return absl::UnavailableError(absl::StrCat("no such agent socket: '", name, "'"));
  }
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return absl::UnavailableError(absl::StrCat("socket: ", strerror(errno)));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == EAGAIN) return NotInTimeError();
    return absl::UnavailableError(absl::StrCat(
        "the agent that started this process is gone (HOROVOD_AGENT_SOCKET): ", strerror(errno)));
  }
  RETURN_IF_ERROR(CheckOwner(fd.get()));
  return fd;
}

absl::Status AwaitReadable(int socket, absl::Time deadline) {
  pollfd readable = {socket, POLLIN, 0};
  while (true) {
    const absl::Duration left = std::max(deadline - Clock::Real().Now(), absl::ZeroDuration());
    const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
    const int ready =
        poll(&readable, 1, static_cast<int>(std::min<int64_t>(milliseconds, INT_MAX)));
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) return NotInTimeError();
    if (errno != EINTR) return absl::UnavailableError(absl::StrCat("poll: ", strerror(errno)));
  }
}

absl::Status NoAnswer(absl::StatusCode code, absl::string_view why) {
  return absl::Status(code,
                      absl::StrCat("the agent that started this process did not answer: ", why));
}

// Reads one frame, and the descriptors that come with it.
// Errors:
//   - Aborted: the agent has hung up before it sent anything.
//   - Unavailable: the answer is incomplete or invalid.
//   - DeadlineExceeded: there was no answer in time.
absl::StatusOr<std::string> ReadAnswer(int socket, absl::Time deadline, std::vector<Fd>& passed) {
  net::FrameDecoder decoder(net::kMaxFrameBytes);
  absl::StatusCode hung_up = absl::StatusCode::kAborted;
  while (true) {
    char buffer[4096];
    RETURN_IF_ERROR(AwaitReadable(socket, deadline));
    const auto got = net::ReceiveWithDescriptors(socket, buffer, sizeof(buffer), passed);
    if (!got.ok()) return NoAnswer(hung_up, got.status().message());
    if (*got == 0) return NoAnswer(hung_up, "the stream has ended");
    hung_up = absl::StatusCode::kUnavailable;
    decoder.Append(absl::string_view(buffer, *got));
    absl::StatusOr<std::optional<std::string>> answer = decoder.Next();
    if (!answer.ok()) return NoAnswer(absl::StatusCode::kUnavailable, answer.status().message());
    if (answer->has_value()) return **std::move(answer);
  }
}

// Connects under the first name under which the agent is found: another user may have taken those
// before it, and hold up whoever connects there.
// Errors: those of Connect. One that may pass counts most, a name that is taken more than a free
// one.
absl::StatusOr<Fd> ConnectToOneOf(const std::string& names) {
  absl::Status failed;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    absl::StatusOr<Fd> fd = Connect(name);
    if (fd.ok()) return fd;
    const bool counts_more =
        failed.ok() || absl::IsUnavailable(failed) || absl::IsDeadlineExceeded(fd.status());
    if (counts_more) failed = fd.status();
  }
  return failed;
}

absl::StatusOr<Fd> AwaitConnection(const std::string& names, absl::Time deadline) {
  Pauses pauses;
  while (true) {
    absl::StatusOr<Fd> fd = ConnectToOneOf(names);
    if (!absl::IsDeadlineExceeded(fd.status()) || !pauses.Sleep(deadline)) return fd;
  }
}

// Connects, asks once and returns the answer.
// Errors:
//   - Aborted: the agent has hung up already.
//   - All errors of Connect and ReadAnswer.
absl::StatusOr<std::string> AskOnce(const std::string& socket_names, const std::string& question,
                                    absl::Time deadline, std::vector<Fd>& passed) {
  ASSIGN_OR_RETURN(const Fd fd, AwaitConnection(socket_names, deadline));
  // A few bytes always fit into a fresh socket's buffer.
  if (send(fd.get(), question.data(), question.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(question.size())) {
    return absl::AbortedError("the agent that started this process does not listen");
  }
  return ReadAnswer(fd.get(), deadline, passed);
}

// Retries while the agent hangs up without an answer. Any process of the network namespace can
// connect to the socket, and an agent with too many connections closes the oldest one, which may be
// this one. There is no retry when the connection is refused: then the agent is gone.
absl::StatusOr<std::string> Ask(const std::string& socket_names, const std::string& question,
                                absl::Time deadline, std::vector<Fd>& passed) {
  Pauses pauses;
  while (true) {
    absl::StatusOr<std::string> answer = AskOnce(socket_names, question, deadline, passed);
    if (!absl::IsAborted(answer.status())) return answer;
    if (!pauses.Sleep(deadline)) return absl::UnavailableError(answer.status().message());
  }
}

absl::StatusOr<pb::WorkerBootstrap> AskFor(const std::string& socket_names,
                                           const pb::WorkerHello& hello, absl::Duration timeout,
                                           std::vector<Fd>& passed) {
  ASSIGN_OR_RETURN(const std::string text,
                   Ask(socket_names, net::EncodeFrame(hello.SerializeAsString()),
                       Clock::Real().Now() + timeout, passed));
  pb::WorkerBootstrap answer;
  if (!answer.ParseFromString(text)) {
    return absl::UnavailableError(
        "the agent's answer can't be decoded; the agent may be of another version");
  }
  if (!answer.error().empty()) return absl::PermissionDeniedError(answer.error());
  return answer;
}

}  // namespace

absl::StatusOr<AgentAnswer> FetchBootstrap(const std::string& socket_names, WorkerId worker,
                                           const std::string& word, absl::Duration timeout) {
  pb::WorkerHello hello;
  hello.set_worker_id(worker.value());
  hello.set_word(word);
  AgentAnswer result;
  std::vector<Fd> passed;
  ASSIGN_OR_RETURN(result.bootstrap, AskFor(socket_names, hello, timeout, passed));
  // The agent passes the descriptors in this order, and flags in the answer say which it has sent.
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
  if (result.bootstrap.has_fault_page() && next != passed.end()) {
    result.fault_page = std::move(*next++);
  }
  return result;
}

absl::StatusOr<pb::WorkerBootstrap> FetchCredentials(const std::string& socket_names,
                                                     WorkerId worker, const std::string& word,
                                                     absl::Duration timeout) {
  pb::WorkerHello hello;
  hello.set_worker_id(worker.value());
  hello.set_word(word);
  hello.set_credentials_only(true);
  std::vector<Fd> passed;
  return AskFor(socket_names, hello, timeout, passed);
}

absl::StatusOr<Fd> FetchNewestCommit(const std::string& socket_names, WorkerId worker,
                                     const std::string& word, absl::Duration timeout) {
  pb::WorkerHello hello;
  hello.set_worker_id(worker.value());
  hello.set_word(word);
  hello.set_newest_commit(true);
  std::vector<Fd> passed;
  ASSIGN_OR_RETURN(const pb::WorkerBootstrap answer, AskFor(socket_names, hello, timeout, passed));
  return answer.has_kept_commits() && !passed.empty() ? std::move(passed.front()) : Fd();
}

absl::Status SetOutputRank(const std::string& socket_names, WorkerId worker,
                           const std::string& word, int rank, absl::Duration timeout) {
  pb::WorkerHello hello;
  hello.set_worker_id(worker.value());
  hello.set_word(word);
  hello.set_output_rank(static_cast<uint32_t>(rank));
  std::vector<Fd> passed;
  return AskFor(socket_names, hello, timeout, passed).status();
}

}  // namespace hvd::worker_runtime::session
