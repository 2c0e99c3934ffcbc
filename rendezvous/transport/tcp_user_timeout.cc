#include "rendezvous/transport/tcp_user_timeout.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "third_party/shims/grpc/socket_mutator.h"

namespace hvd::rendezvous::transport {
namespace {

struct TimeoutMutator : grpc_socket_mutator {
  int timeout_ms;
};

int TimeoutOf(grpc_socket_mutator* mutator) {
  return static_cast<TimeoutMutator*>(mutator)->timeout_ms;
}

// Other sockets than TCP sockets do not have this option and do not need it.
bool SetTimeout(int fd, grpc_socket_mutator* mutator) {
  const int timeout_ms = TimeoutOf(mutator);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
  return true;
}

int Compare(grpc_socket_mutator* a, grpc_socket_mutator* b) { return TimeoutOf(a) - TimeoutOf(b); }

void Destroy(grpc_socket_mutator* mutator) { delete static_cast<TimeoutMutator*>(mutator); }

constexpr grpc_socket_mutator_vtable kVtable = {SetTimeout, Compare, Destroy, nullptr};

}  // namespace

void EndWhenHostIsSilent(grpc::ChannelArguments& arguments, int timeout_ms) {
  auto* mutator = new TimeoutMutator();  // owned by the channel arguments
  mutator->vtable = &kVtable;
  gpr_ref_init(&mutator->refcount, 1);
  mutator->timeout_ms = timeout_ms;
  arguments.SetSocketMutator(mutator);
}

}  // namespace hvd::rendezvous::transport
