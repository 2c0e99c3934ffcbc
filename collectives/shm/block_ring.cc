#include "collectives/shm/block_ring.h"

#include <initializer_list>

#include "base/status_macros.h"

namespace hvd::collectives::shm {
namespace {

constexpr int kNobody = -1;
constexpr int kNotYet = -2;  // nothing to do in this stage

// Whom to wait for, given who holds up each stage, the last one first.
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

// The acquire pairs with the release in Publish. Of `contributed` and `reduced` it makes the
// blocks' bytes visible to who reads them next. Of `drained` it puts the others' reads of a block
// before the writes of the next one in the same slot.
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
  if (progress.contributed < slots) return kNobody;
  // The slot's last block was number `contributed - slots`: all must have drained it.
  return Behind(&segment::RankState::drained, progress.contributed + 1 - slots);
}

void BlockRing::Publish(Counter counter, uint64_t count) {
  (links_.own_state().*counter).store(count, std::memory_order_release);
  links_.NotifyAll();
}

absl::Status BlockRing::ContributeReduceDrain(size_t blocks, Stage contribute, Stage reduce,
                                              Stage drain, absl::Time deadline) {
  return Run(blocks, contribute, &reduce, drain, deadline);
}

absl::Status BlockRing::ContributeDrain(size_t blocks, Stage contribute, Stage drain,
                                        absl::Time deadline) {
  return Run(blocks, contribute, nullptr, drain, deadline);
}

absl::Status BlockRing::Run(size_t blocks, Stage contribute, const Stage* reduce, Stage drain,
                            absl::Time deadline) {
  Progress at = Begin(blocks);
  const uint64_t begin = at.drained;
  // What is drained comes from the stage before.
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
      RETURN_IF_ERROR(links_.Await(missing, deadline));
    }
  }
  return absl::OkStatus();
}

}  // namespace hvd::collectives::shm
