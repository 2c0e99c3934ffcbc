#include "worker_runtime/api/object_seals.h"

#include "absl/strings/str_cat.h"

namespace hvd::worker_runtime::api {

ObjectSeals::ObjectSeals(Epoch epoch, absl::string_view secret)
    : epoch_(epoch), key_(HmacSha256(secret, "hvd objects")) {}

uint64_t ObjectSeals::NumberOf(const ObjectOperation& operation) const {
  absl::MutexLock lock(&mutex_);
  const auto found = opened_.find(Key(operation.process_set, std::string(operation.name)));
  return found == opened_.end() ? 0 : found->second;
}

std::string ObjectSeals::Make(const ObjectOperation& operation, uint64_t number, int sender,
                              absl::string_view object) const {
  // The encoding is unambiguous: each number ends with a separator, the hash has a fixed length,
  // and the name, the only text of variable length, comes last. So different inputs never give the
  // same text.
  return HmacSha256(
      key_, absl::StrCat("hvd object|", epoch_.value(), "|", operation.process_set, "|", number,
                         "|", sender, "|", Sha256(object), operation.name));
}

std::string ObjectSeals::Seal(const ObjectOperation& operation, int sender,
                              absl::string_view object) const {
  return Make(operation, NumberOf(operation), sender, object);
}

absl::Status ObjectSeals::Open(const ObjectOperation& operation, absl::Span<const Sealed> objects) {
  // The number is not sent: each rank counts the objects that it has opened. So an object that is
  // replayed from an earlier operation of this name has a wrong seal.
  const uint64_t number = NumberOf(operation);
  for (const Sealed& sealed : objects) {
    const size_t size = sealed.bytes.size();
    if (size >= kSealBytes && ConstantTimeEquals(sealed.bytes.substr(size - kSealBytes),
                                                 Make(operation, number, sealed.sender,
                                                      sealed.bytes.substr(0, size - kSealBytes)))) {
      continue;
    }
    return absl::PermissionDeniedError(
        absl::StrCat("the object that came for '", operation.name, "' is not what rank ",
                     sealed.sender, " has sent: it was changed on the way; it is not unpickled"));
  }
  absl::MutexLock lock(&mutex_);
  // Only after all seals were right.
  opened_[Key(operation.process_set, std::string(operation.name))] = number + 1;
  return absl::OkStatus();
}

}  // namespace hvd::worker_runtime::api
