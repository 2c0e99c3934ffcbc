#include "collectives/gloo/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "absl/strings/str_cat.h"

namespace hvd {

std::string MakeNonce() {
  std::string nonce(kNonceBytes, '\0');
  RAND_bytes(reinterpret_cast<unsigned char*>(&nonce[0]), static_cast<int>(nonce.size()));
  return nonce;
}

std::string MakeProof(absl::string_view secret, const ProofSubject& subject) {
  // Numbers end in a separator and the nonces have one length, so no two subjects give the same
  // text.
  const std::string text = absl::StrCat("hvd gloo mesh|", subject.epoch.value(), "|", subject.from,
                                        "|", subject.to, "|", subject.from_nonce, subject.to_nonce);
  std::string proof(kProofBytes, '\0');
  unsigned int length = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(&proof[0]), &length);
  return proof;
}

bool CheckProof(absl::string_view secret, const ProofSubject& subject, absl::string_view proof) {
  const std::string expected = MakeProof(secret, subject);
  return proof.size() == expected.size() &&
         CRYPTO_memcmp(proof.data(), expected.data(), expected.size()) == 0;
}

}  // namespace hvd
