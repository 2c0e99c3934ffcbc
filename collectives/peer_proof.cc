#include "collectives/peer_proof.h"

#include "absl/strings/str_cat.h"
#include "base/crypto.h"

namespace hvd::collectives {
namespace {

// A variable-length part with its length in front, so that different subjects never give the same
// text.
std::string Part(absl::string_view text) { return absl::StrCat(text.size(), ":", text); }

std::string ToText(const ProofSubject& subject) {
  return absl::StrCat("hvd peer proof|", Part(subject.protocol), subject.epoch.value(), "|",
                      subject.size, "|", subject.from, "|", subject.to, "|",
                      Part(subject.transcript), Part(subject.binding));
}

}  // namespace

std::string MakeNonce() { return RandomBytes(kNonceBytes); }

std::string MakeProof(absl::string_view secret, const ProofSubject& subject) {
  return HmacSha256(secret, ToText(subject));
}

bool CheckProof(absl::string_view secret, const ProofSubject& subject, absl::string_view proof) {
  return CheckHmacSha256(secret, ToText(subject), proof);
}

}  // namespace hvd::collectives
