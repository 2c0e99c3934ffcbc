// A message that has arrived, or was announced, before a receive has asked for it.
#ifndef COLLECTIVES_MESSAGES_ARRIVAL_H_
#define COLLECTIVES_MESSAGES_ARRIVAL_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "collectives/messages/transfer.h"

namespace hvd::collectives::messages {

struct Arrival {
  enum class Kind {
    kPresent,    // its bytes are in `data`, or on their way there
    kAnnounced,  // its bytes are with the sender
    kOwn,        // a message of this rank to itself
  };

  Kind kind = Kind::kPresent;
  int source = 0;
  Message message;
  size_t bytes = 0;

  // Of kPresent.
  std::unique_ptr<char[]> data;
  bool complete = false;
  TransferPtr claimed;  // the receive that gets it once it is complete

  // Of kAnnounced: the sender's number of the message, and its address there.
  uint64_t id = 0;
  uint64_t address = 0;

  TransferPtr own;  // of kOwn: the send
};
using ArrivalPtr = std::shared_ptr<Arrival>;

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_ARRIVAL_H_
