// Gloo's TCP transport, made safe against peers. Gloo throws in its event loop when a peer resets a
// connection at a bad moment or sends something that makes no sense, and nobody can catch there:
// the process would end.
#ifndef COLLECTIVES_GLOO_GUARDED_TRANSPORT_H_
#define COLLECTIVES_GLOO_GUARDED_TRANSPORT_H_

#include <memory>

#include "gloo/transport/context.h"
#include "gloo/transport/tcp/device.h"

namespace hvd {

// Like device.createContext(), but an exception in the loop breaks the connection it came from and
// nothing else: whoever uses it gets a gloo::IoException. May throw what Gloo throws. The context
// owns the device.
std::shared_ptr<gloo::transport::Context> MakeGuardedContext(
    std::shared_ptr<gloo::transport::tcp::Device> device, int rank, int size);

}  // namespace hvd

#endif  // COLLECTIVES_GLOO_GUARDED_TRANSPORT_H_
