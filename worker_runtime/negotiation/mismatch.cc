#include "worker_runtime/negotiation/mismatch.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hvd::worker_runtime::negotiation {
namespace {

using Signature = TensorSignature;

// The rules: each checks whether two requests of one name match in one respect.

bool SameOp(const Signature& a, const Signature& b) { return a.op == b.op; }

bool SameType(const Signature& a, const Signature& b) { return a.type == b.type; }

// Where the ranks' numbers of rows may differ, the first dimension is not compared.
bool SameShape(const Signature& a, const Signature& b) {
  if (!Has(a.op, OpTrait::kRowsDiffer)) return a.shape == b.shape;
  if (a.shape.size() != b.shape.size()) return false;
  for (size_t i = 1; i < a.shape.size(); ++i) {
    if (a.shape[i] != b.shape[i]) return false;
  }
  return true;
}

bool Reduces(const Signature& a) { return Has(a.op, OpTrait::kReduces); }

bool SameReduction(const Signature& a, const Signature& b) {
  return !Reduces(a) || a.reduction == b.reduction;
}

bool SameFactors(const Signature& a, const Signature& b) {
  return !Reduces(a) || (a.prescale == b.prescale && a.postscale == b.postscale);
}

bool SameRoot(const Signature& a, const Signature& b) {
  return !Has(a.op, OpTrait::kHasRoot) || a.root_rank == b.root_rank;
}

bool SameMeaning(const Signature& a, const Signature& b) { return a.meaning == b.meaning; }

bool SameMemory(const Signature& a, const Signature& b) { return a.on_device == b.on_device; }

using Rule = bool (*)(const Signature&, const Signature&);

// Compares every request with the first. That is enough, since each rule is an equivalence
// relation.
bool HoldsForAll(Rule rule, absl::Span<const SignaturePtr> by_rank, const Signature& first) {
  for (const SignaturePtr& signature : by_rank) {
    if (signature != nullptr && signature.get() != &first && !rule(first, *signature)) return false;
  }
  return true;
}

// The rules that are broken. The message shows these respects only.
struct Broken {
  bool op, data, reduction, factors, root, meaning, memory;
  bool any() const { return op || data || reduction || factors || root || meaning || memory; }
};

Broken CheckRules(absl::Span<const SignaturePtr> by_rank, const Signature& first) {
  auto broken = [&](Rule rule) { return !HoldsForAll(rule, by_rank, first); };
  Broken result{broken(SameOp),        broken(SameType) || broken(SameShape),
                broken(SameReduction), broken(SameFactors),
                broken(SameRoot),      broken(SameMeaning),
                broken(SameMemory)};
  // Requests of different operations are expected to differ in the other respects as well.
  if (result.op) result.reduction = result.factors = result.root = result.memory = false;
  return result;
}

// Factors that differ must not look alike, as 1.0 / 3 and 0.333333 would with StrCat's six digits.
std::string FactorText(double factor) {
  std::string text = absl::StrCat(factor);
  double read = 0;
  const bool is_exact = absl::SimpleAtod(text, &read) && read == factor;
  return is_exact ? text : absl::StrFormat("%.17g", factor);
}

std::string Describe(const Signature& signature, const Broken& broken) {
  std::string text;
  if (broken.op) absl::StrAppend(&text, NameOf(signature.op), " of ");
  absl::StrAppend(&text, collectives::NameOf(signature.type), " ", ShapeText(signature.shape));
  if (broken.reduction) absl::StrAppend(&text, " for ", NameOf(signature.reduction));
  if (broken.factors) {
    absl::StrAppend(&text, " with prescale ", FactorText(signature.prescale), " and postscale ",
                    FactorText(signature.postscale));
  }
  if (broken.root) absl::StrAppend(&text, " with root rank ", signature.root_rank);
  // Two operations of the caller may be one of the engine, and the names of the engine's are not
  // always those that the caller knows.
  if ((broken.op || broken.meaning) && !signature.meaning.empty()) {
    absl::StrAppend(&text, " as ", signature.meaning);
  }
  if (broken.memory) absl::StrAppend(&text, signature.on_device ? " on a GPU" : " on the host");
  return text;
}

// "rank 0 sent X, ranks 1 and 2 sent Y".
std::string WhoSentWhat(absl::Span<const SignaturePtr> by_rank, const Broken& broken) {
  constexpr size_t kMostVariants = 8;  // bounds the message in a large world
  std::vector<std::pair<std::string, std::vector<int>>> variants;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank] == nullptr) continue;
    std::string text = Describe(*by_rank[rank], broken);
    size_t i = 0;
    while (i < variants.size() && variants[i].first != text) ++i;
    if (i == variants.size()) {
      // Later ranks with one of the variants shown are left out as well; the message is long
      // enough.
      if (i == kMostVariants) break;
      variants.push_back({std::move(text), {}});
    }
    variants[i].second.push_back(static_cast<int>(rank));
  }
  return absl::StrJoin(variants, ", ", [](std::string* out, const auto& variant) {
    absl::StrAppend(out, RanksText(variant.second), " sent ", variant.first);
  });
}

std::vector<int> JoinedRanks(absl::Span<const SignaturePtr> by_rank) {
  std::vector<int> joined;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank] == nullptr) joined.push_back(static_cast<int>(rank));
  }
  return joined;
}

}  // namespace

std::optional<std::string> FindMismatch(absl::Span<const SignaturePtr> by_rank) {
  size_t first_rank = 0;
  while (by_rank[first_rank] == nullptr) ++first_rank;
  const Signature& first = *by_rank[first_rank];
  const Broken broken = CheckRules(by_rank, first);
  if (broken.any()) {
    const std::string what = broken.op ? "operations" : std::string(NameOf(first.op));
    return absl::StrCat("Mismatched ", what, broken.op ? " on '" : " of '", first.name,
                        "': ", WhoSentWhat(by_rank, broken));
  }
  // After the mismatches: these say more about a script whose ranks have got out of step.
  if (!Has(first.op, OpTrait::kOutlivesJoin)) {
    const std::vector<int> joined = JoinedRanks(by_rank);
    if (!joined.empty()) {
      return absl::StrCat("Can't run ", NameOf(first.op), " of '", first.name,
                          "': ", RanksText(joined), joined.size() == 1 ? " has" : " have",
                          " joined, and only allreduce goes on without the data of all ranks");
    }
  }
  // Last, when all ranks are known to have sent the same number of dimensions.
  if (Has(first.op, OpTrait::kRowsDiffer) && first.shape.empty()) {
    return absl::StrCat("Can't run ", NameOf(first.op), " of '", first.name,
                        "': a tensor needs at least one dimension, but ",
                        WhoSentWhat(by_rank, broken));
  }
  return std::nullopt;
}

}  // namespace hvd::worker_runtime::negotiation
