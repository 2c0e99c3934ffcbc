#include "launcher/job/handover.h"

#include <sys/socket.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/net/descriptor_passing.h"
#include "base/net/listen_address.h"
#include "base/status_macros.h"
#include "base/text/json_object.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::launcher::job {
namespace {

absl::Status CheckSocket(int fd) {
  int domain = 0;
  socklen_t length = sizeof(domain);
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--handover: ", fd, " is not the number of a unix socket; it is horovod.run's"));
}

text::JsonObject PemObject(const rendezvous::security::PeerCredentials& own) {
  return text::JsonObject()
      .AddText("ca", own.ca_certificate)
      .AddText("certificate", own.certificate)
      .AddText("key", own.private_key);
}

}  // namespace

absl::StatusOr<std::string> HandOver(Fd caller, const std::vector<std::string>& addresses) {
  RETURN_IF_ERROR(CheckSocket(caller.get()));
  ASSIGN_OR_RETURN(const auto authority, rendezvous::security::JobAuthority::Create("horovod.run"));
  ASSIGN_OR_RETURN(const rendezvous::security::PeerCredentials server, authority->IssueForDaemon());
  ASSIGN_OR_RETURN(const rendezvous::security::PeerCredentials client,
                   authority->IssueForHost("worker"));
  // The sockets listen before they are sent, so that workers can connect at once. The caller gets
  // duplicates; these descriptors are closed on return.
  std::vector<Fd> listeners;
  std::vector<int> descriptors;
  std::vector<std::string> bound;
  for (const std::string& text : addresses) {
    ASSIGN_OR_RETURN(const net::ListenAddress address, net::ParseListenAddress(text));
    ASSIGN_OR_RETURN(Fd listener, net::ListenOn(address));
    bound.push_back(address.WithPort(net::BoundPort(listener.get())));
    descriptors.push_back(listener.get());
    listeners.push_back(std::move(listener));
  }
  RETURN_IF_ERROR(net::SendWithDescriptors(caller.get(), PemObject(server).Text(), descriptors));
  return PemObject(client).AddList("addresses", bound, text::JsonString).Text();
}

}  // namespace hvd::launcher::job
