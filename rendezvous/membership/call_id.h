// The id of a parked RPC.
#ifndef RENDEZVOUS_MEMBERSHIP_CALL_ID_H_
#define RENDEZVOUS_MEMBERSHIP_CALL_ID_H_

#include <cstdint>

#include "base/ids.h"

namespace hvd::rendezvous::membership {

// The server assigns it, and finishes the RPC when an effect names the id.
using CallId = StrongInt<struct CallIdTag, uint64_t>;

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_CALL_ID_H_
