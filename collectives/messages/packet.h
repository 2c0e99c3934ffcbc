// The packets between two endpoints.
//
//   small message    kEager with its bytes
//   large message    kAnnounce; the receiver, once it has asked for the message, either reads the
//                    sender's memory and sends kTaken, or sends kGrant, and gets kData with pieces
//                    in order; or refuses the message with kRefuse
//   either           kCredit: see EagerDebt
//   last packet      kGoodbye, or kGaveUp after a failure
#ifndef COLLECTIVES_MESSAGES_PACKET_H_
#define COLLECTIVES_MESSAGES_PACKET_H_

#include <cstdint>

namespace hvd::collectives::messages {

enum class PacketKind : uint32_t {
  kEager = 1,
  kAnnounce,
  kGrant,
  kData,
  kTaken,
  kRefuse,
  kCredit,
  kGoodbye,
  kGaveUp,
};

// As it is in the stream; both ends are machines of one kind.
struct PacketHeader {
  PacketKind kind;
  uint32_t type;   // kEager, kAnnounce; kRefuse: the receiver's
  uint64_t tag;    // kEager, kAnnounce
  uint64_t bytes;  // kEager, kAnnounce: the message's; kData: those that follow; kRefuse: the
                   // receiver's; kCredit: the cost that is given back
  // kAnnounce: the sender's number of the message, which kGrant, kTaken and kRefuse repeat. kData:
  // the receiver's number, from kGrant.
  uint64_t id;
  uint64_t other;  // kAnnounce: the address at the sender; kGrant: the receiver's number
};
static_assert(sizeof(PacketHeader) == 40, "it has no padding");

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_PACKET_H_
