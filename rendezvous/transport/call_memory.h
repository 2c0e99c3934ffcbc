// The memory that clients' calls take: their requests and answers, until gRPC has released them.
#ifndef RENDEZVOUS_TRANSPORT_CALL_MEMORY_H_
#define RENDEZVOUS_TRANSPORT_CALL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"

namespace hvd::rendezvous::transport {

// A client may leave its calls parked, and its answers unread, for as long as it likes. So the
// calls of one owner share limits; otherwise a member of one job could take the memory of the
// others. Thread-compatible.
class CallMemory {
 public:
  // The worker that calls; for calls that name none, the address of the connection.
  using Owner = std::variant<uint64_t, std::string>;

  struct Bytes {
    size_t request = 0;
    size_t answer = 0;
  };

  // Of one worker: more than its exchanges may hold (see ExchangeRounds), and far more than others
  // need.
  static constexpr size_t kMostOfAWorker = size_t{8} << 20;
  // Of one connection, on which the calls of many workers may be.
  static constexpr size_t kMostOfAConnection = size_t{64} << 20;

  template <typename Request>
  static Owner OwnerOf(const grpc::ServerContextBase& context, const Request& request) {
    return OwnerOf(context, request, 0);
  }

  // Errors:
  //   - ResourceExhausted: the requests of this owner that are parked have reached the limit.
  absl::Status CheckRoom(const Owner& owner) const;

  void TakeRequest(const Owner& owner, size_t bytes);

  // Errors:
  //   - ResourceExhausted: the owner has not read other answers, and all of them together exceed
  //   the
  //     limit. Nothing was taken. A single answer may have any size.
  absl::Status TakeAnswer(const Owner& owner, size_t bytes);

  // Gives back what one call has taken.
  void Release(const Owner& owner, const Bytes& bytes);

 private:
  template <typename Request>
  static auto OwnerOf(const grpc::ServerContextBase&, const Request& request, int)
      -> decltype(request.worker(), Owner()) {
    return request.worker().worker_id();
  }
  template <typename Request>
  static Owner OwnerOf(const grpc::ServerContextBase& context, const Request&, long) {
    return context.peer();
  }

  std::map<Owner, Bytes> used_;  // without owners that use nothing
};

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_CALL_MEMORY_H_
