#include "rendezvous/daemon/owner.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/net/descriptor_passing.h"
#include "base/status_macros.h"
#include "base/text/json_object.h"
#include "rendezvous/security/token_file.h"

namespace hvd::rendezvous::daemon {
namespace {

text::JsonObject PemObject(const security::PeerCredentials& own) {
  return text::JsonObject()
      .AddText("ca", own.ca_certificate)
      .AddText("certificate", own.certificate)
      .AddText("key", own.private_key);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Owner>> Owner::Open(EventLoop& loop, int descriptor) {
  int domain = 0;
  // A wrong number must not get the job's secrets: it could be a file or a pipe of the program that
  // has started this one.
  socklen_t length = sizeof(domain);
  if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || domain != AF_UNIX) {
    return absl::InvalidArgumentError(
        absl::StrCat("--owner: ", descriptor, " is not the number of a connected unix socket"));
  }
  // The owner passed the descriptor by inheritance; processes started by the daemon must not keep
  // the socket open.
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  RETURN_IF_ERROR(SetNonBlocking(descriptor));
  return std::unique_ptr<Owner>(new Owner(loop, Fd(descriptor)));
}

Owner::~Owner() { loop_.Forget(socket_.get()); }

absl::Status Owner::Tell(const PersistentJob& job, const std::vector<std::string>& addresses) {
  ASSIGN_OR_RETURN(const std::string credentials, security::TokenText(job.hosts));
  text::JsonObject told;
  told.AddList("addresses", addresses, text::JsonString)
      .AddText("credentials", credentials)
      .AddObject("server", PemObject(job.daemon))
      .AddObject("member", PemObject(job.hosts));
  // The socket is new, and its buffer takes the few kilobytes at once. So this does not wait for an
  // owner that does not read yet, which a write of the rest would have to.
  return net::SendWithDescriptors(socket_.get(), absl::StrCat(told.Text(), "\n"), {});
}

absl::Status Owner::Watch(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  return loop_.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { OnReadable(); });
}

void Owner::OnReadable() {
  char buffer[4096];
  const IoResult got = ReadSome(socket_.get(), buffer, sizeof(buffer));
  said_.append(buffer, got.bytes);
  TakeLines();
  // Lines before the end are handled first: an owner may send "drain" and exit at once.
  if (!got.end) return;
  // The end of a stream stays readable, so the loop would call again and again.
  loop_.Forget(socket_.get());
  callbacks_.on_end();
}

void Owner::TakeLines() {
  size_t begin = 0;
  for (size_t end = 0; (end = said_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    absl::string_view line = absl::string_view(said_).substr(begin, end - begin);
    if (absl::ConsumePrefix(&line, "drain ")) callbacks_.on_drain(std::string(line));
  }
  said_.erase(0, begin);
}

}  // namespace hvd::rendezvous::daemon
