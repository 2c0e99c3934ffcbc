#include "collectives/nccl/capability_exchange.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text/names.h"
#include "base/text/shortened.h"
#include "collectives/nccl/library.h"
#include "collectives/peer_proof.h"

namespace hvd::collectives::nccl {
namespace {

constexpr size_t kLongestProblem = 1000;

constexpr char kShares = '1', kAlone = '0';

// The text of a message: "0|PROBLEM", or "VERSION|VISIBLE GPUS|" followed by kShares or kAlone, the
// GPU's identity (kGpuBytes), and the id (empty except from rank 0).
std::string Body(const Capabilities& hello) {
  if (hello.version == 0) return absl::StrCat(0, "|", hello.problem);
  const char shares = hello.shares_gpus ? kShares : kAlone;
  return absl::StrCat(hello.version, "|", hello.visible_gpus, "|", absl::string_view(&shares, 1),
                      hello.gpu, hello.id);
}

// Takes a number and the bar after it from the beginning of `body`.
bool TakeNumber(absl::string_view* body, int* number) {
  const size_t bar = body->find('|');
  if (bar == absl::string_view::npos || !absl::SimpleAtoi(body->substr(0, bar), number)) {
    return false;
  }
  body->remove_prefix(bar + 1);
  return true;
}

std::optional<Capabilities> ParseBody(absl::string_view body) {
  Capabilities hello;
  if (!TakeNumber(&body, &hello.version)) return std::nullopt;
  if (hello.version == 0) {
    hello.problem = std::string(body);
    return hello;
  }
  if (!TakeNumber(&body, &hello.visible_gpus)) return std::nullopt;
  if (body.size() < 1 + kGpuBytes) return std::nullopt;
  hello.shares_gpus = body.front() == kShares;
  body.remove_prefix(1);
  hello.gpu = std::string(body.substr(0, kGpuBytes));
  hello.id = std::string(body.substr(kGpuBytes));
  return hello;
}

ProofSubject SubjectOf(const GroupInfo& group, int rank, absl::string_view body) {
  // The rank is part of the proof, so a hello can't be presented as that of another rank, and
  // neither can one of an earlier epoch.
  return {"nccl hello", group.epoch, group.size, rank, kEveryRank, body};
}

// nullopt: the proof is wrong, or the text is malformed.
std::optional<Capabilities> Decode(const GroupInfo& group, int rank, absl::string_view text) {
  // Checked before anything is parsed: the text has come through the daemon, which does not check
  // it.
  if (text.size() < kProofBytes) return std::nullopt;
  const absl::string_view proof = text.substr(0, kProofBytes);
  const absl::string_view body = text.substr(kProofBytes);
  if (!CheckProof(group.secret, SubjectOf(group, rank, body), proof)) return std::nullopt;
  return ParseBody(body);
}

// What to do about one GPU for two ranks: use another one, if there is one.
std::string AdviceFor(const Capabilities& second, size_t rank) {
  if (second.visible_gpus > 1) {
    return absl::StrCat(", and rank ", rank, " sees ", second.visible_gpus,
                        ": torch.cuda.set_device(hvd.local_rank()), before anything uses CUDA, "
                        "gives each rank its own");
  }
  return absl::StrCat(", which NCCL ", NcclVersionText(kFirstSharingNccl),
                      " and later take if NCCL_MULTI_RANK_GPU_ENABLE=1 on all ranks");
}

// The first problem in rank order, the same on all ranks; nullopt: all ranks can use NCCL together.
std::optional<std::string> FindProblem(const std::vector<Capabilities>& hellos) {
  std::map<std::string, size_t> owners;  // by GPU: the first rank that uses it
  const bool all_share = std::all_of(hellos.begin(), hellos.end(),
                                     [](const Capabilities& h) { return h.shares_gpus; });
  for (size_t rank = 0; rank < hellos.size(); ++rank) {
    const Capabilities& hello = hellos[rank];
    if (hello.version == 0) {
      return absl::StrCat("rank ", rank, " can't use NCCL: ",
                          text::Shortened(text::OnOneLine(hello.problem), kLongestProblem));
    }
    if (hello.version != hellos[0].version) {
      return absl::StrCat("rank ", rank, " has NCCL ", NcclVersionText(hello.version),
                          ", rank 0 has ", NcclVersionText(hellos[0].version));
    }
    // Found here, before NCCL starts: NCCL reports a shared GPU only on the ranks that share it,
    // and the others would wait.
    const auto [owner, is_first] = owners.emplace(hello.gpu, rank);
    if (!is_first && !all_share) {
      return absl::StrCat("ranks ", owner->second, " and ", rank, " use the same GPU",
                          AdviceFor(hello, rank));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string EncodeCapabilities(const GroupInfo& group, const Capabilities& hello) {
  const std::string body = Body(hello);
  return MakeProof(group.secret, SubjectOf(group, group.rank, body)) + body;
}

absl::StatusOr<NcclUniqueId> CheckCapabilities(const GroupInfo& group,
                                               absl::Span<const std::string> hellos) {
  std::vector<Capabilities> read;
  for (size_t rank = 0; rank < hellos.size(); ++rank) {
    const auto hello = Decode(group, static_cast<int>(rank), hellos[rank]);
    if (!hello.has_value()) {
      return absl::PermissionDeniedError(
          absl::StrCat("rank ", rank, " does not know this epoch's secret"));
    }
    read.push_back(*hello);
  }
  const std::optional<std::string> problem = FindProblem(read);
  if (problem.has_value()) return absl::UnimplementedError(*problem);
  NcclUniqueId id;
  if (read[0].id.size() != sizeof(id.internal)) {
    return absl::InternalError("rank 0 gave no id for the communicator");
  }
  std::memcpy(id.internal, read[0].id.data(), sizeof(id.internal));
  return id;
}

}  // namespace hvd::collectives::nccl
