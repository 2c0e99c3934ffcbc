// A connection to a peer, as a stream of packets.
#ifndef COLLECTIVES_MESSAGES_SOCKET_FLOW_H_
#define COLLECTIVES_MESSAGES_SOCKET_FLOW_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/net/wire.h"
#include "collectives/messages/flow.h"

namespace hvd::collectives::messages {

// Not thread-safe.
class SocketFlow : public OutFlow, public InFlow {
 public:
  explicit SocketFlow(net::Wire wire) : wire_(std::move(wire)) {}

  int fd() const { return wire_.fd(); }
  // Whether the connection is over: nothing more can be written, or nothing more is to be read.
  bool ended() const { return write_ended_ || read_ended_; }
  // If it was tampered with, how, as the predicate of a sentence; else empty.
  std::string Tampering() const { return wire_.unsafe() ? wire_.failure() : ""; }

  size_t Write(absl::string_view first, absl::string_view second) override;
  size_t piece_bytes() const override { return size_t{256} << 10; }
  size_t Read(char* to, size_t size) override;
  void EndWriting() { wire_.EndWriting(); }

 private:
  IoResult WriteBoth(absl::string_view first, absl::string_view second);
  size_t Receive(char* to, size_t size);

  net::Wire wire_;
  bool write_ended_ = false;
  bool read_ended_ = false;   // what came before a failed write can still be read
  std::vector<char> buffer_;  // of small reads
  size_t begin_ = 0, end_ = 0;
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_SOCKET_FLOW_H_
