// Gloo's TCP transport with protection from peers, and optional TLS. Gloo throws in its event loop
// when a peer resets a connection at a bad moment or sends invalid data. Nothing can catch the
// exception there: the process would end.
#ifndef COLLECTIVES_GLOO_GUARDED_TRANSPORT_H_
#define COLLECTIVES_GLOO_GUARDED_TRANSPORT_H_

#include <memory>

#include "base/net/wire.h"
#include "gloo/transport/context.h"
#include "gloo/transport/tcp/device.h"

namespace hvd::collectives::gloo {

// Like device.createContext(), but an exception in the loop breaks only the connection that it came
// from: its user gets a gloo::IoException. May throw what Gloo throws. The context owns the device.
std::shared_ptr<::gloo::transport::Context> MakeGuardedContext(
    std::shared_ptr<::gloo::transport::tcp::Device> device, int rank, int size);

// The prefix of an exception's message if the connection's data was changed on the way; the rest
// can follow a subject.
inline constexpr char kUnsafe[] = "unsafe: ";

// Makes the pair for `rank` from a connection whose other end has proved to be that rank: it is
// connected from the start. May throw what Gloo throws; the connection is closed then. REQUIRES:
// `context` was made by MakeGuardedContext; there is no pair for `rank` yet.
void AdoptConnection(::gloo::transport::Context& context, int rank, net::Wire connection);

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_GUARDED_TRANSPORT_H_
