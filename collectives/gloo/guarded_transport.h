// Gloo's TCP transport, made safe against peers, and under TLS where that is wanted. Gloo throws in
// its event loop when a peer resets a connection at a bad moment or sends something that makes no
// sense, and nobody can catch there: the process would end.
#ifndef COLLECTIVES_GLOO_GUARDED_TRANSPORT_H_
#define COLLECTIVES_GLOO_GUARDED_TRANSPORT_H_

#include <memory>

#include "base/net/wire.h"
#include "gloo/transport/context.h"
#include "gloo/transport/tcp/device.h"

namespace hvd::collectives::gloo {

// Like device.createContext(), but an exception in the loop breaks the connection it came from and
// nothing else: whoever uses it gets a gloo::IoException. May throw what Gloo throws. The context
// owns the device.
std::shared_ptr<::gloo::transport::Context> MakeGuardedContext(
    std::shared_ptr<::gloo::transport::tcp::Device> device, int rank, int size);

// What the message of an exception begins with whose connection was changed on the way; the rest
// can follow a subject.
inline constexpr char kUnsafe[] = "unsafe: ";

// Makes the pair for `rank` of a connection whose other end has proved that it is that rank: it is
// connected from the start. May throw what Gloo throws; the connection is closed then.
// REQUIRES: `context` was made by MakeGuardedContext; there is no pair for `rank` yet.
void AdoptConnection(::gloo::transport::Context& context, int rank, net::Wire connection);

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_GUARDED_TRANSPORT_H_
