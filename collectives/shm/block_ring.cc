#include "collectives/shm/block_ring.h"

#include <initializer_list>

#include "base/status_macros.h"

namespace hvd::collectives::shm {
namespace {

constexpr int kNobody = -1;
constexpr int kNotYet = -2;  // this rank itself has nothing to do in this stage yet

// The rank to wait for, given the rank that blocks each stage, from the last stage to the first.
// kNobody: a stage can run.
int FirstToBlame(std::initializer_list<int> blockers) {
  int blamed = kNobody;
  for (const int blocker : blockers) {
    if (blocker == kNobody) return kNobody;
    if (blocker != kNotYet && blamed == kNobody) blamed = blocker;
  }
  return blamed;
}

}  // namespace

BlockRing::Progress BlockRing::Begin(size_t blocks) {
  const uint64_t begin = next_;
  next_ += blocks;
  return {begin, begin, begin, next_};
}

// Memory order: the acquire load pairs with the release store in Publish. For `contributed` and
// `reduced` it makes the bytes of the counted blocks visible to this rank, which reads them next.
// For `drained` it orders the other ranks' reads of a block before this rank's writes of the next
// block in the same slot.
int BlockRing::Behind(Counter counter, uint64_t count) const {
  for (int rank = 0; rank < links_.size(); ++rank) {
    if ((links_.segment().state(rank).*counter).load(std::memory_order_acquire) < count) {
      return rank;
    }
  }
  return kNobody;
}

int BlockRing::BlocksContributing(const Progress& progress) const {
  if (progress.contributed == progress.end) return kNotYet;
  const uint64_t slots = links_.segment().geometry().slots;
  if (progress.contributed < slots) return kNobody;  // no slot has been used yet
  // The slot still holds block `contributed - slots`, which all ranks must have drained.
  return Behind(&segment::RankState::drained, progress.contributed + 1 - slots);
}

// The release store orders this rank's accesses to the counted blocks before it; see Behind.
void BlockRing::Publish(Counter counter, uint64_t count) {
  (links_.own_state().*counter).store(count, std::memory_order_release);
  links_.NotifyAll();
}

absl::Status BlockRing::ContributeReduceDrain(size_t blocks, Stage contribute, Stage reduce,
                                              Stage drain, absl::Duration timeout) {
  return Run(blocks, contribute, &reduce, drain, timeout);
}

absl::Status BlockRing::ContributeDrain(size_t blocks, Stage contribute, Stage drain,
                                        absl::Duration timeout) {
  return Run(blocks, contribute, nullptr, drain, timeout);
}

// One loop iteration runs one stage of one block. Each stage handles the blocks in order, so a
// rank's state is three counters with drained <= reduced <= contributed (or drained <= contributed
// without a reduction). The last stage comes first: it frees a slot, for which other ranks may
// wait.
//
// Free of deadlocks: a rank waits only for ranks that are behind it, and the rank with the least
// progress (in `drained`, then `reduced`, then `contributed`) can always run a stage.
absl::Status BlockRing::Run(size_t blocks, Stage contribute, const Stage* reduce, Stage drain,
                            absl::Duration timeout) {
  Progress at = Begin(blocks);
  const uint64_t begin = at.drained;
  // The last stage reads what the stage before it has published.
  const Counter source =
      reduce != nullptr ? &segment::RankState::reduced : &segment::RankState::contributed;
  const uint64_t& available = reduce != nullptr ? at.reduced : at.contributed;
  const auto draining = [&] {
    return at.drained == available ? kNotYet : Behind(source, at.drained + 1);
  };
  const auto reducing = [&] {
    return reduce == nullptr || at.reduced == at.contributed
               ? kNotYet
               : Behind(&segment::RankState::contributed, at.reduced + 1);
  };
  const auto missing = [&] {
    return FirstToBlame({draining(), reducing(), BlocksContributing(at)});
  };
  while (at.drained < at.end) {
    if (draining() == kNobody) {
      drain(at.drained - begin, at.drained);
      Publish(&segment::RankState::drained, ++at.drained);
    } else if (reducing() == kNobody) {
      (*reduce)(at.reduced - begin, at.reduced);
      Publish(&segment::RankState::reduced, ++at.reduced);
    } else if (BlocksContributing(at) == kNobody) {
      contribute(at.contributed - begin, at.contributed);
      Publish(&segment::RankState::contributed, ++at.contributed);
    } else {
      RETURN_IF_ERROR(links_.Await(missing, timeout));
    }
  }
  return absl::OkStatus();
}

}  // namespace hvd::collectives::shm
