#include "rendezvous/bootstrap/bootstrap_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "base/net/descriptor_passing.h"
#include "base/net/peer_source.h"
#include "base/status_macros.h"

namespace hvd::rendezvous::bootstrap {
namespace {

// A hello is an id and a word. Any process can connect, so no more is stored for it.
constexpr size_t kMaxHelloBytes = 256;
constexpr size_t kRandomBytes = 16;

absl::StatusOr<Fd> Listen(const std::string& name) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("no socket for workers can have a name of ", name.size(), " bytes"));
  }
  memcpy(address.sun_path + 1, name.data(), name.size());  // a leading zero byte makes it abstract
  // Exact: zero bytes after an abstract name would be part of it.
  const socklen_t length = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  if (fd.valid() && bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) == 0 &&
      listen(fd.get(), SOMAXCONN) == 0) {
    return fd;
  }
  if (errno == EADDRINUSE) return absl::AlreadyExistsError("the name is in use");
  return absl::ErrnoToStatus(errno, "can't listen for workers");
}

struct Named {
  std::string name;
  Fd listener;
};

absl::StatusOr<Named> ListenUnderTheFirstFree(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    absl::StatusOr<Fd> listener = Listen(name);
    if (listener.ok()) return Named{name, *std::move(listener)};
    if (!absl::IsAlreadyExists(listener.status())) return listener.status();
  }
  return absl::AlreadyExistsError(
      absl::StrCat("can't listen for workers: other processes have taken all ", names.size(),
                   " names of the job's socket"));
}

BootstrapSocket::Response Refusal(const std::string& error) {
  BootstrapSocket::Response refusal;
  refusal.bootstrap.set_error(error);
  return refusal;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BootstrapSocket>> BootstrapSocket::Create(
    EventLoop& loop, uid_t user, Answer answer, const std::vector<std::string>& names) {
  const std::string random =
      absl::StrCat("horovod-agent-", absl::BytesToHexString(RandomBytes(kRandomBytes)));
  ASSIGN_OR_RETURN(Named made,
                   ListenUnderTheFirstFree(names.empty() ? std::vector{random} : names));
  std::unique_ptr<BootstrapSocket> result(new BootstrapSocket(
      loop, user, std::move(answer), std::move(made.name), std::move(made.listener)));
  RETURN_IF_ERROR(result->acceptor_.Begin());
  return result;
}

BootstrapSocket::BootstrapSocket(EventLoop& loop, uid_t user, Answer answer, std::string name,
                                 Fd listener)
    : loop_(loop),
      user_(user),
      answer_(std::move(answer)),
      name_(std::move(name)),
      acceptor_(
          loop, std::move(listener), [this](Fd fd) { OnConnection(std::move(fd)); },
          [this] { return MakeRoom(); }) {}

BootstrapSocket::~BootstrapSocket() {
  while (!clients_.empty()) Drop(clients_.begin()->first);
}

void BootstrapSocket::OnConnection(Fd fd) {
  // The kernel records these credentials at connect(), so a client can't forge them.
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  // Before anything is read: what such a process sends does not matter.
  if (peer.uid != user_) {
    return Reply(fd.get(), Refusal(absl::StrCat("this job belongs to user ", user_,
                                                ", this process to user ", peer.uid)));
  }
  Admit(std::move(fd), peer.pid);
}

void BootstrapSocket::Admit(Fd fd, pid_t pid) {
  const int number = fd.get();
  const Id id = strangers_.Add(net::PeerSource(number));
  const EventLoop::TimerId patience = loop_.After(kPatience, [this, id] { Drop(id); });
  clients_.emplace(id, Client{std::move(fd), pid, net::FrameDecoder(kMaxHelloBytes), patience});
  if (!loop_.Watch(number, EPOLLIN, [this, id](uint32_t) { OnHello(id); }).ok()) return Drop(id);
  KeepToTheBound();
}

void BootstrapSocket::KeepToTheBound() {
  while (const std::optional<Id> surplus = strangers_.Surplus()) Drop(*surplus);
}

bool BootstrapSocket::MakeRoom() {
  const std::optional<Id> gone = strangers_.LeastLikelyMember();
  if (gone.has_value()) Drop(*gone);
  return gone.has_value();
}

void BootstrapSocket::OnHello(Id id) {
  Client& client = clients_.at(id);
  char buffer[kMaxHelloBytes];
  const IoResult got = ReadSome(client.fd.get(), buffer, sizeof(buffer));
  if (got.would_block) return;
  client.decoder.Append({buffer, got.bytes});
  const absl::StatusOr<std::optional<std::string>> payload = client.decoder.Next();
  if (payload.ok() && !payload->has_value() && !got.end) {
    strangers_.Reach(id, net::Strangers::Stage::kHeard);
    return KeepToTheBound();
  }
  if (payload.ok() && payload->has_value()) {
    pb::WorkerHello hello;
    Reply(client.fd.get(), hello.ParseFromString(**payload) ? answer_(hello, client.pid)
                                                            : Refusal("this is not a WorkerHello"));
  }
  // After one answer, or one error: a client that keeps its connection gains nothing.
  Drop(id);
}

void BootstrapSocket::Reply(int fd, Response response) {
  std::vector<int> passed;
  for (const int descriptor :
       {response.page, response.arena, response.stack_pipe, response.faults, response.kept}) {
    if (descriptor >= 0) passed.push_back(descriptor);
  }
  response.bootstrap.set_has_liveness_page(response.page >= 0);
  response.bootstrap.set_has_commit_arena(response.arena >= 0);
  response.bootstrap.set_has_stack_pipe(response.stack_pipe >= 0);
  response.bootstrap.set_has_fault_page(response.faults >= 0);
  response.bootstrap.set_has_kept_commits(response.kept >= 0);
  // These are the only bytes sent on this connection, so they fit into the socket's buffer. If
  // sending fails nevertheless, the worker gets no answer and reports that.
  net::SendWithDescriptors(fd, net::EncodeFrame(response.bootstrap.SerializeAsString()), passed)
      .IgnoreError();
}

void BootstrapSocket::Drop(Id id) {
  const auto entry = clients_.find(id);
  loop_.Cancel(entry->second.patience);
  // Before erase closes the descriptor, whose number the next connection may get.
  loop_.Forget(entry->second.fd.get());
  clients_.erase(entry);
  strangers_.Remove(id);
}

}  // namespace hvd::rendezvous::bootstrap
