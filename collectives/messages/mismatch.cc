#include "collectives/messages/mismatch.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace hvd::collectives::messages {
namespace {

// "rank 1 sends 16 bytes of tag 3, this rank receives 8"
absl::Status Differ(const std::string& sender, const Sizes& sent, const std::string& receiver,
                    const Sizes& expected) {
  const std::string of_tag = absl::StrCat(" of tag ", sent.message.tag, ", ", receiver);
  if (sent.bytes != expected.bytes) {
    return absl::InvalidArgumentError(absl::StrCat(sender, " sends ", sent.bytes, " bytes", of_tag,
                                                   " receives ", expected.bytes));
  }
  return absl::InvalidArgumentError(absl::StrCat(sender, " sends elements of type ",
                                                 sent.message.type, of_tag, " receives type ",
                                                 expected.message.type));
}

std::string RankName(int rank) { return absl::StrCat("rank ", rank); }

}  // namespace

bool Fits(const Sizes& sent, const Transfer& receive) {
  return sent.bytes == receive.bytes() && sent.message.type == receive.message().type;
}

absl::Status MismatchAtReceiver(int sender, const Sizes& sent, const Transfer& receive) {
  return Differ(RankName(sender), sent, "this rank", {receive.message(), receive.bytes()});
}

absl::Status MismatchAtSender(const Transfer& send, int receiver, const Sizes& expected) {
  return Differ("this rank", {send.message(), send.bytes()}, RankName(receiver), expected);
}

}  // namespace hvd::collectives::messages
