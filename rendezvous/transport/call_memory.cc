#include "rendezvous/transport/call_memory.h"

#include "absl/strings/str_cat.h"

namespace hvd::rendezvous::transport {
namespace {

size_t MostOf(const CallMemory::Owner& owner) {
  return std::holds_alternative<uint64_t>(owner) ? CallMemory::kMostOfAWorker
                                                 : CallMemory::kMostOfAConnection;
}

std::string NameOf(const CallMemory::Owner& owner) {
  if (const auto* const worker = std::get_if<uint64_t>(&owner)) {
    return absl::StrCat("worker ", *worker);
  }
  return absl::StrCat("the connection from ", std::get<std::string>(owner));
}

absl::Status TooMuch(const CallMemory::Owner& owner, absl::string_view what, size_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat(NameOf(owner), " has ", what, " of ", bytes,
                                                   " bytes; at most ", MostOf(owner),
                                                   " are possible"));
}

}  // namespace

absl::Status CallMemory::CheckRoom(const Owner& owner) const {
  const auto found = used_.find(owner);
  if (found == used_.end() || found->second.request < MostOf(owner)) return absl::OkStatus();
  return TooMuch(owner, "parked requests", found->second.request);
}

void CallMemory::TakeRequest(const Owner& owner, size_t bytes) { used_[owner].request += bytes; }

absl::Status CallMemory::TakeAnswer(const Owner& owner, size_t bytes) {
  Bytes& used = used_[owner];
  if (used.answer > 0 && used.answer + bytes > MostOf(owner)) {
    return TooMuch(owner, "unread answers", used.answer + bytes);
  }
  used.answer += bytes;
  return absl::OkStatus();
}

void CallMemory::Release(const Owner& owner, const Bytes& bytes) {
  const auto found = used_.find(owner);
  if (found == used_.end()) return;
  found->second.request -= bytes.request;
  found->second.answer -= bytes.answer;
  if (found->second.request == 0 && found->second.answer == 0) used_.erase(found);
}

}  // namespace hvd::rendezvous::transport
