// One message under way, as its sender or its receiver sees it.
#ifndef COLLECTIVES_MESSAGES_TRANSFER_H_
#define COLLECTIVES_MESSAGES_TRANSFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"

namespace hvd::collectives::messages {

// In place of a receive's source: any rank.
inline constexpr int kAnySource = -1;

// What a receive selects messages by, and what must be equal at both ends.
struct Message {
  uint64_t tag = 0;
  uint32_t type = 0;  // of the elements; any numbers
};

// Made and finished by an Endpoint. done() may be called by any thread; after it has returned true
// the others may be called, too.
class Transfer {
 public:
  enum class Direction { kSend, kReceive };

  // `data` is borrowed until the transfer is done. `then` may be empty.
  Transfer(Direction direction, int peer, const Message& message, void* data, size_t bytes,
           std::function<void()> then)
      : direction_(direction),
        peer_(peer),
        message_(message),
        data_(static_cast<char*>(data)),
        bytes_(bytes),
        then_(std::move(then)) {}
  // One that has failed from the start.
  Transfer(Direction direction, int peer, const Message& message, const absl::Status& why)
      : Transfer(direction, peer, message, nullptr, 0, nullptr) {
    status_ = why;
    done_.store(true, std::memory_order_release);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  bool done() const { return done_.load(std::memory_order_acquire); }
  // REQUIRES: done().
  // Errors:
  //   - InvalidArgument: the two ends differ in size or type; says how. The message is lost.
  //   - Unavailable: the peer is gone. Or, of a receive from any rank, all are.
  //   - Aborted: the messenger was aborted or closed; the message is the reason.
  //   - DataLoss: what came from the peer was changed on the way.
  const absl::Status& status() const { return status_; }
  // The rank that sent what was received. REQUIRES: done(), and status() is OK.
  int source() const { return peer_; }

  Direction direction() const { return direction_; }
  const Message& message() const { return message_; }
  size_t bytes() const { return bytes_; }

 private:
  friend class Endpoint;

  const Direction direction_;
  int peer_;  // of a receive from any rank: kAnySource until a message has matched
  const Message message_;
  char* const data_;
  const size_t bytes_;
  size_t moved_ = 0;  // of a large message's bytes
  std::function<void()> then_;
  absl::Status status_;
  std::atomic<bool> done_{false};
};

using TransferPtr = std::shared_ptr<Transfer>;

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_TRANSFER_H_
