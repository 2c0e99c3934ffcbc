// One connection to a peer, as a sequence of messages in each direction.
#ifndef COLLECTIVES_TCP_SOCKET_LINK_H_
#define COLLECTIVES_TCP_SOCKET_LINK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/net/wire.h"

namespace hvd::collectives::tcp {

// A non-blocking state machine: the owner calls it when the socket may be ready. Not thread-safe.
//
// Each message is its length, as 8 bytes, and its bytes. It is read only once there is memory for
// it, so a peer that is ahead is held up by the connection's flow control. The last message has a
// negative number in place of the length, and nothing follows it.
class SocketLink {
 public:
  // How the stream from the peer has ended.
  enum class End {
    kOpen,
    kGoodbye,    // the peer has left in good order
    kGaveUp,     // the peer has failed because of the rank cause()
    kLost,       // without a last message
    kMalformed,  // a message does not have the length of the memory for it
  };

  explicit SocketLink(net::Wire wire) : wire_(std::move(wire)) {}

  int fd() const { return wire_.fd(); }
  End end() const { return end_; }
  // REQUIRES: end() == kGaveUp. Not negative, but any number that the peer has sent.
  int cause() const { return cause_; }
  // Whether the network does not reach the peer any more: the kernel says so, or has repeated in
  // vain what was sent.
  bool IsSilent();
  // What the kernel has taken, and the peer's kernel has not confirmed yet.
  uint64_t Unacknowledged() const;
  // For kLost: why, as the predicate of a sentence, if the stream was tampered with; else empty.
  std::string Tampering() const { return wire_.unsafe() ? wire_.failure() : ""; }

  // Queue a message, or memory for one; `completed` is incremented when the kernel has taken the
  // message's bytes, or when all of them have arrived. Send() writes at once what it can. Receive()
  // reads nothing: it returns a message that ReadToEnd() has kept, or waits for Advance().
  void Send(const char* data, size_t bytes, size_t* completed);
  void Receive(char* data, size_t bytes, size_t* completed);

  // Sends and receives what is possible. Returns whether anything has moved.
  bool Advance();

  bool wants_to_read() const { return !incoming_.empty() && end_ == End::kOpen; }
  bool wants_to_write() const { return !outgoing_.empty() && end_ == End::kOpen; }
  // Whether messages are queued that can no longer be sent or received.
  bool is_stuck() const { return end_ != End::kOpen && (!outgoing_.empty() || !incoming_.empty()); }

  // Reads all that the peer has sent before it hung up. Messages without memory are kept for
  // Receive(). Afterwards the stream has ended.
  // REQUIRES: the peer has hung up.
  void ReadToEnd();

  // Forgets all queued messages and their memory. Afterwards the link may only say its last
  // message.
  void Abandon();

  // Sends the last message, a goodbye or the rank that has caused a failure, and half-closes the
  // stream. Best effort: in the middle of a message, or if the socket's buffer is full, the peer
  // sees only the end of the stream.
  void SayGoodbye() { SayLastWord(kGoodbye); }
  void SayGaveUp(int cause) { SayLastWord(kGaveUp - cause); }

  // Resets the connection if bytes are left that the peer's kernel does not take, because the peer
  // does not read: the end of the stream, which comes after them, would reach it too late. Loses
  // the last message. To be called after SayGaveUp.
  void ResetIfBlocked();

 private:
  struct Outgoing {
    const char* data;
    size_t bytes;
    size_t* completed;
  };
  struct Incoming {
    char* data;
    size_t bytes;
    size_t* completed;
  };
  // Values in place of a length.
  static constexpr int64_t kGoodbye = -1;
  static constexpr int64_t kGaveUp = -2;  // less the rank that is the cause
  static constexpr size_t kHeaderBytes = sizeof(int64_t);
  using Header = std::array<char, kHeaderBytes>;

  // Each returns whether anything has moved.
  bool WriteSome();
  bool ReadSome();
  bool KeepSome();
  bool IsExhausted(size_t moved, size_t wanted) const;
  IoResult WriteFront();
  IoResult ReadFront();
  IoResult ReadHeaderAnd(char* data, size_t bytes);
  // Whether `got` has moved anything. Ends the stream if it is its end, or if the header that it
  // completes is a last message.
  bool Account(const IoResult& got);
  void SayLastWord(int64_t value);

  net::Wire wire_;
  End end_ = End::kOpen;
  int cause_ = -1;
  bool silent_ = false;
  bool has_left_ = false;  // this end has said its last word

  std::deque<Outgoing> outgoing_;
  size_t written_ = 0;  // of the first outgoing message, with its header

  std::deque<Incoming> incoming_;
  Header header_ = {};  // of the message that is being received
  size_t read_ = 0;     // of that message, with its header
  int64_t length_ = 0;  // of that message; valid once its header was read

  std::deque<std::string> kept_;  // by ReadToEnd
  std::string partly_kept_;
};

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_SOCKET_LINK_H_
