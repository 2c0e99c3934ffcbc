#include "collectives/nccl/hello.h"

#include <cstring>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "collectives/nccl/library.h"

namespace hvd {
namespace {

// "VERSION|ID AND PROBLEM": the id has a fixed length and is there only with a version.
std::string Body(const NcclHello& hello) {
  return absl::StrCat(hello.version, "|", hello.version != 0 ? hello.id : hello.problem);
}

std::optional<NcclHello> ParseBody(absl::string_view body) {
  const size_t bar = body.find('|');
  NcclHello hello;
  if (bar == absl::string_view::npos || !absl::SimpleAtoi(body.substr(0, bar), &hello.version)) {
    return std::nullopt;
  }
  (hello.version != 0 ? hello.id : hello.problem) = std::string(body.substr(bar + 1));
  return hello;
}

std::string Signed(const GroupInfo& group, int rank, absl::string_view body) {
  return absl::StrCat("hvd nccl hello|", group.epoch.value(), "|", group.size, "|", rank, "|",
                      body);
}

// nullopt: not signed with the secret.
std::optional<NcclHello> Decode(const GroupInfo& group, int rank, absl::string_view text) {
  if (text.size() < kHmacSha256Bytes) return std::nullopt;
  const absl::string_view proof = text.substr(0, kHmacSha256Bytes);
  const absl::string_view body = text.substr(kHmacSha256Bytes);
  if (!CheckHmacSha256(group.secret, Signed(group, rank, body), proof)) return std::nullopt;
  return ParseBody(body);
}

}  // namespace

std::string EncodeHello(const GroupInfo& group, const NcclHello& hello) {
  const std::string body = Body(hello);
  return HmacSha256(group.secret, Signed(group, group.rank, body)) + body;
}

absl::StatusOr<NcclUniqueId> JudgeHellos(const GroupInfo& group,
                                         absl::Span<const std::string> hellos) {
  std::vector<NcclHello> read;
  for (size_t rank = 0; rank < hellos.size(); ++rank) {
    const auto hello = Decode(group, static_cast<int>(rank), hellos[rank]);
    if (!hello.has_value()) {
      return absl::PermissionDeniedError(
          absl::StrCat("rank ", rank, " does not know this epoch's secret"));
    }
    read.push_back(*hello);
  }
  for (size_t rank = 0; rank < read.size(); ++rank) {
    if (read[rank].version == 0) {
      return absl::UnimplementedError(
          absl::StrCat("rank ", rank, " can't use NCCL: ", read[rank].problem));
    }
    if (read[rank].version != read[0].version) {
      return absl::UnimplementedError(
          absl::StrCat("rank ", rank, " has NCCL ", NcclVersionText(read[rank].version),
                       ", rank 0 has ", NcclVersionText(read[0].version)));
    }
  }
  NcclUniqueId id;
  if (read[0].id.size() != sizeof(id.internal)) {
    return absl::InternalError("rank 0 gave no id for the communicator");
  }
  std::memcpy(id.internal, read[0].id.data(), sizeof(id.internal));
  return id;
}

}  // namespace hvd
