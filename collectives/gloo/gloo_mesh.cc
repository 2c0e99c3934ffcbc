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

// For the program's own, and for strangers.
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
  // First, since Gloo runs into undefined behaviour if the address can't be resolved and leaks
  // memory if it can't be bound.
  ASSIGN_OR_RETURN(mesh->acceptor_, link::LinkAcceptor::Start(mesh->group_));
  RETURN_IF_ERROR(link::GlooCall([&] {
    const auto device = std::static_pointer_cast<::gloo::transport::tcp::Device>(
        ::gloo::transport::tcp::CreateDevice(group.address.c_str()));
    mesh->context_ = MakeGuardedContext(device, group.rank, group.size);
    mesh->ticker_.Attach(*device);
    // Pairs keep the timeout they were made with; our own deadlines are the ones that count.
    mesh->context_->setTimeout(std::chrono::hours(24));
  }));
  return mesh;
}

GlooMesh::~GlooMesh() { ticker_.SetActive(true); }

absl::Status GlooMesh::Connect(const std::vector<int>& peers, absl::Time deadline,
                               const Cancellation* cancellation) {
  os::AllowMoreFiles(peers.size() + kSpareFiles);
  // Acceptors always answer, so all of these come to an end, and then all of those.
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
  // The kernel knows no peer of a connection that it has closed meanwhile.
  return absl::UnavailableError(absl::StrCat("rank ", peer, " is gone: ", adopted.message()));
}

}  // namespace hvd::collectives::gloo
