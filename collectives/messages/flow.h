// A byte stream from one rank to another, and the access to a peer's memory: what an Endpoint moves
// packets over.
#ifndef COLLECTIVES_MESSAGES_FLOW_H_
#define COLLECTIVES_MESSAGES_FLOW_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace hvd::collectives::messages {

// No method blocks. Not thread-safe.
class OutFlow {
 public:
  virtual ~OutFlow() = default;
  // Writes what there is room for, of `first` and then of `second`; returns how much. After a write
  // of less than all, the next one continues with the rest.
  virtual size_t Write(absl::string_view first, absl::string_view second) = 0;
  // The best size of the pieces of a large message.
  virtual size_t piece_bytes() const = 0;
};

class InFlow {
 public:
  virtual ~InFlow() = default;
  // Reads up to `size` bytes, and returns their number; 0: there is nothing now.
  virtual size_t Read(char* to, size_t size) = 0;
};

// Thread-safe.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  // Whether the peer's memory can be read at all.
  virtual bool Available() = 0;
  // Returns whether it has read all.
  virtual bool Read(uint64_t address, char* to, size_t bytes) = 0;
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_FLOW_H_
