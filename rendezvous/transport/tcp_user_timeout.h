// Tells a host that is gone from a process that is busy.
#ifndef RENDEZVOUS_TRANSPORT_TCP_USER_TIMEOUT_H_
#define RENDEZVOUS_TRANSPORT_TCP_USER_TIMEOUT_H_

#include "grpcpp/support/channel_arguments.h"

namespace hvd::rendezvous::transport {

// Ends a connection as soon as its oldest bytes have gone without the other host's acknowledgement
// for `timeout_ms`. That comes from the other kernel, whatever its processes do. Overrides what
// gRPC makes of its keepalive's timeout, which waits for the other process.
void EndWhenHostIsSilent(grpc::ChannelArguments& arguments, int timeout_ms);

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_TCP_USER_TIMEOUT_H_
