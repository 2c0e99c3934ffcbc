// The TCP user timeout (TCP_USER_TIMEOUT) of a gRPC channel, which distinguishes a dead host from a
// busy process.
#ifndef RENDEZVOUS_TRANSPORT_TCP_USER_TIMEOUT_H_
#define RENDEZVOUS_TRANSPORT_TCP_USER_TIMEOUT_H_

#include "grpcpp/support/channel_arguments.h"

namespace hvd::rendezvous::transport {

// Closes a connection when sent bytes remain unacknowledged for `timeout_ms`. The other host's
// kernel sends acknowledgements even if its processes are busy or stopped. Overrides the value that
// gRPC derives from its keepalive timeout, which depends on the other process.
void EndWhenHostIsSilent(grpc::ChannelArguments& arguments, int timeout_ms);

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_TCP_USER_TIMEOUT_H_
