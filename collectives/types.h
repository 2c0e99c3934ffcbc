// The common types of all collectives: element types, reductions, and group members.
#ifndef COLLECTIVES_TYPES_H_
#define COLLECTIVES_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/ids.h"

namespace hvd::net {

class TlsContext;  // base/net/tls_session.h

}  // namespace hvd::net

namespace hvd::collectives::peer {

class PeerPort;  // peer_port.h

}  // namespace hvd::collectives::peer

namespace hvd::collectives {

// The numbers are part of the C ABI (worker_runtime/api/hvd_c_api.h) and of the negotiation's wire
// format.
enum class DataType : int32_t {
  kUint8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kBfloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBool = 9,
};
inline constexpr int kDataTypeCount = 10;

// The reductions that backends implement. An average is a sum followed by a division, which the
// engine does (engine/reduction_math). For kBool, Sum and Max are "or", Product and Min are "and".
// kFloat16 and kBfloat16 are computed in float.
enum class ReduceOp : int32_t {
  kSum = 0,
  kMin = 1,
  kMax = 2,
  kProduct = 3,
};

size_t SizeOf(DataType type);             // bytes per element
absl::string_view NameOf(DataType type);  // NumPy's name: "float32", "bfloat16", ...
absl::string_view NameOf(ReduceOp op);
bool IsFloating(DataType type);

// A communicator's group and this process's rank in it. Ranks are 0..size-1.
struct GroupInfo {
  Epoch epoch;
  int rank = 0;
  int size = 1;
  std::string address;  // the numeric address at which this process accepts connections of peers
  std::string secret;   // of this epoch; a peer must prove that it knows it
  // TLS for all network traffic; nullptr: no encryption.
  std::shared_ptr<const net::TlsContext> tls = nullptr;
  int id = 0;  // tells the groups of one epoch apart
  // Where this process accepts the connections of peers, shared by all groups of the epoch.
  // nullptr: a backend that needs a port opens one at `address`.
  std::shared_ptr<peer::PeerPort> port = nullptr;
  // Receives what a backend has chosen by measuring, as a predicate with this rank as its subject,
  // on the thread of the operation. May be empty.
  std::function<void(const std::string& choice)> on_choice = nullptr;
};

// Errors:
//   - InvalidArgument: group.rank is not in 0..group.size-1.
absl::Status CheckRank(const GroupInfo& group);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_TYPES_H_
