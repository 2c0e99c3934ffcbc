// The TCP user timeout of a gRPC channel: it distinguishes a host that is gone from a busy process.
#ifndef RENDEZVOUS_TRANSPORT_TCP_USER_TIMEOUT_H_
#define RENDEZVOUS_TRANSPORT_TCP_USER_TIMEOUT_H_

#include "grpcpp/support/channel_arguments.h"

namespace hvd::rendezvous::transport {

// Ends a connection as soon as its oldest bytes have been unacknowledged by the other host for
// `timeout_ms`. The other kernel acknowledges, whatever its processes do. Overrides the value that
// gRPC derives from its keepalive timeout, which waits for the other process.
void EndWhenHostIsSilent(grpc::ChannelArguments& arguments, int timeout_ms);

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_TCP_USER_TIMEOUT_H_
