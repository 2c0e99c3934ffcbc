#include "collectives/gloo/gloo_mesh.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/os/process_limits.h"
#include "base/status_macros.h"
#include "collectives/gloo/guarded_transport.h"
#include "collectives/gloo/link/gloo_glue.h"
#include "collectives/gloo/link/link_dialer.h"

namespace hvd::collectives::gloo {
namespace {

// File descriptors for the rest of the process, and for strangers.
constexpr size_t kSpareFiles = 400;

}  // namespace

LoopTicker::LoopTicker() : fd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {}

LoopTicker::~LoopTicker() { close(fd_); }

void LoopTicker::Attach(::gloo::transport::tcp::Device& device) {
  device.registerDescriptor(fd_, EPOLLIN, this);
}

void LoopTicker::SetActive(bool active) {
  itimerspec spec = {};
  if (active) spec.it_interval.tv_nsec = spec.it_value.tv_nsec = 100 * 1000;
  timerfd_settime(fd_, 0, &spec, nullptr);
}

void LoopTicker::handleEvents(int events) {
  uint64_t expirations;
  (void)!read(fd_, &expirations, sizeof(expirations));
}

absl::StatusOr<std::unique_ptr<GlooMesh>> GlooMesh::Open(const GroupInfo& group) {
  std::unique_ptr<GlooMesh> mesh(new GlooMesh(group));
  // The acceptor comes first because it validates the address: Gloo's CreateDevice has undefined
  // behaviour if the address can't be resolved, and leaks memory if it can't be bound.
  ASSIGN_OR_RETURN(mesh->acceptor_, link::LinkAcceptor::Start(mesh->group_));
  RETURN_IF_ERROR(link::GlooCall([&] {
    const auto device = std::static_pointer_cast<::gloo::transport::tcp::Device>(
        ::gloo::transport::tcp::CreateDevice(group.address.c_str()));
    mesh->context_ = MakeGuardedContext(device, group.rank, group.size);
    mesh->ticker_.Attach(*device);
    // Disables Gloo's own timeout, which a pair keeps for its whole life. GlooLinks has a deadline
    // for every wait.
    mesh->context_->setTimeout(std::chrono::hours(24));
  }));
  return mesh;
}

// The members' destructors wait for iterations of Gloo's event loop, once per pair; see LoopTicker.
GlooMesh::~GlooMesh() { ticker_.SetActive(true); }

absl::Status GlooMesh::Connect(const std::vector<int>& peers, absl::Time deadline,
                               const Cancellation* cancellation) {
  os::AllowMoreFiles(peers.size() + kSpareFiles);
  // Free of deadlocks: acceptors answer on their own threads, so every rank completes its calls to
  // lower ranks, whatever those do; and then all calls from higher ranks have been made.
  for (const int peer : peers) {
    if (peer > group_.rank) continue;
    RETURN_IF_ERROR(
        Adopt(peer, link::DialLink(group_, peer, addresses_[peer], deadline, cancellation)));
  }
  for (const int peer : peers) {
    if (peer < group_.rank) continue;
    RETURN_IF_ERROR(Adopt(peer, acceptor_->Await(peer, deadline, cancellation)));
  }
  return absl::OkStatus();
}

absl::Status GlooMesh::Adopt(int peer, absl::StatusOr<net::Wire> connection) {
  RETURN_IF_ERROR(connection.status());
  const absl::Status adopted =
      link::GlooCall([&] { AdoptConnection(*context_, peer, *std::move(connection)); });
  if (adopted.ok()) return adopted;
  // The connection has closed meanwhile: its peer's address, which Gloo asks for, is unknown then.
  return absl::UnavailableError(absl::StrCat("rank ", peer, " is gone: ", adopted.message()));
}

}  // namespace hvd::collectives::gloo
