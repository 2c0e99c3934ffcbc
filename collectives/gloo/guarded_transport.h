// Gloo's TCP transport, hardened against faulty peers, with optional TLS. Gloo's event loop throws
// when a peer resets a connection at a bad moment or sends invalid data. Nothing can catch the
// exception there, so the process would terminate.
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

// The prefix of an exception's message if the connection's data was tampered with. The rest of the
// message is a predicate, for use after a subject.
inline constexpr char kUnsafe[] = "unsafe: ";

// Makes the pair for `rank` from an open connection whose other end was authenticated as that rank.
// May throw what Gloo throws; then the connection is closed.
// REQUIRES: `context` was made by MakeGuardedContext; there is no pair for `rank` yet.
void AdoptConnection(::gloo::transport::Context& context, int rank, net::Wire connection);

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_GUARDED_TRANSPORT_H_
