// What ChannelArguments::SetSocketMutator takes. gRPC's interface names the type, but its packages
// lack the header (src/core/lib/iomgr/socket_mutator.h) that says what it is.
#ifndef THIRD_PARTY_SHIMS_GRPC_SOCKET_MUTATOR_H_
#define THIRD_PARTY_SHIMS_GRPC_SOCKET_MUTATOR_H_

#include "grpc/grpc.h"
#include "grpc/support/sync.h"
#include "grpcpp/version_info.h"

static_assert(GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51,
              "compare these types with socket_mutator.h of this version of gRPC");

struct grpc_mutate_socket_info;

struct grpc_socket_mutator_vtable {
  // Sets the options of a new socket; false fails it.
  bool (*mutate_fd)(int fd, grpc_socket_mutator* mutator);
  // As strcmp: channels whose mutators differ share no connection.
  int (*compare)(grpc_socket_mutator* a, grpc_socket_mutator* b);
  void (*destroy)(grpc_socket_mutator* mutator);
  // In place of mutate_fd, if not null.
  bool (*mutate_fd_2)(const grpc_mutate_socket_info* info, grpc_socket_mutator* mutator);
};

struct grpc_socket_mutator {
  const grpc_socket_mutator_vtable* vtable;
  gpr_refcount refcount;
};

#endif  // THIRD_PARTY_SHIMS_GRPC_SOCKET_MUTATOR_H_
