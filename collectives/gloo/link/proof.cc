#include "collectives/gloo/link/proof.h"

#include "absl/strings/str_cat.h"
#include "base/crypto.h"

namespace hvd::collectives::gloo::link {
namespace {

// Numbers end in a separator, the nonces have one length and the binding is the rest, so no two
// subjects give the same text.
std::string ToText(const ProofSubject& subject) {
  return absl::StrCat("hvd gloo link|", subject.epoch.value(), "|", subject.size, "|", subject.from,
                      "|", subject.to, "|", subject.from_nonce, subject.to_nonce, subject.binding);
}

}  // namespace

std::string MakeNonce() { return RandomBytes(kNonceBytes); }

std::string MakeProof(absl::string_view secret, const ProofSubject& subject) {
  return HmacSha256(secret, ToText(subject));
}

bool CheckProof(absl::string_view secret, const ProofSubject& subject, absl::string_view proof) {
  return CheckHmacSha256(secret, ToText(subject), proof);
}

}  // namespace hvd::collectives::gloo::link
