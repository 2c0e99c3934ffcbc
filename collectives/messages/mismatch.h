// The comparison of a message with the receive that takes it.
#ifndef COLLECTIVES_MESSAGES_MISMATCH_H_
#define COLLECTIVES_MESSAGES_MISMATCH_H_

#include <cstddef>

#include "absl/status/status.h"
#include "collectives/messages/transfer.h"

namespace hvd::collectives::messages {

// One end of a message.
struct Sizes {
  Message message;
  size_t bytes = 0;
};

// Whether a message has the size and type that the receive expects. Pure, as are the others.
bool Fits(const Sizes& sent, const Transfer& receive);

// The errors of the two ends of a message that does not fit.
absl::Status MismatchAtReceiver(int sender, const Sizes& sent, const Transfer& receive);
absl::Status MismatchAtSender(const Transfer& send, int receiver, const Sizes& expected);

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_MISMATCH_H_
